//! Rewriting a foreign path form to the form of this host.

use std::borrow::Cow;

use super::{Host, Os, Wsl};

/// Rewrites a path in any form that an editor may report to this host's form; anything else comes back untouched,
/// also a `file://` URI (whoever holds a URI decodes it first).
///
/// Only the prefix and the separators of a recognised form change: letter case, `.` and `..`, doubled and trailing
/// separators stay. Protocol: "WSL2 discovery and host resolution".
pub fn normalise<'a>(host: &Host, path: &'a str) -> Cow<'a, str> {
    let mut path = Cow::Borrowed(path);
    // A form may hide another one (`\\?\UNC\wsl$\…`), so rewriting goes on until nothing changes: twice equals once.
    while let Some(rewritten) = rewrite(host, &path).filter(|rewritten| *rewritten != path) {
        path = Cow::Owned(rewritten);
    }
    path
}

fn rewrite(host: &Host, path: &str) -> Option<String> {
    match (host.os, &host.wsl) {
        (Os::Windows, _) => to_windows(path),
        (Os::Linux, Some(wsl)) => to_wsl(wsl, path),
        _ => None,
    }
}

fn to_wsl(wsl: &Wsl, path: &str) -> Option<String> {
    if let Some((drive, rest)) = split_drive(strip_verbatim(path).unwrap_or(path)) {
        let root = wsl.automount_root.trim_end_matches('/');
        let drive = drive.to_ascii_lowercase();
        return Some(format!("{root}/{drive}{}", rest.replace('\\', "/")));
    }
    let (server, rest) = split_component(unc_body(path)?);
    if !["wsl$", "wsl.localhost"].iter().any(|name| name.eq_ignore_ascii_case(server)) {
        return None;
    }
    let (distro, rest) = split_component(rest?);
    let ours = wsl.distro.is_empty() || wsl.distro.to_lowercase() == distro.to_lowercase();
    // A distribution's bare root has nothing after its name and stays as it is.
    if ours && !distro.is_empty() { rest.map(|rest| format!("/{}", rest.replace('\\', "/"))) } else { None }
}

fn to_windows(path: &str) -> Option<String> {
    let verbatim = strip_verbatim(path);
    if let Some((drive, rest)) = split_drive(verbatim.unwrap_or(path)) {
        return Some(drive_path(drive, rest));
    }
    if let Some(body) = verbatim.and_then(strip_unc_marker) {
        return Some(format!("\\\\{}", body.replace('/', "\\")));
    }
    let (drive, rest) = split_mount(path)?;
    Some(drive_path(drive, rest))
}

fn drive_path(drive: char, rest: &str) -> String {
    let rest = if rest.is_empty() { "\\" } else { rest };
    format!("{}:{}", drive.to_ascii_uppercase(), rest.replace('/', "\\"))
}

/// `C:\x` → (`C`, `\x`). A bare `C:` and a drive-relative `C:x` are not absolute and so not a drive path.
fn split_drive(path: &str) -> Option<(char, &str)> {
    let mut chars = path.chars();
    let drive = chars.next().filter(char::is_ascii_alphabetic)?;
    let rest = chars.as_str().strip_prefix(':')?;
    rest.starts_with(is_separator).then_some((drive, rest))
}

/// `/mnt/d/x` → (`d`, `/x`).
fn split_mount(path: &str) -> Option<(char, &str)> {
    let (mnt, rest) = split_component(path.strip_prefix(is_separator)?);
    if !mnt.eq_ignore_ascii_case("mnt") {
        return None;
    }
    let rest = rest?;
    let drive = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let tail = &rest[1..];
    (tail.is_empty() || tail.starts_with(is_separator)).then_some((drive, tail))
}

/// What follows `\\?\`.
fn strip_verbatim(path: &str) -> Option<&str> {
    let body = strip_double_separator(path)?.strip_prefix('?')?;
    body.strip_prefix(is_separator)
}

/// `server\share…` of a UNC path, verbatim or not.
fn unc_body(path: &str) -> Option<&str> {
    match strip_verbatim(path) {
        Some(verbatim) => strip_unc_marker(verbatim),
        None => strip_double_separator(path),
    }
}

fn strip_unc_marker(verbatim: &str) -> Option<&str> {
    let (marker, rest) = split_component(verbatim);
    if marker.eq_ignore_ascii_case("unc") { rest } else { None }
}

fn strip_double_separator(path: &str) -> Option<&str> {
    path.strip_prefix(is_separator)?.strip_prefix(is_separator)
}

/// First component, and what follows its separator if there is one.
fn split_component(text: &str) -> (&str, Option<&str>) {
    match text.find(is_separator) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, '/' | '\\')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn windows() -> Host {
        Host { os: Os::Windows, wsl: None }
    }

    fn wsl() -> Host {
        Host { os: Os::Linux, wsl: Some(Wsl { distro: "Ubuntu".into(), automount_root: "/mnt".into() }) }
    }

    #[test]
    fn verbatim_unc_becomes_unc_on_windows() {
        assert_eq!(normalise(&windows(), r"\\?\UNC\server\share\a"), r"\\server\share\a");
        assert_eq!(normalise(&windows(), "/mnt/d"), "D:\\");
    }

    #[test]
    fn a_distribution_root_with_a_separator_is_the_root() {
        assert_eq!(normalise(&wsl(), r"\\wsl$\Ubuntu\"), "/");
    }

    proptest! {
        #[test]
        fn twice_equals_once(path in r"[a-cC:/\\.?$ mntuUwsl]{0,24}") {
            for host in [windows(), wsl()] {
                let once = normalise(&host, &path).into_owned();
                prop_assert_eq!(normalise(&host, &once).into_owned(), once);
            }
        }
    }
}
