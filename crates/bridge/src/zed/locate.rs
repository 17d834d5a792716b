//! Where Zed keeps its databases. Blocks on small looks at the file system.

use std::path::{Path, PathBuf};

use crate::env::{Env, windows_profiles};
use crate::paths::{Os, is_on_windows_drive};

/// Release channels that keep workspaces, with their names for people.
const CHANNELS: &[(&str, &str)] =
    &[("stable", "Zed"), ("preview", "Zed Preview"), ("nightly", "Zed Nightly"), ("dev", "Zed Dev")];

/// Sandboxed builds see this folder of the home folder as their data folder.
const FLATPAKS: &[&str] = &["dev.zed.Zed", "dev.zed.Zed-Preview"];

/// A database that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// `Zed`, or the name of another channel.
    pub name: String,
    /// Whether its Zed runs where this process cannot see it, on Windows or in a sandbox, or is not to be looked for
    /// (`PI_X_IDE_PID_CHECK=0`): then the age of the file tells.
    pub is_across: bool,
    /// Whether the file lies on a drive of Windows, seen from WSL, where SQLite cannot be used in place.
    pub is_on_windows: bool,
}

/// The databases of this user: of every channel, in every folder that Zed may use; only that of `PI_X_IDE_ZED_DB` where
/// the variable is set, and none with `PI_X_IDE_ZED=off`.
pub fn places(env: &Env) -> Vec<Place> {
    if env.is_switched_off("PI_X_IDE_ZED") {
        return Vec::new();
    }
    if let Some(path) = env.var("PI_X_IDE_ZED_DB") {
        return place_at(env, &env.localise(path), "Zed", false).into_iter().collect();
    }
    let mut found: Vec<Place> = Vec::new();
    for (data, is_across) in data_folders(env) {
        for (channel, name) in CHANNELS {
            let path = data.join("db").join(format!("0-{channel}")).join("db.sqlite");
            let place = path.to_str().and_then(|path| place_at(env, path, name, is_across));
            found.extend(place.filter(|place| !found.iter().any(|other| other.path == place.path)));
        }
    }
    found
}

/// The database at a path, if there is one.
pub fn place_at(env: &Env, path: &str, name: &str, is_across: bool) -> Option<Place> {
    let is_on_windows = is_on_windows_drive(&env.host, path);
    let path = PathBuf::from(path);
    let is_across = is_across || is_on_windows || env.is_switched_off("PI_X_IDE_PID_CHECK");
    path.is_file().then(|| Place { path, name: name.to_owned(), is_across, is_on_windows })
}

/// Data folders, and whether their Zed cannot be seen from here.
fn data_folders(env: &Env) -> Vec<(PathBuf, bool)> {
    let home = env.home.as_deref();
    let absolute = |name| env.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let in_home = |path: &str| home.map(|home| home.join(path));
    match env.host.os {
        Os::MacOs => in_home("Library/Application Support/Zed").map(|path| (path, false)).into_iter().collect(),
        Os::Windows => {
            let local = absolute("LOCALAPPDATA").or_else(|| in_home(r"AppData\Local"));
            local.map(|local| (local.join("Zed"), false)).into_iter().collect()
        }
        Os::Linux => {
            let xdg = ["FLATPAK_XDG_DATA_HOME", "XDG_DATA_HOME"].into_iter().filter_map(absolute);
            let own = xdg.chain(in_home(".local/share")).map(|data| (data.join("zed"), false));
            let sandboxed = FLATPAKS.iter().filter_map(|id| in_home(&format!(".var/app/{id}/data/zed")));
            let profiles = windows_profiles(env).into_iter().map(|profile| profile.join("AppData/Local/Zed"));
            own.chain(sandboxed.chain(profiles).map(|data| (data, true))).collect()
        }
    }
}

/// The folder of a database.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::FakeWsl;

    fn make(data: &Path, channel: &str) -> PathBuf {
        let path = data.join("db").join(format!("0-{channel}")).join("db.sqlite");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn every_channel_in_every_folder_is_found_once() {
        let wsl = FakeWsl::new();
        let home = wsl.env(&[]).home.unwrap();
        let profile = wsl.drive('c').join("Users/me");
        let expected = [
            make(&home.join("xdg/zed"), "stable"),
            make(&home.join("xdg/zed"), "nightly"),
            make(&home.join(".local/share/zed"), "preview"),
            make(&home.join(".var/app/dev.zed.Zed/data/zed"), "stable"),
            make(&profile.join("AppData/Local/Zed"), "stable"),
        ];
        make(&home.join(".local/share/zed"), "global");
        fs::create_dir_all(home.join(".local/share/zed/db/0-dev/db.sqlite")).unwrap();
        let xdg = home.join("xdg");
        let xdg = xdg.to_str().unwrap();
        let env = wsl.env(&[("XDG_DATA_HOME", xdg), ("FLATPAK_XDG_DATA_HOME", xdg)]);
        let found = places(&env);
        assert_eq!(found.iter().map(|place| place.path.clone()).collect::<Vec<_>>(), expected);
        let names: Vec<_> = found.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["Zed", "Zed Nightly", "Zed Preview", "Zed", "Zed"]);
        assert_eq!(found.iter().filter(|place| place.is_across).count(), 2);
        assert_eq!(found.iter().filter(|place| place.is_on_windows).count(), 1);
    }

    #[test]
    fn a_named_database_is_the_only_one() {
        let wsl = FakeWsl::new();
        let home = wsl.env(&[]).home.unwrap();
        make(&home.join(".local/share/zed"), "stable");
        let other = make(&wsl.drive('c').join("x"), "stable");
        let found = places(&wsl.env(&[("PI_X_IDE_ZED_DB", r" C:\x\db\0-stable\db.sqlite ")]));
        assert_eq!(found.iter().map(|place| &place.path).collect::<Vec<_>>(), [&other]);
        assert!(found[0].is_on_windows);
        assert_eq!(places(&wsl.env(&[("PI_X_IDE_ZED_DB", "/absent")])), []);
    }
}
