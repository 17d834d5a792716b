//! Containment by components, and how well an editor's workspace folders fit pi's folder.

use super::{Host, Os, Wsl, normalise};

/// How the best of an editor's workspace folders relates to pi's cwd.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    /// `10000 + length` of a folder that contains cwd, else the length of cwd for a folder inside it, else 0.
    /// Lengths count characters of the resolved path.
    pub length: u32,
    /// Resolved spelling of the winning folder.
    pub folder: Option<String>,
    /// Whether the folder equals or contains cwd; only such a match connects by itself.
    pub direct: bool,
}

impl Match {
    /// Of a folder that equals or contains cwd, with the length that counts for it.
    pub fn containing(folder: String, length: u32) -> Self {
        Self { length: DIRECT + length, folder: Some(folder), direct: true }
    }

    /// Of a folder inside cwd, whose length counts.
    pub fn inside(folder: String, cwd_length: u32) -> Self {
        Self { length: cwd_length, folder: Some(folder), direct: false }
    }
}

/// Base score of a folder that contains cwd, so that it beats every folder inside cwd.
const DIRECT: u32 = 10_000;

/// The best of `folders` for `cwd`, the first one on a tie.
///
/// Folders that are empty or not absolute on this host never match, nor does a file-system root, which would claim
/// every project. Both sides are normalised and `.`, `..`, doubled and trailing separators are resolved as text.
pub fn best_match<S: AsRef<str>>(host: &Host, folders: &[S], cwd: &str, ignore_case: bool) -> Match {
    let Some(cwd) = Resolved::new(host, cwd) else {
        return Match::default();
    };
    let mut best = Match::default();
    for folder in folders {
        let Some(folder) = Resolved::new(host, folder.as_ref()).filter(|f| !f.is_root(host)) else {
            continue;
        };
        let found = if folder.contains(&cwd, ignore_case) {
            Match::containing(folder.text(host), folder.char_count())
        } else if cwd.contains(&folder, ignore_case) {
            Match::inside(folder.text(host), cwd.char_count())
        } else {
            continue;
        };
        if found.length > best.length {
            best = found;
        }
    }
    best
}

/// Whether `path` equals `folder` or lies inside it; false when either is not absolute on this host.
pub fn contains(host: &Host, folder: &str, path: &str, ignore_case: bool) -> bool {
    match (Resolved::new(host, folder), Resolved::new(host, path)) {
        (Some(folder), Some(path)) => folder.contains(&path, ignore_case),
        _ => false,
    }
}

/// The folder itself and those above it, nearest first, without file-system roots; none where it is not absolute. Made
/// one by one, since a path that comes over a wire may be of any depth.
pub fn folders_above<'a>(host: &'a Host, folder: &str) -> impl Iterator<Item = String> + use<'a> {
    let mut next = Resolved::new(host, folder);
    std::iter::from_fn(move || {
        let mut folder = next.take().filter(|folder| !folder.is_root(host))?;
        let text = folder.text(host);
        folder.parts.pop();
        next = Some(folder);
        Some(text)
    })
}

/// Whether a path of WSL lies on a drive of Windows, by the place where those are mounted.
pub fn is_on_windows_drive(host: &Host, path: &str) -> bool {
    let Some((wsl, mut path)) = host.wsl.as_ref().zip(Resolved::new(host, path)) else {
        return false;
    };
    path.parts.truncate(mount_parts(wsl).count() + 1);
    path.is_drive_mount(wsl)
}

fn mount_parts(wsl: &Wsl) -> impl Iterator<Item = &str> {
    wsl.automount_root.split('/').filter(|part| !part.is_empty())
}

/// An absolute path in parts, with `.` and `..` resolved as text.
pub(super) struct Resolved {
    /// `/`, `C:\` or `\\server\share\`.
    root: String,
    pub(super) parts: Vec<String>,
}

impl Resolved {
    pub(super) fn new(host: &Host, path: &str) -> Option<Self> {
        let path = normalise(host, path);
        let (root, rest) = if host.os == Os::Windows { windows_root(&path)? } else { posix_root(&path)? };
        let mut parts: Vec<String> = Vec::new();
        for part in rest.split(separators(host)) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                name => parts.push(name.to_owned()),
            }
        }
        Some(Self { root, parts })
    }

    pub(super) fn contains(&self, other: &Self, ignore_case: bool) -> bool {
        self.parts.len() <= other.parts.len()
            && same(&self.root, &other.root, ignore_case)
            && self.parts.iter().zip(&other.parts).all(|(a, b)| same(a, b, ignore_case))
    }

    /// A drive that WSL mounts is as much a root as the drive itself.
    fn is_root(&self, host: &Host) -> bool {
        self.parts.is_empty() || host.wsl.as_ref().is_some_and(|wsl| self.is_drive_mount(wsl))
    }

    fn is_drive_mount(&self, wsl: &Wsl) -> bool {
        let [above @ .., drive] = self.parts.as_slice() else {
            return false;
        };
        above.iter().eq(mount_parts(wsl)) && drive.len() == 1 && drive.starts_with(|c: char| c.is_ascii_alphabetic())
    }

    fn text(&self, host: &Host) -> String {
        let separator = if host.os == Os::Windows { "\\" } else { "/" };
        format!("{}{}", self.root, self.parts.join(separator))
    }

    fn char_count(&self) -> u32 {
        let parts: usize = self.parts.iter().map(|part| part.chars().count()).sum();
        let separators = self.parts.len().saturating_sub(1);
        u32::try_from(self.root.chars().count() + parts + separators).unwrap_or(u32::MAX - DIRECT)
    }
}

pub(super) fn separators(host: &Host) -> &'static [char] {
    if host.os == Os::Windows { &['/', '\\'] } else { &['/'] }
}

fn posix_root(path: &str) -> Option<(String, &str)> {
    path.strip_prefix('/').map(|rest| ("/".to_owned(), rest))
}

/// A drive or a share; `\x` alone depends on the current drive and so is not absolute.
fn windows_root(path: &str) -> Option<(String, &str)> {
    let slash = ['/', '\\'];
    if let Some(unc) = path.strip_prefix(slash).and_then(|rest| rest.strip_prefix(slash)) {
        let mut parts = unc.splitn(3, slash);
        let (server, share) = (parts.next()?, parts.next()?);
        let usable = !matches!(server, "" | "?" | ".") && !share.is_empty();
        return usable.then(|| (format!("\\\\{server}\\{share}\\"), parts.next().unwrap_or("")));
    }
    let drive = path.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = path[1..].strip_prefix(':')?.strip_prefix(slash)?;
    Some((format!("{}:\\", drive.to_ascii_uppercase()), rest))
}

fn same(a: &str, b: &str, ignore_case: bool) -> bool {
    a == b || (ignore_case && a.to_lowercase() == b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn linux() -> Host {
        Host { os: Os::Linux, wsl: None }
    }

    #[test]
    fn a_mounted_drive_is_a_root_in_either_spelling() {
        let wsl = Host { os: Os::Linux, wsl: Some(Wsl { distro: "U".into(), automount_root: "/mnt/".into() }) };
        for folder in ["C:\\", "/mnt/c", "/mnt/c/"] {
            assert_eq!(best_match(&wsl, &[folder], "/mnt/c/work", false), Match::default(), "{folder}");
        }
        assert!(best_match(&wsl, &["/mnt/data"], "/mnt/data/x", false).direct);
        assert!(is_on_windows_drive(&wsl, "/mnt/d/x") && is_on_windows_drive(&wsl, "/mnt/d"));
        assert!(!["/mnt", "/mnt/data/d", "/home/d/x"].iter().any(|path| is_on_windows_drive(&wsl, path)));
        assert!(!is_on_windows_drive(&linux(), "/mnt/d/x"));
    }

    #[test]
    fn folders_above_end_before_the_root() {
        let above = |host: &Host, folder| folders_above(host, folder).collect::<Vec<_>>();
        assert_eq!(above(&linux(), "/a/./b/"), ["/a/b", "/a"]);
        assert!(above(&linux(), "/").is_empty() && above(&linux(), "a/b").is_empty());
        let windows = Host { os: Os::Windows, wsl: None };
        assert_eq!(above(&windows, r"c:\a\b"), [r"C:\a\b", r"C:\a"]);
    }

    #[test]
    fn dot_dot_does_not_climb_above_the_root() {
        assert!(contains(&linux(), "/../..", "/x", false));
    }

    proptest! {
        #[test]
        fn containment_is_reflexive_and_transitive(
            a in "(/[ab.]{0,3}){1,4}", b in "(/[ab.]{0,2}){0,2}", c in "(/[ab.]{0,2}){0,2}",
        ) {
            let host = linux();
            let (inner, innermost) = (format!("{a}{b}"), format!("{a}{b}{c}"));
            prop_assert!(contains(&host, &a, &a, false));
            if contains(&host, &a, &inner, false) && contains(&host, &inner, &innermost, false) {
                prop_assert!(contains(&host, &a, &innermost, false));
            }
        }
    }
}
