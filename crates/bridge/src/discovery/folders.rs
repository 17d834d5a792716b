//! Where lock files may lie: the user's own folder and, under WSL, that of each Windows profile.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::env::{Env, windows_profiles};
use crate::host::Network;
use crate::paths::is_on_windows_drive;
use crate::trusted::Modes;

/// One folder that may hold lock files; it need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it belongs to a Windows profile, seen from WSL.
    pub of_windows: bool,
}

/// Everything outside the lock files that a scan depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(super) folders: Vec<LockFolder>,
    pub(super) network: Network,
}

impl Surroundings {
    /// Reads them. Blocks on small files, under WSL also on Windows drives. Protocol: "WSL2 discovery".
    pub(super) fn read(env: &Env, given: Option<&Path>) -> Self {
        let profiles = windows_profiles(env);
        let network = Network::read(env, &profiles);
        let folders = match given {
            Some(_) => Self::own(env, given).folders,
            None => {
                let of_windows = profiles.iter().map(|profile| lock_folder(&Env::lock_dir_in(profile), true));
                distinct(Self::own(env, None).folders.into_iter().chain(of_windows))
            }
        };
        Self { folders, network }
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|folder| folder.path.as_path())
    }

    /// What is known without reading anything, for when Windows drives hang.
    pub(super) fn own(env: &Env, given: Option<&Path>) -> Self {
        let own = given.map(Path::to_owned).or_else(|| env.lock_dir());
        Self { folders: own.iter().map(|path| lock_folder(path, false)).collect(), network: Network::NATIVE }
    }
}

/// What the mode bits of a lock folder are worth.
pub(super) fn modes_of(env: &Env, folder: &Path) -> Modes {
    let on_windows = folder.to_str().is_some_and(|folder| is_on_windows_drive(&env.host, folder));
    if on_windows { Modes::MadeUp } else { Modes::Checked }
}

fn lock_folder(path: &Path, of_windows: bool) -> LockFolder {
    LockFolder { path: path.to_owned(), of_windows }
}

/// A home folder may be a Windows profile, and a profile may be found twice.
fn distinct(folders: impl Iterator<Item = LockFolder>) -> Vec<LockFolder> {
    let mut seen = HashSet::new();
    folders.filter(|folder| seen.insert(real_name(&folder.path))).collect()
}

/// The real path as far as it exists.
fn real_name(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::FakeWsl;

    #[test]
    fn each_profile_has_a_folder_and_no_folder_counts_twice() {
        let wsl = FakeWsl::new();
        let users = wsl.drive('c').join("Users");
        fs::create_dir_all(users.join("me")).unwrap();
        symlink(users.join("me"), users.join("old-name")).unwrap();
        let mut env = wsl.env(&[]);
        let folders = |env: &Env| Surroundings::read(env, None).folders;
        let own = |env: &Env| lock_folder(&env.lock_dir().unwrap(), false);
        let profile = lock_folder(&users.join("me/.pi/pi-x-ide/lock"), true);
        assert_eq!(folders(&env), [own(&env), profile]);
        env.home = Some(users.join("me"));
        assert_eq!(folders(&env), [own(&env)], "a home folder that is a profile");
        assert_eq!(modes_of(&env, &own(&env).path), Modes::MadeUp);
        let given = Surroundings::read(&env, Some(Path::new("/x"))).folders;
        assert_eq!(given, [lock_folder(Path::new("/x"), false)]);
        env.host.wsl = None;
        assert_eq!(folders(&env), [own(&env)]);
    }
}
