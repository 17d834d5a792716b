//! An explicit snapshot of everything outside that decides behaviour: environment, home, platform, clock.
//!
//! Taken once per call at the edge; every other module gets `&Env` and reads nothing global.

mod wsl;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

pub use crate::blocking::Patience;
use crate::paths::{Host, Os, PathMapping, normalise, respell};
use crate::protocol::snapshot::hex;
pub use wsl::{WslNetworking, networking as wsl_networking, windows_profiles};

/// Environment, home folder, platform and clock of this process, at the time it was taken.
#[derive(Debug, Clone)]
pub struct Env {
    /// Environment variables whose name and value are Unicode.
    pub vars: HashMap<String, String>,
    /// Home folder of the user.
    pub home: Option<PathBuf>,
    /// What path rules depend on.
    pub host: Host,
    /// 16 hex digits that name this machine, where it has a machine id.
    pub host_id: Option<String>,
    /// Where folders of an editor lie for this process, of the configuration.
    pub path_map: Vec<PathMapping>,
    /// Time source.
    pub clock: Clock,
    /// Folder that holds `etc`, `proc` and `sys`: `/`, another one in tests.
    pub system_root: PathBuf,
    /// What of this process hangs; to be shared by all its snapshots.
    pub patience: Patience,
}

/// Time source; fixed in tests.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The system's.
    System,
    /// Always this time.
    Fixed(SystemTime),
}

impl Clock {
    /// Present time.
    pub fn now(self) -> SystemTime {
        match self {
            Self::System => SystemTime::now(),
            Self::Fixed(time) => time,
        }
    }
}

/// The part of an [`Env`] that only the thread which owns the environment may take: beside a `setenv` of another
/// thread, reading a variable can crash the process.
#[derive(Debug, Clone)]
pub struct Variables {
    vars: HashMap<String, String>,
    home: Option<PathBuf>,
}

impl Variables {
    /// Given variables instead of this process's.
    pub fn new(vars: HashMap<String, String>, home: Option<PathBuf>) -> Self {
        Self { vars, home }
    }

    /// Copies the variables and looks up the home folder. Some ten microseconds.
    pub fn current() -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { vars, home: std::env::home_dir() }
    }
}

impl Env {
    /// Takes the snapshot on the thread that owns the environment, see [`Env::of`].
    pub fn current() -> Self {
        Self::of(Variables::current())
    }

    /// Adds what small files tell (`/proc/version`, `/etc/machine-id`, `/etc/wsl.conf`). For any thread.
    pub fn of(variables: Variables) -> Self {
        Self::of_system(variables, Path::new("/"))
    }

    /// Like [`Env::of`], with `etc`, `proc` and `sys` in another folder.
    pub fn of_system(Variables { vars, home }: Variables, root: &Path) -> Self {
        let os = current_os();
        let wsl = if os == Os::Linux { wsl::detect(&vars, root) } else { None };
        Self {
            vars,
            home,
            host: Host { os, wsl },
            host_id: host_id(root),
            path_map: Vec::new(),
            clock: Clock::System,
            system_root: root.to_owned(),
            patience: Patience::default(),
        }
    }

    /// A variable's value with blanks cut off; unset and blank are the same.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Whether a variable is one of `0`, `false`, `off`, `no` (any case).
    pub fn is_switched_off(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "off" | "no"))
    }

    /// Present time.
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// Present time in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        millis(self.now())
    }

    /// `~/.pi/pi-x-ide`, the folder of locks and configuration.
    pub fn own_dir(&self) -> Option<PathBuf> {
        self.home.as_deref().map(own_dir_in)
    }

    /// `~/.pi/pi-x-ide/lock`. Protocol: "Lock files".
    pub fn lock_dir(&self) -> Option<PathBuf> {
        self.home.as_deref().map(Self::lock_dir_in)
    }

    /// The lock folder of somebody with this home folder.
    pub fn lock_dir_in(home: &Path) -> PathBuf {
        own_dir_in(home).join("lock")
    }

    /// `PI_X_IDE_HOST_OVERRIDE`: the host that the user wants dialled for every editor.
    pub fn host_override(&self) -> Option<&str> {
        self.var("PI_X_IDE_HOST_OVERRIDE")
    }

    /// A path that an editor reported, in this host's form and where it lies for this process. Every such path passes
    /// here once. Protocol: "WSL2 discovery and host resolution".
    pub fn localise<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let normalised = normalise(&self.host, path);
        match respell(&self.host, &self.path_map, &normalised) {
            Some(mapped) => Cow::Owned(mapped),
            None => normalised,
        }
    }

    /// A path of this process as an editor knows it: the other way round, as far as the configuration maps folders.
    pub fn delocalise<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let back: Vec<_> = self.path_map.iter().map(PathMapping::reversed).collect();
        respell(&self.host, &back, path).map_or(Cow::Borrowed(path), Cow::Owned)
    }

    /// Adds variables of the global configuration; the real environment wins.
    pub fn with_defaults(mut self, defaults: &HashMap<String, String>) -> Self {
        for (name, value) in defaults {
            self.vars.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }
}

fn own_dir_in(home: &Path) -> PathBuf {
    home.join(".pi").join("pi-x-ide")
}

/// Milliseconds since the epoch; 0 before it.
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn current_os() -> Os {
    match std::env::consts::OS {
        "windows" => Os::Windows,
        "macos" => Os::MacOs,
        _ => Os::Linux,
    }
}

/// Hashed, so that the machine id itself does not leave the machine with a synced home folder.
fn host_id(root: &Path) -> Option<String> {
    let id = ["etc/machine-id", "var/lib/dbus/machine-id"].iter().find_map(|file| {
        let id = std::fs::read_to_string(root.join(file)).ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    })?;
    Some(hex(&Sha256::digest(format!("pi-x-ide host {id}"))[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_environment_wins_over_defaults() {
        let mut env = Env::current();
        env.vars.insert("PI_X_IDE_A".into(), " real ".into());
        let defaults = [("PI_X_IDE_A", "file"), ("PI_X_IDE_B", "file")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let env = env.with_defaults(&HashMap::from(defaults));
        assert_eq!((env.var("PI_X_IDE_A"), env.var("PI_X_IDE_B")), (Some("real"), Some("file")));
    }

    #[test]
    fn host_id_has_sixteen_digits() {
        let ours = host_id(Path::new("/"));
        assert!(ours.is_none_or(|id| id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    }
}
