//! What pi holds of a connection, whatever the link does underneath.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::error::ConnectError;
use super::state::{Prepared, Shared};
use crate::config;
use crate::connection;
use crate::context::{AttachState, label, mentions};
use crate::discovery::Candidate;
use crate::events::{Event, Status};
use crate::journal;
use crate::mailbox::Mailbox;
use crate::protocol::snapshot::HashedSnapshot;
use crate::watch::{FolderWatch, WatchedFolder};

/// A closing session does not wait longer for listeners that take nothing any more.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// What a session asks of its driver.
pub(super) enum Command {
    SwitchTo(Box<Candidate>, SwitchReply),
    /// The user has submitted a prompt.
    Prompted,
    Close,
}

/// Where the outcome of a switch goes.
pub(super) type SwitchReply = oneshot::Sender<Result<(), ConnectError>>;

/// One editor as pi sees it, whatever the link does underneath. Dropping it closes the link.
pub struct Session {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    ended: watch::Receiver<bool>,
    /// The driver's, which ends with it.
    watch: Weak<FolderWatch>,
}

/// A listener's mailbox; dropping it ends the subscription.
pub struct Subscription {
    id: u64,
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox<Event>>,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        commands: mpsc::UnboundedSender<Command>,
        ended: watch::Receiver<bool>,
        watch: Weak<FolderWatch>,
    ) -> Self {
        Self { shared, commands, ended, watch }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// State of the link, and with whom.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.shared.state().status)
    }

    /// What went wrong last, as a sentence; `None` while all is well.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }

    /// What went wrong in the background, oldest first.
    pub fn journal(&self) -> Vec<journal::Entry> {
        self.shared.journal.entries()
    }

    /// How each lock folder is watched; empty for a session that follows nobody or was closed, and while a drive hangs.
    pub fn watched_folders(&self) -> Vec<WatchedFolder> {
        self.watch.upgrade().map_or_else(Vec::new, |watch| watch.folders())
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
    /// so a changed switch counts from this prompt on. The editor learns that the user prompted this pi.
    pub async fn prepare(&self, wait: Duration) -> Option<Prepared> {
        // A driver that has ended has no editor to tell.
        let _ = self.commands.send(Command::Prompted);
        // Running out of time is no fault: then there is nothing to tell.
        let _ = timeout(wait, self.shared.settled()).await;
        // Nothing is shared that the configuration does not allow, and one that cannot be read allows nothing.
        let config = config::load_in_time(&self.shared.env, &self.shared.cwd).await;
        self.shared.prepare(&config)
    }

    /// The model has seen the snapshot with this content hash.
    pub fn mark_injected(&self, content_hash: String) {
        self.shared.state().gate.mark_injected(content_hash);
    }

    /// Closes the present link and connects to this editor instead; the user's choice is kept while it lives.
    ///
    /// The command is given at once, in the order of the calls; the future tells its outcome.
    pub fn switch_to(&self, candidate: Candidate) -> impl Future<Output = Result<(), ConnectError>> + use<> {
        let (reply, outcome) = oneshot::channel();
        // A driver that has ended drops the reply, which is answer enough.
        let _ = self.commands.send(Command::SwitchTo(Box::new(candidate), reply));
        async { outcome.await.unwrap_or(Err(connection::ConnectError::Superseded.into())) }
    }

    /// Closes for good; returns when the last event was taken. Closing twice is the same as once.
    ///
    /// The command is given at once, in the order of the calls; the future tells when it is done.
    pub fn close(&self) -> impl Future<Output = ()> + use<> {
        // Fails only when the driver has ended, and then there is nothing to close.
        let _ = self.commands.send(Command::Close);
        let (shared, mut ended) = (Arc::clone(&self.shared), self.ended.clone());
        async move {
            let _ = ended.wait_for(|ended| *ended).await;
            let mailboxes = shared.mailboxes();
            let drained = join_all(mailboxes.iter().map(|mailbox| mailbox.empty()));
            let _ = timeout(DRAIN_WITHIN, drained).await;
        }
    }

    /// Adds a listener: `wake` is called once for each event that it may take.
    pub fn subscribe(&self, wake: impl Fn() + Send + 'static) -> Subscription {
        let (id, mailbox) = self.shared.add_listener(Box::new(wake));
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
        self.shared.remove_listener(self.id);
        self.mailbox.clear();
    }
}
