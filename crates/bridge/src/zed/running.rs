//! Whether Zed runs: what it left behind in its database is nobody's present state. Blocks.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind, get_current_pid};

use super::database::log_of;
use super::locate::Place;
use crate::env::Env;
use crate::process::may_be_alive;

/// Where the process cannot be seen, state that was not touched for so long is not the present one.
const FRESH_FOR: Duration = Duration::from_hours(12);

/// What tells that Zed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Running {
    /// Its process.
    Process(u64),
    /// Its database, which was written a short time ago.
    Written,
}

impl Running {
    /// Looks for it; `None` when it does not run, or has not touched its state since before this boot.
    pub(super) fn find(env: &Env, place: &Place) -> Option<Self> {
        let written = last_written(&place.path)?;
        let boot = UNIX_EPOCH + Duration::from_secs(System::boot_time().unwrap_or(0));
        if written < boot {
            return None;
        }
        // That of Windows cannot be seen from WSL.
        let may_be_seen = !place.is_on_windows && !env.is_switched_off("PI_X_IDE_PID_CHECK");
        if let Some(pid) = may_be_seen.then(process_of_zed).flatten() {
            return Some(Self::Process(pid));
        }
        (place.is_across && is_fresh(env, written)).then_some(Self::Written)
    }

    /// Whether it still does; cheap.
    pub(super) fn still(self, env: &Env, place: &Place) -> bool {
        match self {
            Self::Process(pid) => may_be_alive(pid),
            Self::Written => last_written(&place.path).is_some_and(|written| is_fresh(env, written)),
        }
    }

    pub(super) fn pid(self) -> Option<u64> {
        match self {
            Self::Process(pid) => Some(pid),
            Self::Written => None,
        }
    }
}

fn is_fresh(env: &Env, written: SystemTime) -> bool {
    env.now().duration_since(written).unwrap_or(Duration::ZERO) <= FRESH_FOR
}

/// The last write to a database: of its log, and of itself where there is none.
pub(super) fn last_written(path: &Path) -> Option<SystemTime> {
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    modified(&log_of(path)).into_iter().chain(modified(path)).max()
}

/// A process of this user whose executable is Zed.
fn process_of_zed() -> Option<u64> {
    let mut system = System::new().ok()?;
    let what = ProcessRefreshKind::nothing()
        .with_exe(UpdateKind::OnlyIfNotSet)
        .with_user(UpdateKind::OnlyIfNotSet)
        .without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
    let own = system.process(get_current_pid().ok()?)?.user_id().cloned();
    let mut zeds = system.processes().iter().filter(|(_, process)| {
        own.as_ref().is_none_or(|own| process.user_id() == Some(own)) && process.exe().is_some_and(is_zed)
    });
    zeds.next().map(|(pid, _)| u64::from(pid.as_u32()))
}

/// By the name of the executable, which an update may have replaced, and which distributions wrap.
fn is_zed(executable: &Path) -> bool {
    let Some(name) = executable.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let name = name.trim_end_matches(" (deleted)").to_ascii_lowercase();
    let name = name.trim_start_matches('.').trim_end_matches("-wrapped").trim_end_matches(".exe");
    // The daemon of ZFS has the same name.
    let is_daemon = executable.parent().is_some_and(|folder| folder.ends_with("sbin"));
    matches!(name, "zed-editor" | "zed") && !is_daemon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zed_is_known_by_its_executable() {
        for path in [
            "/home/u/.local/zed.app/libexec/zed-editor",
            "/home/u/.local/zed.app/libexec/zed-editor (deleted)",
            "/nix/store/x-zed/libexec/.zed-editor-wrapped",
            "/Applications/Zed Preview.app/Contents/MacOS/zed",
            "/c/Zed.exe",
        ] {
            assert!(is_zed(Path::new(path)), "{path}");
        }
        for path in ["/usr/sbin/zed", "/usr/bin/zeditor-helper", "/usr/bin/zedtool", "/", "/usr/bin/node"] {
            assert!(!is_zed(Path::new(path)), "{path}");
        }
    }
}
