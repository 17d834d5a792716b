//! Paths of any host, as text: rewritten to this host's form, compared by components, shown to people.
//!
//! A leaf: everything here is pure and works for any [`Host`], so a Windows rule is tested on Linux. The one
//! exception is [`real_path`].

mod contain;
mod display;
mod mapping;
mod normalise;

use std::io;
use std::path::Path;

pub use contain::{Match, best_match, contains, folders_above, is_on_windows_drive};
pub use display::display_path;
pub use mapping::{PathMapping, respell};
pub use normalise::normalise;

/// Family of the operating system that pi runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    /// Linux, inside WSL or not.
    Linux,
    /// macOS.
    MacOs,
    /// Native Windows.
    Windows,
}

/// WSL facts that decide how a Windows path looks from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wsl {
    /// Name of the distribution; empty when unknown, and then every distribution's UNC path counts as ours.
    pub distro: String,
    /// Folder below which the Windows drives are mounted, `/mnt` by default; a trailing slash is allowed.
    pub automount_root: String,
}

/// What path rules depend on: the operating system, and WSL where pi runs in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Operating system of this process.
    pub os: Os,
    /// Present only inside WSL.
    pub wsl: Option<Wsl>,
}

impl Host {
    /// Whether a name in another letter case is the same file by default: only on Windows.
    pub fn ignores_case(&self) -> bool {
        self.os == Os::Windows
    }
}

/// Resolves links of a path on this machine. The only function here that touches the file system.
///
/// Errors are those of the operating system: a missing part, a loop, no permission, or a name that is not UTF-8.
pub fn real_path(path: &str) -> io::Result<String> {
    let real = Path::new(path).canonicalize()?;
    real.into_os_string().into_string().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}
