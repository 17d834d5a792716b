//! Which selection is pending for the next prompt, and which one the model has seen already.

use std::sync::Arc;

use crate::protocol::snapshot::HashedSnapshot;

/// Where the latest snapshot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachState {
    /// There is no snapshot.
    Idle,
    /// The next prompt takes it along.
    Pending,
    /// The model has seen it.
    Sent,
}

/// Decides what each prompt injects: the latest snapshot, once, and again only after an attach or a mention.
#[derive(Debug, Default)]
pub struct AttachGate {
    latest: Option<Arc<HashedSnapshot>>,
    /// An attach or a mention asks for the latest snapshot although the model has seen it.
    rearmed: bool,
    /// Content hash of what this pi session injected last.
    last_injected: Option<String>,
}

impl AttachGate {
    /// A gate for a session that has injected a snapshot with this content hash last.
    pub fn new(last_injected: Option<String>) -> Self {
        Self { last_injected, ..Self::default() }
    }

    /// `selection_changed`.
    pub fn select(&mut self, snapshot: Arc<HashedSnapshot>) {
        let replaced = self.latest.as_ref().is_none_or(|latest| latest.content_hash != snapshot.content_hash);
        self.rearmed &= !replaced;
        self.latest = Some(snapshot);
    }

    /// `at_mentioned`.
    pub fn mention(&mut self, snapshot: Arc<HashedSnapshot>) {
        self.latest = Some(snapshot);
        self.rearmed = true;
    }

    /// `selection_cleared`, or the link is gone: nothing is left to inject.
    pub fn clear(&mut self) {
        self.latest = None;
        self.rearmed = false;
    }

    /// The user attaches the latest snapshot, whether or not the model has seen it.
    pub fn attach(&mut self) {
        self.rearmed = self.latest.is_some();
    }

    /// The snapshot that a prompt would take along now.
    pub fn pending(&self) -> Option<&Arc<HashedSnapshot>> {
        let latest = self.latest.as_ref()?;
        let is_new = || self.last_injected.as_ref() != Some(&latest.content_hash);
        (self.rearmed || is_new()).then_some(latest)
    }

    /// A prompt took along the snapshot with this hash. What arrived meanwhile stays pending.
    pub fn mark_injected(&mut self, hash: String) {
        if self.latest.as_ref().is_some_and(|latest| latest.content_hash == hash) {
            self.rearmed = false;
        }
        self.last_injected = Some(hash);
    }

    /// State of the latest snapshot.
    pub fn state(&self) -> AttachState {
        match (&self.latest, self.pending()) {
            (None, _) => AttachState::Idle,
            (_, Some(_)) => AttachState::Pending,
            _ => AttachState::Sent,
        }
    }

    /// The latest snapshot, whatever its state.
    pub fn latest(&self) -> Option<&Arc<HashedSnapshot>> {
        self.latest.as_ref()
    }

    /// Whether the user asked for the latest snapshot by an attach or a mention.
    pub fn is_rearmed(&self) -> bool {
        self.rearmed
    }
}
