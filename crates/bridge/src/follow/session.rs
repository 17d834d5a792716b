//! What a listener and pi see of a connection: its state, the latest snapshot, the events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::driver::Command;
use crate::blocking::blocking;
use crate::config::{self, Share};
use crate::connection::{ConnectError, EventSink, LinkEvent};
use crate::context::{AttachGate, AttachState, Reach, label, may_go_along, mentions, metadata_block};
use crate::discovery::Candidate;
use crate::env::Env;
use crate::events::{Event, LinkState, Status};
use crate::mailbox::Mailbox;
use crate::paths::{display_path, normalise};
use crate::protocol::diagnostics::DiagnosticFix;
use crate::protocol::lenient::Text;
use crate::protocol::snapshot::{HashedSnapshot, Snapshot};

/// A closing session does not wait longer for listeners that take nothing any more.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// One editor as pi sees it, whatever the link does underneath. Dropping it closes the link.
pub struct Session {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    ended: watch::Receiver<bool>,
}

/// The text for one prompt and what it is about; does not change any more.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Text for the model.
    pub content: String,
    /// What it shows.
    pub snapshot: Arc<HashedSnapshot>,
    /// The file as pi shows it, not escaped.
    pub display_path: String,
}

/// A listener's mailbox; dropping it ends the subscription.
pub struct Subscription {
    id: u64,
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox<Event>>,
}

/// State that the driver writes and everybody else reads.
pub(super) struct Shared {
    pub(super) env: Arc<Env>,
    pub(super) cwd: String,
    state: Mutex<State>,
    listeners: Mutex<Vec<Listener>>,
    next_id: AtomicU64,
    changed: watch::Sender<()>,
}

struct State {
    status: Arc<Status>,
    gate: AttachGate,
    picked_by_hand: bool,
    /// Whether the connected editor has told its state yet.
    has_spoken: bool,
}

struct Listener {
    id: u64,
    mailbox: Arc<Mailbox<Event>>,
    wake: Box<dyn Fn() + Send>,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        commands: mpsc::UnboundedSender<Command>,
        ended: watch::Receiver<bool>,
    ) -> Self {
        Self { shared, commands, ended }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// State of the link, and with whom.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.shared.state().status)
    }

    /// The latest snapshot; `None` while no file is open or no editor is connected.
    pub fn latest(&self) -> Option<Arc<HashedSnapshot>> {
        self.shared.state().gate.latest().cloned()
    }

    /// Where the latest snapshot stands with the next prompt.
    pub fn attach_state(&self) -> AttachState {
        self.shared.state().gate.state()
    }

    /// Mentions of the latest snapshot; empty where there is none.
    pub fn mentions(&self) -> Vec<String> {
        let latest = self.latest();
        latest.map_or_else(Vec::new, |latest| mentions(&self.shared.env.host, &self.shared.cwd, &latest.snapshot))
    }

    /// File name and line ranges of the latest snapshot, see [`label`].
    pub fn label(&self) -> Option<(String, String)> {
        self.latest().map(|latest| label(&self.shared.env.host, &latest.snapshot))
    }

    /// Makes the latest snapshot pending again.
    pub fn attach(&self) {
        self.shared.state().gate.attach();
    }

    /// The text for the prompt that starts now; `None` when nothing is pending or it may not go along.
    ///
    /// Waits at most `wait` for a link that is being made and for the editor's first word. Configuration is read anew,
    /// so a changed switch counts from this prompt on.
    pub async fn prepare(&self, wait: Duration) -> Option<Prepared> {
        // Running out of time is no fault: then there is nothing to tell.
        let _ = timeout(wait, self.shared.settled()).await;
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.prepare()).await.flatten()
    }

    /// The model has seen the snapshot with this content hash.
    pub fn mark_injected(&self, content_hash: String) {
        self.shared.state().gate.mark_injected(content_hash);
    }

    /// Closes the present link and connects to this editor instead; the user's choice is kept while it lives.
    pub async fn switch_to(&self, candidate: Candidate) -> Result<(), ConnectError> {
        let (reply, outcome) = oneshot::channel();
        let closed = || ConnectError::NotUsable("cannot be connected: this connection is closed".into());
        self.commands.send(Command::SwitchTo(Box::new(candidate), reply)).map_err(|_| closed())?;
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Closes for good; returns when the last event was taken. Closing twice is the same as once.
    pub async fn close(&self) {
        // Fails only when the driver has ended, and then there is nothing to close.
        let _ = self.commands.send(Command::Close);
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(|ended| *ended).await;
        let mailboxes: Vec<_> = self.shared.listeners().iter().map(|listener| Arc::clone(&listener.mailbox)).collect();
        let drained = join_all(mailboxes.iter().map(|mailbox| mailbox.empty()));
        let _ = timeout(DRAIN_WITHIN, drained).await;
    }

    /// Adds a listener: `wake` is called once for each event that it may take.
    pub fn subscribe(&self, wake: impl Fn() + Send + 'static) -> Subscription {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(Mailbox::default());
        let listener = Listener { id, mailbox: Arc::clone(&mailbox), wake: Box::new(wake) };
        self.shared.listeners().push(listener);
        Subscription { id, shared: Arc::clone(&self.shared), mailbox }
    }
}

impl Subscription {
    /// Number of the subscription, never used twice in one session.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where the listener takes its events.
    pub fn mailbox(&self) -> Arc<Mailbox<Event>> {
        Arc::clone(&self.mailbox)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.listeners().retain(|listener| listener.id != self.id);
        self.mailbox.clear();
    }
}

impl Shared {
    pub(super) fn new(env: Arc<Env>, cwd: String, last_injected: Option<String>) -> Self {
        let status = Arc::new(Status { state: LinkState::Connecting, candidate: None, server: None, message: None });
        let gate = AttachGate::new(last_injected);
        let state = Mutex::new(State { status, gate, picked_by_hand: false, has_spoken: false });
        let (changed, _) = watch::channel(());
        Self { env, cwd, state, listeners: Mutex::default(), next_id: AtomicU64::new(0), changed }
    }

    pub(super) fn pick_by_hand(&self) {
        self.state().picked_by_hand = true;
    }

    pub(super) fn picked_automatically(&self) {
        self.state().picked_by_hand = false;
    }

    /// Publishes a new status; a link that is not connected has no snapshot.
    pub(super) fn set_status(&self, status: Status) {
        let status = Arc::new(status);
        {
            let mut state = self.state();
            if state.status == status {
                return;
            }
            if status.state != LinkState::Connected {
                state.gate.clear();
                state.has_spoken = false;
            }
            state.status = Arc::clone(&status);
        }
        self.publish(Event::Status(status));
    }

    pub(super) fn closed(&self, reason: String) {
        self.set_status(Status { state: LinkState::Closed, candidate: None, server: None, message: None });
        self.publish(Event::Closed { reason });
    }

    fn received(&self, mut snapshot: Snapshot) -> Arc<HashedSnapshot> {
        self.normalise(&mut snapshot.file_path);
        snapshot.workspace_folder.iter_mut().for_each(|folder| self.normalise(folder));
        snapshot.received_at.get_or_insert(self.env.now_ms() as f64);
        Arc::new(snapshot.into())
    }

    fn received_fix(&self, mut request: DiagnosticFix) -> DiagnosticFix {
        self.normalise(&mut request.file_path);
        request.workspace_folder.iter_mut().for_each(|folder| self.normalise(folder));
        for diagnostic in &mut request.diagnostics {
            diagnostic.related_information.iter_mut().flatten().for_each(|place| self.normalise(&mut place.file_path));
        }
        request
    }

    fn normalise(&self, path: &mut Text) {
        if let std::borrow::Cow::Owned(normalised) = normalise(&self.env.host, &path.0) {
            path.0 = normalised;
        }
    }

    /// Returns when no link is being made, and a connected editor has told its state.
    async fn settled(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let state = self.state();
                let waits_for_word = state.status.state == LinkState::Connected && !state.has_spoken;
                if state.status.state != LinkState::Connecting && !waits_for_word {
                    return;
                }
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn prepare(&self) -> Option<Prepared> {
        let config = config::load(&self.env, &self.cwd);
        let state = self.state();
        let pending = state.gate.pending()?;
        let snapshot = &pending.snapshot;
        let candidate = state.status.candidate.as_ref();
        let reach = Reach { attached: state.gate.is_rearmed(), picked_by_hand: state.picked_by_hand };
        let workspace_folder = candidate.filter(|c| c.direct).and_then(|c| c.workspace_folder.as_deref());
        let host = &self.env.host;
        let wanted = config.share != Share::Off && (config.open_file || reach.attached || !snapshot.ranges.is_empty());
        if !wanted || !may_go_along(host, &self.cwd, workspace_folder, snapshot, reach) {
            return None;
        }
        let server_name = state.status.server.as_ref().map(|server| server.name.as_str());
        Some(Prepared {
            content: metadata_block(host, &self.cwd, snapshot, server_name),
            display_path: display_path(host, &self.cwd, &snapshot.file_path.0),
            snapshot: Arc::clone(pending),
        })
    }

    fn publish(&self, event: Event) {
        for listener in self.listeners().iter() {
            if listener.mailbox.push(event.clone()) {
                (listener.wake)();
            }
        }
        self.changed.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Shared {
    /// Takes in one event of the link: the one border where paths of the wire become paths of this host.
    fn deliver(&self, event: LinkEvent) {
        let event = match event {
            LinkEvent::Selection(snapshot) => {
                let snapshot = self.received(snapshot);
                let mut state = self.state();
                state.gate.select(Arc::clone(&snapshot));
                state.has_spoken = true;
                Event::Selection { snapshot, attach: state.gate.state() }
            }
            LinkEvent::Cleared => {
                let mut state = self.state();
                state.gate.clear();
                state.has_spoken = true;
                Event::Cleared
            }
            LinkEvent::Mention(snapshot) => {
                let snapshot = self.received(snapshot);
                let mut state = self.state();
                state.gate.mention(Arc::clone(&snapshot));
                state.has_spoken = true;
                drop(state);
                let mentions = mentions(&self.env.host, &self.cwd, &snapshot.snapshot);
                Event::Mention { snapshot, mentions }
            }
            LinkEvent::DiagnosticFix(request) => Event::DiagnosticFix(Arc::new(self.received_fix(request))),
        };
        self.publish(event);
    }

    async fn room(&self) {
        let mailboxes: Vec<_> = self.listeners().iter().map(|listener| Arc::clone(&listener.mailbox)).collect();
        join_all(mailboxes.iter().map(|mailbox| mailbox.room())).await;
    }
}
