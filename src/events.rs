//! Events of a connection, and listeners for them.

use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::Function;
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::context::AttachState as BridgeAttachState;
use pi_x_ide_bridge::events::{Event, LinkState};
use pi_x_ide_bridge::follow::{Session, Subscription};
use pi_x_ide_bridge::protocol::json_rpc;

use crate::diagnostics::DiagnosticFix;
use crate::discover::Candidate;
use crate::snapshot::EditorSnapshot;

/// What a connection does.
#[napi(string_enum = "lowercase")]
pub enum ConnectionState {
    /// No editor of this folder runs; lock folders are watched.
    Searching,
    /// A scan or a handshake is under way.
    Connecting,
    /// The editor has answered.
    Connected,
    /// The editor could not be reached; another try follows.
    Waiting,
    /// Closed for good.
    Closed,
}

/// Where the latest snapshot stands: none, for the next prompt, or seen by the model.
#[napi(string_enum = "lowercase")]
pub enum AttachState {
    /// There is no snapshot.
    Idle,
    /// The next prompt takes it along.
    Pending,
    /// The model has seen it.
    Sent,
}

/// An editor's server, by its own words.
#[napi(object, object_from_js = false)]
pub struct ServerInfo {
    /// Name for people.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// Kind of editor.
    pub ide: Option<String>,
}

/// What a listener is told. Selections that were superseded before they could be delivered are left out; everything
/// else arrives, in order. `closed` is the last one.
#[napi(discriminant = "type", discriminant_case = "camelCase", object_from_js = false)]
pub enum EditorEvent {
    /// The selection or the open file changed.
    Selection {
        /// State of the editor.
        snapshot: EditorSnapshot,
        /// Where it stands with the next prompt.
        attach: AttachState,
    },
    /// There is no active editor any more.
    Cleared {},
    /// The user attached a selection in the editor.
    Mention {
        /// State of the editor.
        snapshot: EditorSnapshot,
        /// One mention per range, to be put in the input box.
        mentions: Vec<String>,
    },
    /// The user asked for a fix in the editor.
    DiagnosticFix {
        /// What is to be looked at.
        request: DiagnosticFix,
    },
    /// The connection changed its state.
    Status {
        /// What it does now.
        state: ConnectionState,
        /// The editor that it is about.
        candidate: Option<Candidate>,
        /// Who answered; present while connected.
        server: Option<ServerInfo>,
        /// Something that the user should know, once per cause.
        message: Option<String>,
    },
    /// The connection is closed for good.
    Closed {
        /// Why, as a sentence.
        reason: String,
    },
}

/// The listeners of one connection. Emptied when it is closed, so that nothing of them is left behind.
#[derive(Clone, Default)]
pub struct Listeners(Arc<Mutex<Vec<(u64, Subscription)>>>);

impl Listeners {
    /// Adds a listener; returns what removes it. A listener that throws makes an uncaught exception, as any callback.
    pub fn add<'env>(
        &self,
        env: &'env Env,
        session: &Session,
        listener: Function<'_, EditorEvent, ()>,
    ) -> Result<Function<'env, (), ()>> {
        let mailbox = Arc::new(Mutex::new(None));
        let listener = listener.create_ref()?;
        let deliver = {
            let mailbox = Arc::clone(&mailbox);
            env.create_function_from_closure("deliver", move |context| {
                let next = lock(&mailbox).as_ref().and_then(|mailbox: &Arc<_>| Mailbox::pop(mailbox));
                match next {
                    Some(event) => listener.borrow_back(context.env)?.call(EditorEvent::from(event)),
                    // The listener was removed while this call was on its way.
                    None => Ok(()),
                }
            })?
        };
        let wake = Function::<(), ()>::build_threadsafe_function::<()>(&deliver)
            .weak::<true>()
            .callee_handled::<false>()
            .build_callback(|_| Ok(()))?;
        let subscription = session.subscribe(move || {
            // Refused only when the environment goes down, and then nobody listens.
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        });
        *lock(&mailbox) = Some(subscription.mailbox());
        let id = subscription.id();
        lock(&self.0).push((id, subscription));
        let listeners = self.clone();
        env.create_function_from_closure("unsubscribe", move |_| {
            lock(&listeners.0).retain(|(other, _)| *other != id);
            Ok(())
        })
    }

    /// Removes all listeners.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }
}

type Mailbox = pi_x_ide_bridge::mailbox::Mailbox<Event>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Event> for EditorEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::Selection { snapshot, attach } => {
                Self::Selection { snapshot: EditorSnapshot::new(&snapshot, false), attach: attach.into() }
            }
            Event::Cleared => Self::Cleared {},
            Event::Mention { snapshot, mentions } => {
                Self::Mention { snapshot: EditorSnapshot::new(&snapshot, false), mentions }
            }
            Event::DiagnosticFix(request) => Self::DiagnosticFix { request: request.as_ref().into() },
            Event::Status(status) => Self::Status {
                state: status.state.into(),
                candidate: status.candidate.clone().map(Candidate::from),
                server: status.server.clone().map(ServerInfo::from),
                message: status.message.clone(),
            },
            Event::Closed { reason } => Self::Closed { reason },
        }
    }
}

impl From<LinkState> for ConnectionState {
    fn from(state: LinkState) -> Self {
        match state {
            LinkState::Searching => Self::Searching,
            LinkState::Connecting => Self::Connecting,
            LinkState::Connected => Self::Connected,
            LinkState::Waiting => Self::Waiting,
            LinkState::Closed => Self::Closed,
        }
    }
}

impl From<BridgeAttachState> for AttachState {
    fn from(state: BridgeAttachState) -> Self {
        match state {
            BridgeAttachState::Idle => Self::Idle,
            BridgeAttachState::Pending => Self::Pending,
            BridgeAttachState::Sent => Self::Sent,
        }
    }
}

impl From<json_rpc::ServerInfo> for ServerInfo {
    fn from(server: json_rpc::ServerInfo) -> Self {
        Self { name: server.name, version: server.version, ide: server.ide }
    }
}
