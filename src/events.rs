//! Events of a connection, and listeners for them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use napi::bindgen_prelude::{Function, JsObjectValue, Object, Unknown};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Error, Result};
use napi_derive::napi;
use pi_x_ide_bridge::context::AttachState as BridgeAttachState;
use pi_x_ide_bridge::events::{Event, LinkState};
use pi_x_ide_bridge::follow::{Session, Subscription};
use pi_x_ide_bridge::protocol::json_rpc;
use serde::Serialize;

use crate::diagnostics::DiagnosticFix;
use crate::discover::Candidate;
use crate::snapshot::EditorSnapshot;

/// What a connection does.
#[napi(string_enum = "lowercase")]
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Serialize)]
pub struct ServerInfo {
    /// Name for people.
    pub name: String,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ide: Option<String>,
}

/// What a listener is told. Selections that were superseded before they could be delivered are left out; everything
/// else arrives, in order. `closed` is the last one.
#[expect(clippy::large_enum_variant, reason = "each is turned into JSON at once")]
#[napi(discriminant = "type", discriminant_case = "camelCase", object_from_js = false)]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        candidate: Option<Candidate>,
        /// Who answered; present while connected.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<ServerInfo>,
        /// Something that the user should know, once per cause.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Something in the background that the user should know, once per cause.
    Error {
        /// Stable code, `PIX_WATCH_LIMIT`: the system watches no more folders, so that lock folders are looked at every
        /// two seconds.
        code: String,
        /// What is wrong, as sentences.
        message: String,
    },
    /// The connection is closed for good.
    Closed {
        /// Why, as a sentence.
        reason: String,
    },
}

/// The listeners of one connection. Each keeps the connection open, as a socket's does, until it is removed, the
/// connection is closed, or it has heard `closed`; then nothing of it is left behind.
#[derive(Clone, Default)]
pub struct Listeners(Arc<Mutex<Vec<(u64, Subscription)>>>);

impl Listeners {
    /// Adds a listener; returns what removes it. A listener that throws makes an uncaught exception, as any callback.
    pub fn add<'env>(
        &self,
        env: &'env Env,
        session: &Arc<Session>,
        listener: Function<'_, Unknown<'static>, ()>,
    ) -> Result<Function<'env, (), ()>> {
        let own = Arc::new(OnceLock::<(u64, Arc<Mailbox>)>::new());
        let deliver = {
            let (own, listeners, session) = (Arc::clone(&own), self.clone(), Arc::clone(session));
            let listener = listener.create_ref()?;
            // One text that the engine parses: no dearer than an object made member by member, and one place for its
            // shape.
            let json: Object<'_> = env.get_global()?.get_named_property("JSON")?;
            let parse: Function<'_, String, Unknown<'_>> = json.get_named_property("parse")?;
            let parse = parse.create_ref()?;
            env.create_function_from_closure::<(), (), _>("deliver", move |context| {
                // Nothing is left when the listener was removed while this call was on its way.
                let Some((id, event)) = own.get().and_then(|(id, mailbox)| Some((*id, mailbox.pop()?))) else {
                    return Ok(());
                };
                let _open = &session;
                if matches!(event, Event::Closed { .. }) {
                    listeners.remove(id);
                }
                let event = serde_json::to_string(&EditorEvent::from(event))
                    .map_err(|error| Error::from_reason(error.to_string()))?;
                let event = parse.borrow_back(context.env)?.call(event)?;
                listener.borrow_back(context.env)?.call(event)
            })?
        };
        let wake = deliver
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .callee_handled::<false>()
            .build_callback(|_| Ok(()))?;
        let subscription = session.subscribe(move || {
            // Refused only when the environment goes down, and then nobody listens.
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        });
        let id = subscription.id();
        // Set once, before the first call can be delivered: this thread delivers them.
        let _ = own.set((id, subscription.mailbox()));
        self.lock().push((id, subscription));
        let listeners = self.clone();
        env.create_function_from_closure::<(), (), _>("unsubscribe", move |_| {
            listeners.remove(id);
            Ok(())
        })
    }

    /// Removes all listeners.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn remove(&self, id: u64) {
        let mut all = self.lock();
        let removed = all.iter().position(|(other, _)| *other == id).map(|at| all.swap_remove(at));
        drop(all);
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Subscription)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Mailbox = pi_x_ide_bridge::mailbox::Mailbox<Event>;

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
            Event::Error { code, message } => Self::Error { code: code.to_owned(), message },
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
