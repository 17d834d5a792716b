//! `diagnose`, and what a connection tells of its background work.

use std::path::{Path, PathBuf};

use napi::bindgen_prelude::{AsyncBlock, Object};
use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::discovery::{Options, SurveyedFolder};
use pi_x_ide_bridge::doctor::{self, Diagnosis as BridgeDiagnosis};
use pi_x_ide_bridge::env::{Env as BridgeEnv, Variables};
use pi_x_ide_bridge::host::Networking;
use pi_x_ide_bridge::{journal, watch};

use crate::abort::AbortListener;
use crate::discover::Candidate;
use crate::host::{absolute, env_of};
use crate::promise::{Settled, abortable};

/// How WSL reaches Windows: as the default gateway of its own network, or over loopback.
#[napi(string_enum = "lowercase")]
pub enum WslNetworking {
    /// Windows is the default gateway.
    Nat,
    /// Windows is reached over loopback; the default gateway is a stranger.
    Mirrored,
}

/// What is known of WSL.
#[napi(object, object_from_js = false)]
pub struct WslFacts {
    /// Name of the distribution; empty when unknown.
    pub distro: String,
    /// Folder below which the Windows drives are mounted.
    pub automount_root: String,
    /// How Windows is reached.
    pub networking: WslNetworking,
    /// Address of Windows; only with `nat`.
    pub gateway: Option<String>,
}

/// One lock folder that was looked at.
#[napi(object, object_from_js = false)]
pub struct LockFolder {
    /// Its path; it need not exist.
    pub path: String,
    /// Whether it belongs to a Windows profile, seen from WSL.
    pub windows: bool,
    /// Lock files in it.
    pub locks: f64,
    /// Why it was not read, or not to its end, as a sentence.
    pub problem: Option<String>,
}

/// One look at everything that decides on a connection. Carries no token.
#[napi(object, object_from_js = false)]
pub struct Diagnosis {
    /// Version of pi-x-ide.
    pub version: String,
    /// Operating system and processor, such as `linux-x64`.
    pub platform: String,
    /// Present inside WSL.
    pub wsl: Option<WslFacts>,
    /// `PI_X_IDE_HOST_OVERRIDE`, where set.
    pub host_override: Option<String>,
    /// Whether pids are looked at.
    pub pid_check: bool,
    /// Lock folders, the user's own first.
    pub folders: Vec<LockFolder>,
    /// Every lock file with its verdict, as `discover` with `all` gives them.
    pub candidates: Vec<Candidate>,
    /// Home folders, which a report for others should not name.
    pub homes: Vec<String>,
    /// What to do, as sentences; empty where nothing is to be done.
    pub advice: Vec<String>,
}

/// How a diagnosis is made.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct DiagnoseOptions<'env> {
    /// Absolute path of the folder to look at instead of the user's lock folders.
    pub lock_dir: Option<String>,
    /// Ends it early; the promise rejects with its reason.
    #[napi(ts_type = "AbortSignal")]
    pub signal: Option<Object<'env>>,
}

/// Looks at every lock folder for an editor of `cwd` (absolute), asks every port, and says what to do. Deletes nothing.
///
/// Rejects with `PIX_INVALID_ARGUMENT` only.
#[napi(catch_unwind, ts_return_type = "Promise<Diagnosis>")]
pub fn diagnose(env: &Env, cwd: String, options: Option<DiagnoseOptions>) -> Result<AsyncBlock<Settled<Diagnosis>>> {
    let options = options.unwrap_or_default();
    let abort = AbortListener::attach(env, options.signal)?;
    let (variables, lock_dir) = (Variables::current(), options.lock_dir);
    let work = async move {
        let cwd = absolute("cwd", cwd)?;
        let lock_dir = lock_dir.map(|dir| absolute("lockDir", dir)).transpose()?.map(PathBuf::from);
        let env = env_of(variables).await?;
        let options = Options { lock_dir, ..Options::default() };
        let found = doctor::diagnose(&env, &cwd, &options).await;
        Ok(Diagnosis::new(&env, found))
    };
    abortable(env, abort, work, |_, diagnosis| Ok(diagnosis))
}

impl Diagnosis {
    fn new(env: &BridgeEnv, found: BridgeDiagnosis) -> Self {
        let networking = match found.network.networking {
            Networking::WslNat => WslNetworking::Nat,
            Networking::WslMirrored | Networking::Native => WslNetworking::Mirrored,
        };
        let gateway = found.network.gateway;
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            platform: platform(),
            wsl: env.host.wsl.clone().map(|wsl| WslFacts {
                distro: wsl.distro,
                automount_root: wsl.automount_root,
                networking,
                gateway,
            }),
            host_override: env.host_override().map(str::to_owned),
            pid_check: !env.is_switched_off("PI_X_IDE_PID_CHECK"),
            folders: found.folders.into_iter().map(LockFolder::from).collect(),
            candidates: found.candidates.into_iter().map(Candidate::from).collect(),
            homes: found.homes.iter().map(|home| text(home)).collect(),
            advice: found.advice,
        }
    }
}

/// As Node.js names it.
fn platform() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        os => os,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        processor => processor,
    };
    format!("{os}-{processor}")
}

impl From<SurveyedFolder> for LockFolder {
    fn from(surveyed: SurveyedFolder) -> Self {
        Self {
            path: text(&surveyed.folder.path),
            windows: surveyed.folder.of_windows,
            locks: surveyed.locks as f64,
            problem: surveyed.problem,
        }
    }
}

/// One thing that happened in the background.
#[napi(object, object_from_js = false)]
pub struct LogEntry {
    /// When it happened last, in milliseconds since the epoch.
    pub time: f64,
    /// What happened, as a sentence.
    pub message: String,
}

/// How a lock folder is watched: by the system's events, or by a look every two seconds.
#[napi(string_enum = "lowercase")]
pub enum WatchKind {
    /// The system reports changes.
    Events,
    /// It is looked at every two seconds.
    Polling,
}

/// How one lock folder is watched.
#[napi(object, object_from_js = false)]
pub struct WatchedFolder {
    /// Path of the folder; it need not exist.
    pub path: String,
    /// How it is watched.
    pub kind: WatchKind,
    /// Why it is not watched by events, as a sentence about "it".
    pub reason: Option<String>,
}

impl From<journal::Entry> for LogEntry {
    fn from(entry: journal::Entry) -> Self {
        Self { time: entry.time as f64, message: entry.message }
    }
}

impl From<watch::WatchedFolder> for WatchedFolder {
    fn from(folder: watch::WatchedFolder) -> Self {
        let reason = folder.polled.map(|polled| polled.to_string());
        let kind = if reason.is_some() { WatchKind::Polling } else { WatchKind::Events };
        Self { path: text(&folder.path), kind, reason }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
