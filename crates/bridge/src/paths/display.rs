//! How a path is shown to people and to the model.

use super::contain::{Resolved, separators};
use super::{Host, Os, normalise};

/// A file as pi shows it: relative to `cwd` with `/` separators when inside it, else absolute in this host's form.
/// A trailing separator, which marks a folder, is kept. Nothing is escaped here.
pub fn display_path(host: &Host, cwd: &str, file: &str) -> String {
    let file = normalise(host, file);
    match relative_to(host, cwd, &file) {
        Some(relative) => relative,
        None if host.os == Os::Windows => file.replace('\\', "/"),
        None => file.into_owned(),
    }
}

fn relative_to(host: &Host, cwd: &str, file: &str) -> Option<String> {
    let (base, path) = (Resolved::new(host, cwd)?, Resolved::new(host, file)?);
    if !base.contains(&path, host.ignores_case()) {
        return None;
    }
    let mut relative = path.parts[base.parts.len()..].join("/");
    if relative.is_empty() {
        relative.push('.');
    }
    if file.ends_with(separators(host)) {
        relative.push('/');
    }
    Some(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_keep_their_mark() {
        let host = Host { os: Os::Linux, wsl: None };
        assert_eq!(display_path(&host, "/repo", "/repo/src/"), "src/");
        assert_eq!(display_path(&host, "/repo", "/repo"), ".");
        assert_eq!(display_path(&host, "/repo", "/repo/"), "./");
        assert_eq!(display_path(&host, "/repo", "untitled:Untitled-1"), "untitled:Untitled-1");
    }
}
