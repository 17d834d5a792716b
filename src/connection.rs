//! `connect`, `connectBest` and the connection they give.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{AsyncBlock, Function, Object, Unknown};
use napi::{Env, Result, ValueType};
use napi_derive::napi;
use pi_x_ide_bridge::connection::Timings;
use pi_x_ide_bridge::discovery::Options as DiscoveryOptions;
use pi_x_ide_bridge::env::{Env as BridgeEnv, Variables};
use pi_x_ide_bridge::follow::{self, Options, Prepared, Session};

use crate::abort::AbortListener;
use crate::diagnose::{LogEntry, WatchedFolder};
use crate::discover::Candidate;
use crate::events::{AttachState, ConnectionState, Listeners, ServerInfo};
use crate::failure::Failure;
use crate::host::{absolute, env_of};
use crate::promise::{Settled, abortable, millis, promise};
use crate::snapshot::{EditorSnapshot, Selection};

/// How a connection to one editor is made.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ConnectOptions<'env> {
    /// pi's folder (absolute), which mentions and blocks are relative to. Default: the process's.
    pub cwd: Option<String>,
    /// Limit for socket and handshake together, in milliseconds. Default: 5000.
    pub timeout_ms: Option<f64>,
    /// `hash` of what this pi session injected last: the same selection then counts as sent.
    pub last_injected: Option<String>,
    /// Ends the attempt early; the promise rejects with its reason.
    #[napi(ts_type = "AbortSignal")]
    pub signal: Option<Object<'env>>,
}

/// How the best editor is found and kept.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct ConnectBestOptions<'env> {
    /// Never null: a connection that follows editors as they come, go and reload, until `close()`. Default: false.
    pub keep_alive: Option<bool>,
    /// Absolute path of the folder to look at instead of the user's lock folders.
    pub lock_dir: Option<String>,
    /// Whether the pid in a lock file tells if its editor lives. Default: true.
    pub check_pid: Option<bool>,
    /// Limit for socket and handshake of one editor together, in milliseconds. Default: 5000.
    pub timeout_ms: Option<f64>,
    /// `hash` of what this pi session injected last: the same selection then counts as sent.
    pub last_injected: Option<String>,
    /// Ends the attempt early; the promise rejects with its reason.
    #[napi(ts_type = "AbortSignal")]
    pub signal: Option<Object<'env>>,
}

/// What of the latest snapshot is wanted.
#[napi(object, object_to_js = false)]
pub struct LatestOptions {
    /// With the selected text. Default: false.
    pub text: Option<bool>,
}

/// How a context is prepared.
#[napi(object, object_to_js = false)]
pub struct PrepareOptions {
    /// Longest wait for a connection that is being made and for the editor's first word, in milliseconds. Default: 0.
    pub wait_ms: Option<f64>,
}

/// The text for one prompt and what it is about. Does not change any more.
#[napi(object)]
pub struct PreparedContext {
    /// Type of pi's custom message.
    pub custom_type: String,
    /// Text for the model.
    pub content: String,
    /// Names the selection; to be kept with the message, see `lastInjected`.
    pub hash: String,
    /// Kind of editor.
    pub source: String,
    /// Path of the file in this host's form.
    pub file_path: String,
    /// The file as pi shows it: relative where it is inside pi's folder. Not escaped.
    pub display_path: String,
    /// Selected ranges.
    pub ranges: Vec<Selection>,
    /// The ranges as people count them: `L10` or `L10-L20`.
    pub range_labels: Vec<String>,
}

/// File name and line ranges for one line on the screen. Neither cut nor escaped.
#[napi(object, object_from_js = false)]
pub struct Label {
    /// `foo.ts`
    pub name: String,
    /// To be put behind the name: `#L10-L20`, or ` 1:#L1 2:#L5-L6`, or empty.
    pub ranges: String,
}

/// Connects to one editor. The connection ends when the editor ends it.
///
/// Rejects with a `PIX_…` code: `PIX_LOCK_GONE`, `PIX_NOT_USABLE`, `PIX_HOST_REFUSED`, `PIX_UNREACHABLE`,
/// `PIX_TIMEOUT`,
/// `PIX_REFUSED`, `PIX_HANDSHAKE`, `PIX_CLOSED`, `PIX_INITIALIZE_REFUSED`, `PIX_PROTOCOL_VERSION`,
/// `PIX_INVALID_ARGUMENT`. Protocol: "Handshake".
#[napi(catch_unwind, ts_return_type = "Promise<Connection>")]
pub fn connect(
    env: &Env,
    candidate: Candidate,
    options: Option<ConnectOptions>,
) -> Result<AsyncBlock<Settled<Connection>>> {
    let options = options.unwrap_or_default();
    let abort = AbortListener::attach(env, options.signal)?;
    let (cwd, timeout, last_injected) = (options.cwd, options.timeout_ms, options.last_injected);
    let variables = Variables::current();
    let work = async move {
        let cwd = absolute("cwd", cwd.map_or_else(process_folder, Ok)?)?;
        let limit = limit(timeout)?;
        let env = env_of(variables).await?;
        let options = Options { timings: timings(&env, limit), last_injected, ..Options::default() };
        Ok(follow::connect(env, cwd, candidate.into(), options).await?)
    };
    abortable(env, abort, work, |_, session| Ok(Connection::new(session)))
}

/// Connects to the editor that has `cwd` (absolute) open, the next one where the best cannot be reached.
///
/// Null when no editor has it open; rejects with `PIX_UNREACHABLE` and a cause per editor when all fail. With
/// `keepAlive` it resolves at once, with a connection that may still be `connecting` or `searching`.
#[napi(catch_unwind, ts_return_type = "Promise<Connection | null>")]
pub fn connect_best(
    env: &Env,
    cwd: String,
    options: Option<ConnectBestOptions>,
) -> Result<AsyncBlock<Settled<Option<Connection>>>> {
    let options = options.unwrap_or_default();
    let abort = AbortListener::attach(env, options.signal)?;
    let keep_alive = options.keep_alive.unwrap_or(false);
    let (lock_dir, check_pid) = (options.lock_dir, options.check_pid.unwrap_or(true));
    let (timeout, last_injected) = (options.timeout_ms, options.last_injected);
    let variables = Variables::current();
    let work = async move {
        let cwd = absolute("cwd", cwd)?;
        let lock_dir = lock_dir.map(|dir| absolute("lockDir", dir)).transpose()?.map(PathBuf::from);
        let discovery = DiscoveryOptions { check_pid, lock_dir, ..DiscoveryOptions::default() };
        let limit = limit(timeout)?;
        let env = env_of(variables).await?;
        let options = Options { discovery, timings: timings(&env, limit), last_injected };
        if keep_alive {
            Ok(Some(follow::follow(env, cwd, options)))
        } else {
            Ok(follow::connect_best(env, cwd, options).await?)
        }
    };
    abortable(env, abort, work, |_, session| Ok(session.map(Connection::new)))
}

/// One editor, whatever the transport.
#[napi]
pub struct Connection {
    session: Arc<Session>,
    listeners: Listeners,
}

impl Connection {
    pub fn new(session: Session) -> Self {
        Self { session: Arc::new(session), listeners: Listeners::default() }
    }
}

#[napi]
impl Connection {
    /// The editor that it is connected to or tries to reach.
    #[napi(getter, catch_unwind)]
    pub fn candidate(&self) -> Option<Candidate> {
        self.session.status().candidate.clone().map(Candidate::from)
    }

    /// Who answered; null while not connected.
    #[napi(getter, catch_unwind)]
    pub fn server(&self) -> Option<ServerInfo> {
        self.session.status().server.clone().map(ServerInfo::from)
    }

    /// What it does now.
    #[napi(getter, catch_unwind)]
    pub fn state(&self) -> ConnectionState {
        self.session.status().state.into()
    }

    /// What went wrong last, as a sentence; null while all is well.
    #[napi(getter, catch_unwind)]
    pub fn message(&self) -> Option<String> {
        self.session.trouble()
    }

    /// What went wrong in the background, oldest first; the last hundred entries. `PI_X_IDE_LOG` names a file (absolute
    /// path) that gets them as well.
    #[napi(catch_unwind)]
    pub fn log(&self) -> Vec<LogEntry> {
        self.session.journal().into_iter().map(LogEntry::from).collect()
    }

    /// How each lock folder is watched; empty without `keepAlive`.
    #[napi(catch_unwind)]
    pub fn watching(&self) -> Vec<WatchedFolder> {
        self.session.watched_folders().into_iter().map(WatchedFolder::from).collect()
    }

    /// Where the latest snapshot stands with the next prompt.
    #[napi(getter, catch_unwind)]
    pub fn attach_state(&self) -> AttachState {
        self.session.attach_state().into()
    }

    /// The latest snapshot; null while no file is open or no editor is connected.
    #[napi(catch_unwind)]
    pub fn latest(&self, options: Option<LatestOptions>) -> Option<EditorSnapshot> {
        let with_text = options.and_then(|options| options.text).unwrap_or(false);
        self.session.latest().map(|latest| EditorSnapshot::new(&latest, with_text))
    }

    /// File name and line ranges of the latest snapshot; null where there is none.
    #[napi(catch_unwind)]
    pub fn label(&self) -> Option<Label> {
        self.session.label().map(|(name, ranges)| Label { name, ranges })
    }

    /// Adds a listener, which does not keep the process alive. It hears what comes from now on; the first one also what
    /// was said once before, such as a mention. What is there already tell `state` and `latest()`. Returns a function
    /// that removes it: it is not called afterwards, not even for what was on its way.
    #[napi(catch_unwind, ts_return_type = "() => void")]
    pub fn on_event<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "(event: EditorEvent) => void")] listener: Unknown<'_>,
    ) -> Result<Function<'env, (), ()>> {
        if listener.get_type()? != ValueType::Function {
            return Err(Failure::invalid("the listener must be a function").into_error(env));
        }
        // SAFETY: it is a function, and JavaScript functions take any arguments and may return anything.
        let listener: Function<'_, Unknown<'static>, ()> = unsafe { listener.cast()? };
        self.listeners.add(env, &self.session, listener)
    }

    /// Mentions of the latest snapshot, one per range; empty where there is none.
    #[napi(catch_unwind)]
    pub fn mentions(&self) -> Vec<String> {
        self.session.mentions()
    }

    /// The text for the prompt that starts now; null when nothing is pending or it may not go along.
    ///
    /// Configuration (`share`, `openFile`) is read anew. Rejects with `PIX_INVALID_ARGUMENT` only.
    #[napi(catch_unwind, ts_return_type = "Promise<PreparedContext | null>")]
    pub fn prepare_context(
        &self,
        env: &Env,
        options: Option<PrepareOptions>,
    ) -> Result<AsyncBlock<Option<PreparedContext>>> {
        let session = Arc::clone(&self.session);
        let work = async move {
            let wait = millis("waitMs", options.and_then(|options| options.wait_ms), 0.0)?;
            Ok(session.prepare(wait.unwrap_or(Duration::ZERO)).await)
        };
        promise(env, work, |_, prepared| Ok(prepared.map(PreparedContext::from)))
    }

    /// The model has seen what was prepared: it counts as sent until another selection, an attach or a mention.
    #[napi(catch_unwind)]
    pub fn mark_injected(&self, prepared: PreparedContext) {
        self.session.mark_injected(prepared.hash);
    }

    /// Makes the latest snapshot pending again.
    #[napi(catch_unwind)]
    pub fn attach(&self) {
        self.session.attach();
    }

    /// Closes the present link and connects to this editor instead. Rejects as `connect` does, and with
    /// `PIX_SUPERSEDED` when another call came first.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn switch_to(&self, env: &Env, candidate: Candidate) -> Result<AsyncBlock<()>> {
        let outcome = self.session.switch_to(candidate.into());
        promise(env, async { Ok(outcome.await?) }, |_, ()| Ok(()))
    }

    /// Closes for good; resolves after the last event was delivered. Closing twice is the same as once.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn close(&self, env: &Env) -> Result<AsyncBlock<()>> {
        let (closed, listeners) = (self.session.close(), self.listeners.clone());
        let work = async {
            closed.await;
            Ok(())
        };
        promise(env, work, move |_, ()| {
            listeners.clear();
            Ok(())
        })
    }
}

pub fn process_folder() -> std::result::Result<String, Failure> {
    let folder = std::env::current_dir().map_err(|error| Failure::invalid(format!("no cwd: {error}")))?;
    folder.into_os_string().into_string().map_err(|_| Failure::invalid("the process's folder is not UTF-8: pass cwd"))
}

/// The limit that JavaScript gave, judged before anything is read.
fn limit(timeout_ms: Option<f64>) -> std::result::Result<Option<Duration>, Failure> {
    millis("timeoutMs", timeout_ms, 1.0)
}

fn timings(env: &BridgeEnv, limit: Option<Duration>) -> Timings {
    let default = Timings::of(env);
    Timings { connect: limit.unwrap_or(default.connect), ..default }
}

impl From<Prepared> for PreparedContext {
    fn from(prepared: Prepared) -> Self {
        let snapshot = &prepared.snapshot.snapshot;
        Self {
            custom_type: "pi-x-ide/context".into(),
            content: prepared.content,
            hash: prepared.snapshot.content_hash.clone(),
            source: snapshot.source.clone(),
            file_path: snapshot.file_path.0.clone(),
            display_path: prepared.display_path,
            ranges: snapshot.ranges.iter().map(|range| range.selection.into()).collect(),
            range_labels: snapshot.ranges.iter().map(|range| range.selection.line_label()).collect(),
        }
    }
}
