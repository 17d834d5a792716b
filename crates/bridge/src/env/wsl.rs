//! Facts of the Windows Subsystem for Linux: drives, Windows profiles, networking. Everything here is read from small
//! files; no program is started.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use configparser::ini::Ini;

use super::Env;
use crate::paths::{Wsl, normalise};

/// Profiles of Windows that belong to nobody.
const SYSTEM_PROFILES: &[&str] =
    &["all users", "default", "default user", "defaultappuser", "public", "wdagutilityaccount"];

/// How WSL reaches Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WslNetworking {
    /// Behind a network of its own: Windows is the default gateway.
    Nat,
    /// With the interfaces of Windows, or anything but NAT: the default gateway is a stranger, loopback is Windows too.
    Mirrored,
}

/// WSL facts where this is WSL. Protocol: "WSL2 discovery and host resolution".
pub(super) fn detect(vars: &HashMap<String, String>, root: &Path) -> Option<Wsl> {
    let named = vars.get("WSL_DISTRO_NAME");
    let in_wsl = named.is_some() || vars.contains_key("WSL_INTEROP") || kernel_version(root).contains("microsoft");
    in_wsl.then(|| Wsl { distro: named.cloned().unwrap_or_default(), automount_root: automount_root(root) })
}

/// How this WSL reaches Windows; blocks on small files, some of them on a Windows drive.
///
/// Anything that speaks against NAT decides, since the gateway of another mode must not get a token.
pub fn networking(env: &Env, profiles: &[PathBuf]) -> WslNetworking {
    let is_wsl1 = {
        let kernel = kernel_version(&env.system_root);
        kernel.contains("microsoft") && !kernel.contains("microsoft-standard") && !kernel.contains("wsl2")
    };
    let has_mirror_interface = env.system_root.join("sys/class/net/loopback0").exists();
    if is_wsl1 || has_mirror_interface || profiles.iter().any(|profile| configures_another_mode(profile)) {
        WslNetworking::Mirrored
    } else {
        WslNetworking::Nat
    }
}

/// Home folders of the Windows users that can be found from here, without system profiles: those of drive `C:` and
/// those that the environment tells of. Empty outside WSL. Blocks on a Windows drive.
pub fn windows_profiles(env: &Env) -> Vec<PathBuf> {
    let Some(wsl) = &env.host.wsl else {
        return Vec::new();
    };
    let users = PathBuf::from(format!("{}/c/Users", wsl.automount_root.trim_end_matches('/')));
    let entries = fs::read_dir(&users).into_iter().flatten().flatten();
    let mut profiles: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_profile(path)).collect();
    profiles.sort();
    for told in told_by_environment(env) {
        if is_profile(&told) && !profiles.contains(&told) {
            profiles.push(told);
        }
    }
    profiles
}

fn is_profile(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let is_system = SYSTEM_PROFILES.contains(&name.to_lowercase().as_str());
    !name.starts_with('.') && !is_system && path.is_dir()
}

/// Variables that `WSLENV` shares, and the folders of programs that Windows puts on the `PATH`.
fn told_by_environment(env: &Env) -> Vec<PathBuf> {
    let named = ["USERPROFILE", "LOCALAPPDATA", "APPDATA"].iter().filter_map(|name| env.var(name).map(str::to_owned));
    let split = env.var("HOMEDRIVE").zip(env.var("HOMEPATH")).map(|(drive, path)| format!("{drive}{path}"));
    let programs = env.var("PATH").into_iter().flat_map(|path| path.split(':').map(str::to_owned));
    let programs = programs.filter(|folder| above_app_data(folder).is_some());
    named
        .chain(split)
        .chain(programs)
        .filter_map(|folder| {
            let folder = normalise(&env.host, &folder).into_owned();
            let profile = above_app_data(&folder).unwrap_or(&folder).to_owned();
            profile.starts_with('/').then(|| PathBuf::from(profile))
        })
        .collect()
}

/// `/mnt/d/Users/me/AppData/Local/…` → `/mnt/d/Users/me`.
fn above_app_data(folder: &str) -> Option<&str> {
    let mut at = 0;
    for part in folder.split_inclusive(['/', '\\']) {
        if at > 0 && part.trim_end_matches(['/', '\\']).eq_ignore_ascii_case("AppData") {
            return Some(folder[..at].trim_end_matches(['/', '\\']));
        }
        at += part.len();
    }
    None
}

fn kernel_version(root: &Path) -> String {
    fs::read_to_string(root.join("proc/version")).unwrap_or_default().to_lowercase()
}

fn automount_root(root: &Path) -> String {
    let configured = ini_value(&root.join("etc/wsl.conf"), "automount", "root");
    configured.filter(|root| root.starts_with('/')).unwrap_or_else(|| "/mnt".into())
}

fn configures_another_mode(profile: &Path) -> bool {
    let mode = ini_value(&profile.join(".wslconfig"), "wsl2", "networkingMode");
    mode.is_some_and(|mode| !mode.eq_ignore_ascii_case("nat"))
}

/// A value of an INI file with its quotes cut off; `None` where there is none.
fn ini_value(file: &Path, section: &str, key: &str) -> Option<String> {
    let text = crate::trusted::read_regular(file, MAX_INI_BYTES).ok()?;
    let mut ini = Ini::new();
    ini.read(text.trim_start_matches('\u{feff}').to_owned()).ok()?;
    let value = ini.get(section, key)?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
}

/// Nobody writes a configuration of this size by hand.
const MAX_INI_BYTES: u64 = 1024 * 1024;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::testing::FakeWsl;

    #[test]
    fn the_root_of_the_drives_comes_from_wsl_conf() {
        for (conf, root) in [
            ("", "/mnt"),
            ("[automount]\nroot = /win/ # drives\n", "/win/"),
            ("\u{feff}[Automount]\r\nRoot=\"/win\"\r\n", "/win"),
            ("[automount]\nroot =\n", "/mnt"),
            ("[automount]\nroot = relative\n", "/mnt"),
            ("[other]\nroot = /x\n", "/mnt"),
            ("no section, no value\n[automount\n", "/mnt"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("etc")).unwrap();
            fs::write(folder.path().join("etc/wsl.conf"), conf).unwrap();
            assert_eq!(automount_root(folder.path()), root, "{conf:?}");
        }
    }

    #[test]
    fn profiles_are_found_on_c_and_where_the_environment_points() {
        let wsl = FakeWsl::new();
        for name in ["me", "Other User", "Public", "Default", "ALL USERS", ".hidden"] {
            fs::create_dir_all(wsl.drive('c').join("Users").join(name)).unwrap();
        }
        fs::write(wsl.drive('c').join("Users/desktop.ini"), "").unwrap();
        for name in ["two", "three", "four", "Public"] {
            fs::create_dir_all(wsl.drive('d').join("Users").join(name).join("AppData/Local")).unwrap();
        }
        let programs = format!("/usr/bin:{}/Users/three/AppData/Local/x:relative/AppData", wsl.drive('d').display());
        let env = wsl.env(&[
            ("USERPROFILE", r"D:\Users\two"),
            ("PATH", &programs),
            ("LOCALAPPDATA", r"D:\Users\four\AppData\Local"),
            ("APPDATA", r"D:\Users\Public\AppData\Roaming"),
        ]);
        let found: Vec<_> = windows_profiles(&env)
            .iter()
            .map(|path| path.strip_prefix(wsl.drives()).unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(found, ["c/Users/Other User", "c/Users/me", "d/Users/two", "d/Users/four", "d/Users/three"]);
    }

    #[test]
    fn whatever_speaks_against_nat_decides() {
        let wsl = FakeWsl::new();
        let env = wsl.env(&[]);
        let profile = wsl.drive('c').join("Users/me");
        fs::create_dir_all(&profile).unwrap();
        let now = || networking(&env, &windows_profiles(&env));
        assert_eq!(now(), WslNetworking::Nat);
        for (text, expected) in [
            ("[wsl2]\nnetworkingMode=NAT\n", WslNetworking::Nat),
            ("[wsl2]\nmemory=8GB\nNetworkingMode = Mirrored ; new\n", WslNetworking::Mirrored),
            ("[wsl2]\nnetworkingMode=virtioproxy\n", WslNetworking::Mirrored),
            ("[wsl2]\n", WslNetworking::Nat),
        ] {
            fs::write(profile.join(".wslconfig"), text).unwrap();
            assert_eq!(now(), expected, "{text}");
        }
        fs::create_dir_all(env.system_root.join("sys/class/net/loopback0")).unwrap();
        assert_eq!(now(), WslNetworking::Mirrored);
    }

    #[test]
    fn wsl_1_shares_the_network_of_windows() {
        let wsl = FakeWsl::new();
        let env = wsl.env(&[]);
        for (version, expected) in [
            ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", WslNetworking::Mirrored),
            ("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x)", WslNetworking::Nat),
            ("Linux version 6.6.0-custom-WSL2+ (me@x)", WslNetworking::Nat),
        ] {
            fs::write(env.system_root.join("proc/version"), version).unwrap();
            assert_eq!(networking(&env, &[]), expected, "{version}");
        }
    }
}
