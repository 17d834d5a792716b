//! One folder under two names: an editor's spelling and this process's.

use super::contain::{Resolved, separators};
use super::{Host, Os};

/// A folder as an editor names it, and where it lies for this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMapping {
    /// The editor's name of the folder, in any form.
    pub from: String,
    /// Its name here, absolute.
    pub to: String,
}

/// A path of an editor with the name of its folder replaced, by the mapping whose folder contains it most closely;
/// `None` where none does. Compared by components; a trailing separator is kept.
pub fn respell(host: &Host, mappings: &[PathMapping], path: &str) -> Option<String> {
    // A container sees none of its host's path forms, so a mapping is tried in the other one as well.
    let other = if host.os == Os::Windows { Os::Linux } else { Os::Windows };
    let forms = [host, &Host { os: other, wsl: None }];
    let depth_and_path = |mapping: &PathMapping| forms.iter().find_map(|form| mapping.apply(host, form, path));
    mappings.iter().filter_map(depth_and_path).max_by_key(|(depth, _)| *depth).map(|(_, path)| path)
}

impl PathMapping {
    /// From here to the editor.
    pub fn reversed(&self) -> Self {
        Self { from: self.to.clone(), to: self.from.clone() }
    }

    fn apply(&self, host: &Host, form: &Host, path: &str) -> Option<(usize, String)> {
        let (from, inner) = (Resolved::new(form, &self.from)?, Resolved::new(form, path)?);
        if !from.contains(&inner, form.ignores_case()) {
            return None;
        }
        let depth = from.parts.len();
        let mut mapped = join(host, &self.to, &inner.parts[depth..]);
        if path.ends_with(separators(form)) && !mapped.ends_with(separators(host)) {
            mapped.push(separator(host));
        }
        Some((depth, mapped))
    }
}

fn join(host: &Host, folder: &str, parts: &[String]) -> String {
    let mut joined = folder.to_owned();
    for part in parts {
        if !joined.ends_with(separators(host)) {
            joined.push(separator(host));
        }
        joined.push_str(part);
    }
    joined
}

fn separator(host: &Host) -> char {
    if host.os == Os::Windows { '\\' } else { '/' }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(from: &str, to: &str) -> PathMapping {
        PathMapping { from: from.into(), to: to.into() }
    }

    #[test]
    fn the_closest_folder_counts_and_names_are_whole() {
        let linux = Host { os: Os::Linux, wsl: None };
        let map = [mapping("/Users/u/p", "/workspace"), mapping("/Users/u/p/lib/", "/lib"), mapping("relative", "/x")];
        for (path, expected) in [
            ("/Users/u/p", Some("/workspace")),
            ("/Users/u/p/src/a.ts", Some("/workspace/src/a.ts")),
            ("/Users/u/./p/src/", Some("/workspace/src/")),
            ("/Users/u/p/lib/b.ts", Some("/lib/b.ts")),
            ("/Users/u/p2/a.ts", None),
            ("/users/u/p/a.ts", None),
            ("untitled:Untitled-1", None),
            ("", None),
        ] {
            assert_eq!(respell(&linux, &map, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_windows_folder_is_known_in_a_container() {
        let linux = Host { os: Os::Linux, wsl: None };
        let map = [mapping(r"c:\Work\App", "/workspace")];
        assert_eq!(respell(&linux, &map, r"C:\work\app\src\a b.ts").as_deref(), Some("/workspace/src/a b.ts"));
        assert_eq!(respell(&linux, &map, "C:/work/app/x").as_deref(), Some("/workspace/x"));
        assert_eq!(respell(&linux, &map, r"C:\work\application"), None);
    }

    #[test]
    fn a_linux_folder_is_known_on_windows() {
        let windows = Host { os: Os::Windows, wsl: None };
        let map = [mapping("/home/u/p", r"D:\p")];
        assert_eq!(respell(&windows, &map, "/home/u/p/src/a.ts").as_deref(), Some(r"D:\p\src\a.ts"));
    }
}
