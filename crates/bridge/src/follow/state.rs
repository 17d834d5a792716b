//! The state behind a session: the driver writes it, the session and its listeners read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio::sync::watch;

use crate::config::{Config, Share};
use crate::connection::{EventSink, LinkEvent};
use crate::context::{AttachGate, Reach, may_go_along, mentions, metadata_block};
use crate::env::Env;
use crate::events::{Event, LinkState, Status};
use crate::journal::Journal;
use crate::mailbox::Mailbox;
use crate::paths::{PathMapping, display_path, respell};
use crate::protocol::diagnostics::DiagnosticFix;
use crate::protocol::lenient::Text;
use crate::protocol::snapshot::{HashedSnapshot, Snapshot};

/// Events that a listener may leave lying before the editor is slowed down.
const FULL: usize = 1024;

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

/// State that the driver writes and everybody else reads.
pub(super) struct Shared {
    pub(super) env: Arc<Env>,
    pub(super) cwd: String,
    /// What went wrong in the background.
    pub(super) journal: Journal,
    state: Mutex<State>,
    listeners: Mutex<Vec<Listener>>,
    /// What was said once before the first listener came; it is told first.
    backlog: Mutex<Option<Mailbox<Event>>>,
    next_id: AtomicU64,
    changed: watch::Sender<()>,
}

pub(super) struct State {
    pub(super) status: Arc<Status>,
    pub(super) gate: AttachGate,
    picked_by_hand: bool,
    /// How paths of the connected editor are spelt from pi's folder.
    respellings: Arc<[PathMapping]>,
    /// Whether the connected editor has told its state yet.
    has_spoken: bool,
    /// What went wrong last, until it went well.
    trouble: Option<String>,
}

struct Listener {
    id: u64,
    mailbox: Arc<Mailbox<Event>>,
    wake: Box<dyn Fn() + Send>,
}

impl Shared {
    pub(super) fn new(env: Arc<Env>, cwd: String, last_injected: Option<String>) -> Self {
        let status = Arc::new(Status { state: LinkState::Connecting, candidate: None, server: None, message: None });
        let gate = AttachGate::new(last_injected);
        let state = State {
            status,
            gate,
            picked_by_hand: false,
            respellings: Arc::default(),
            has_spoken: false,
            trouble: None,
        };
        let (changed, _) = watch::channel(());
        Self {
            journal: Journal::new(&env),
            env,
            cwd,
            state: Mutex::new(state),
            listeners: Mutex::default(),
            backlog: Mutex::new(Some(Mailbox::new(FULL))),
            next_id: AtomicU64::new(0),
            changed,
        }
    }

    /// Adds a listener; `wake` is called once for each event that it may take from the mailbox.
    pub(super) fn add_listener(&self, wake: Box<dyn Fn() + Send>) -> (u64, Arc<Mailbox<Event>>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(Mailbox::new(FULL));
        let mut listeners = self.listeners();
        if let Some(backlog) = self.backlog().take() {
            while let Some(event) = backlog.pop() {
                mailbox.push(event);
                wake();
            }
        }
        listeners.push(Listener { id, mailbox: Arc::clone(&mailbox), wake });
        (id, mailbox)
    }

    pub(super) fn remove_listener(&self, id: u64) {
        self.listeners().retain(|listener| listener.id != id);
    }

    pub(super) fn mailboxes(&self) -> Vec<Arc<Mailbox<Event>>> {
        self.listeners().iter().map(|listener| Arc::clone(&listener.mailbox)).collect()
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

    /// Paths that come from now on are those of another editor.
    pub(super) fn respell_by(&self, respellings: Vec<PathMapping>) {
        self.state().respellings = respellings.into();
    }

    /// Notes what went wrong.
    pub(super) fn trouble_is(&self, trouble: String) {
        self.journal.note(trouble.clone());
        self.state().trouble = Some(trouble);
    }

    /// Forgets what went wrong: all is well.
    pub(super) fn trouble_is_over(&self) {
        self.state().trouble = None;
    }

    /// Tells the user, and remembers, something that is wrong in the background.
    pub(super) fn warn(&self, code: &'static str, message: String) {
        self.journal.note(message.clone());
        self.publish(Event::Error { code, message });
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    pub(super) fn closed(&self, reason: String) {
        self.set_status(Status { state: LinkState::Closed, candidate: None, server: None, message: None });
        self.publish(Event::Closed { reason });
    }

    fn received(&self, mut snapshot: Snapshot) -> Arc<HashedSnapshot> {
        let spell = self.speller();
        spell(&mut snapshot.file_path);
        snapshot.workspace_folder.iter_mut().for_each(&spell);
        snapshot.received_at.get_or_insert(self.env.now_ms() as f64);
        Arc::new(snapshot.into())
    }

    fn received_fix(&self, mut request: DiagnosticFix) -> DiagnosticFix {
        let spell = self.speller();
        spell(&mut request.file_path);
        request.workspace_folder.iter_mut().for_each(&spell);
        for diagnostic in &mut request.diagnostics {
            diagnostic.related_information.iter_mut().flatten().for_each(|place| spell(&mut place.file_path));
        }
        request
    }

    /// Brings a path of the wire into this host's form and pi's spelling.
    fn speller(&self) -> impl Fn(&mut Text) {
        let respellings = Arc::clone(&self.state().respellings);
        move |path| {
            let spelt = self.env.localise(&path.0);
            path.0 = respell(&self.env.host, &respellings, &spelt).unwrap_or_else(|| spelt.into_owned());
        }
    }

    /// Returns when no link is being made, and a connected editor has told its state.
    pub(super) async fn settled(&self) {
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

    pub(super) fn prepare(&self, config: &Config) -> Option<Prepared> {
        let state = self.state();
        let pending = state.gate.pending()?;
        let snapshot = &pending.snapshot;
        let candidate = state.status.candidate.as_ref();
        let reach = Reach { attached: state.gate.is_rearmed(), picked_by_hand: state.picked_by_hand };
        let host = &self.env.host;
        let workspace_folder = candidate.filter(|c| c.direct).and_then(|c| c.workspace_folder.as_deref());
        let respelt = workspace_folder.and_then(|folder| respell(host, &state.respellings, folder));
        let workspace_folder = respelt.as_deref().or(workspace_folder);
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
        let listeners = self.listeners();
        if let Some(backlog) = self.backlog().as_ref().filter(|_| event.is_told_once()) {
            if backlog.is_full() {
                backlog.pop();
            }
            backlog.push(event.clone());
        }
        for listener in listeners.iter() {
            if listener.mailbox.push(event.clone()) {
                (listener.wake)();
            }
        }
        self.changed.send_replace(());
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn backlog(&self) -> MutexGuard<'_, Option<Mailbox<Event>>> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
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
                Event::Mention { snapshot: Arc::new(snapshot.without_text()), mentions }
            }
            LinkEvent::DiagnosticFix(request) => Event::DiagnosticFix(Arc::new(self.received_fix(request))),
        };
        self.publish(event);
    }

    fn note(&self, message: String) {
        self.journal.note(message);
    }

    async fn room(&self) {
        let mailboxes = self.mailboxes();
        join_all(mailboxes.iter().map(|mailbox| mailbox.room())).await;
    }
}
