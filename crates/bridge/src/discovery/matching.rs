//! Workspace folders against pi's folder: as they are spelt, else by what they are.
//!
//! Folders are the same where the file system says so, which covers links, bind mounts, letter case and the composition
//! of characters on file systems that ignore those, and no others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::env::Env;
use crate::paths::{Match, PathMapping, best_match, folders_above, real_path};

/// How folders relate to pi's folder where their spelling does not tell.
#[derive(Debug, Default)]
pub(super) struct Relations {
    by_folder: HashMap<String, Relation>,
}

#[derive(Debug, Clone)]
enum Relation {
    /// There is no such folder here.
    Absent,
    /// Another folder.
    Unrelated,
    /// The same folder by another name, one above, or one inside.
    Related { found: Match, respelling: PathMapping },
}

impl FromIterator<Relations> for Relations {
    fn from_iter<T: IntoIterator<Item = Self>>(all: T) -> Self {
        Self { by_folder: all.into_iter().flat_map(|relations| relations.by_folder).collect() }
    }
}

impl Relations {
    /// Looks at each of the `folders`, which are localised. Blocks on the file systems they lie on.
    pub(super) fn of(env: &Env, cwd: &str, folders: impl IntoIterator<Item = String>) -> Self {
        let mut here = Here::new(env, cwd);
        let mut by_folder = HashMap::new();
        for folder in folders {
            by_folder.entry(folder).or_insert_with_key(|folder| here.relation(folder));
        }
        Self { by_folder }
    }

    /// The better of the match as spelt and the match by what the folders are. `folders` are localised.
    pub(super) fn best(&self, env: &Env, cwd: &str, folders: &[String]) -> Match {
        let mut best = spelt(env, cwd, folders);
        if best.direct {
            return best;
        }
        for folder in folders {
            if let Some(Relation::Related { found, .. }) = self.by_folder.get(folder)
                && found.length > best.length
            {
                best = found.clone();
            }
        }
        best
    }

    /// Whether none of the folders exists here; false where nobody looked.
    pub(super) fn are_absent(&self, folders: &[String]) -> bool {
        !folders.is_empty() && folders.iter().all(|folder| matches!(self.by_folder.get(folder), Some(Relation::Absent)))
    }

    fn into_respellings(self) -> Vec<PathMapping> {
        let of = |relation| if let Relation::Related { respelling, .. } = relation { Some(respelling) } else { None };
        self.by_folder.into_values().filter_map(of).collect()
    }
}

/// The match of localised folders as they are spelt. A folder above a mapped one has no name here, so pi's folder is
/// also tried under the editor's name.
pub(super) fn spelt(env: &Env, cwd: &str, folders: &[String]) -> Match {
    let ignore_case = env.host.ignores_case();
    let found = best_match(&env.host, folders, cwd, ignore_case);
    match env.delocalise(cwd) {
        Cow::Owned(theirs) if !found.direct => {
            let other = best_match(&env.host, folders, &theirs, ignore_case);
            if other.length > found.length { other } else { found }
        }
        _ => found,
    }
}

/// Folders of an editor in this host's form.
pub(super) fn localised(env: &Env, folders: &[String]) -> Vec<String> {
    folders.iter().map(|folder| env.localise(folder).into_owned()).collect()
}

/// The best match of an editor's folders, which are localised, by all their names. Blocks on the file systems that they
/// lie on.
pub(crate) fn best_folder(env: &Env, cwd: &str, folders: &[String]) -> Match {
    let found = spelt(env, cwd, folders);
    if found.direct { found } else { Relations::of(env, cwd, folders.to_vec()).best(env, cwd, folders) }
}

/// How paths below an editor's workspace folders are spelt from pi's folder, where the editor came there by another
/// name: shown and injected paths keep pi's spelling. Blocks on the file systems that the folders lie on.
pub fn respellings(env: &Env, cwd: &str, workspace_folders: &[String]) -> Vec<PathMapping> {
    let folders = localised(env, workspace_folders).into_iter();
    let otherwise_spelt = folders.filter(|folder| spelt(env, cwd, std::slice::from_ref(folder)).folder.is_none());
    Relations::of(env, cwd, otherwise_spelt).into_respellings()
}

/// pi's folder by all its names.
struct Here<'a> {
    env: &'a Env,
    cwd: String,
    id: Option<FolderId>,
    /// The folder and those above it, as pi spells them.
    spelt: Vec<(String, FolderId)>,
    /// The same of its real path.
    real: Vec<(String, FolderId)>,
    ids: HashMap<String, Option<FolderId>>,
}

impl<'a> Here<'a> {
    fn new(env: &'a Env, cwd: &str) -> Self {
        let chain = |path: &str| -> Vec<(String, FolderId)> {
            let above = folders_above(&env.host, path);
            above.filter_map(|folder| id_of(&folder).map(|id| (folder, id))).collect()
        };
        let spelt = chain(cwd);
        let real = real_path(cwd).map(|real| chain(&real)).unwrap_or_default();
        Self { env, cwd: cwd.to_owned(), id: id_of(cwd), spelt, real, ids: HashMap::new() }
    }

    fn relation(&mut self, folder: &str) -> Relation {
        // Judged as spelt first: what is relative or a root must not become something else by its real path.
        let env = self.env;
        let mut above = folders_above(&env.host, folder);
        let Some(folder) = above.next() else {
            return Relation::Unrelated;
        };
        let Some(id) = id_of(&folder) else {
            return Relation::Absent;
        };
        self.around(&folder, &id).or_else(|| self.inside(&folder, above)).unwrap_or(Relation::Unrelated)
    }

    /// pi's folder, or one above it, is `folder` by another name.
    fn around(&self, folder: &str, id: &FolderId) -> Option<Relation> {
        let related = |same: &str, from: String, to: &str| Relation::Related {
            found: Match::containing(folder.to_owned(), char_count(same)),
            respelling: PathMapping { from, to: to.to_owned() },
        };
        if let Some((same, _)) = self.spelt.iter().find(|(_, candidate)| candidate == id) {
            return Some(related(same, folder.to_owned(), same));
        }
        let (same, _) = self.real.iter().find(|(_, candidate)| candidate == id)?;
        let rest = self.real.first()?.0.strip_prefix(same.as_str())?;
        Some(related(same, format!("{folder}{rest}"), &self.cwd))
    }

    /// A folder above `folder` is pi's by another name.
    fn inside(&mut self, folder: &str, mut above: impl Iterator<Item = String>) -> Option<Relation> {
        let id = self.id.clone()?;
        let respelling = match above.find(|above| self.has_id(above, &id)) {
            Some(same) => PathMapping { from: same, to: self.cwd.clone() },
            None => {
                let env = self.env;
                let mut real = folders_above(&env.host, &real_path(folder).ok()?);
                let whole = real.next()?;
                let same = real.find(|above| self.has_id(above, &id))?;
                let rest = whole.strip_prefix(same.as_str())?;
                PathMapping { from: folder.to_owned(), to: format!("{}{rest}", self.cwd) }
            }
        };
        Some(Relation::Related { found: Match::inside(folder.to_owned(), char_count(&self.cwd)), respelling })
    }

    fn has_id(&mut self, folder: &str, id: &FolderId) -> bool {
        self.ids.entry(folder.to_owned()).or_insert_with(|| id_of(folder)).as_ref() == Some(id)
    }
}

fn char_count(path: &str) -> u32 {
    u32::try_from(path.chars().count()).unwrap_or(u32::MAX)
}

/// Device and number of a folder.
#[cfg(unix)]
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderId(u64, u64);

#[cfg(unix)]
fn id_of(folder: &str) -> Option<FolderId> {
    use std::os::unix::fs::MetadataExt;

    let metadata = fs::metadata(Path::new(folder)).ok().filter(fs::Metadata::is_dir)?;
    Some(FolderId(metadata.dev(), metadata.ino()))
}

/// The real path, which has the letters as they are on the disk.
#[cfg(not(unix))]
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderId(String);

#[cfg(not(unix))]
fn id_of(folder: &str) -> Option<FolderId> {
    fs::metadata(Path::new(folder)).ok().filter(fs::Metadata::is_dir)?;
    real_path(folder).ok().map(FolderId)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::paths::{Host, Os, respell};

    /// `data/proj/sub/deep`, and `link` → `data/proj`, `inner` → `data/proj/sub`.
    struct Tree {
        root: tempfile::TempDir,
        env: Env,
    }

    impl Tree {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let at = |name: &str| root.path().join(name);
            fs::create_dir_all(at("data/proj/sub/deep")).unwrap();
            symlink(at("data/proj"), at("link")).unwrap();
            symlink(at("data/proj/sub"), at("inner")).unwrap();
            symlink(at("nowhere"), at("dangling")).unwrap();
            symlink("/", at("whole-disk")).unwrap();
            let env = Env { host: Host { os: Os::Linux, wsl: None }, ..Env::current() };
            Self { root, env }
        }

        fn path(&self, name: &str) -> String {
            self.root.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
        }

        fn best(&self, folder: &str, cwd: &str) -> Match {
            let (folders, cwd) = ([self.path(folder)], self.path(cwd));
            Relations::of(&self.env, &cwd, folders.clone()).best(&self.env, &cwd, &folders)
        }
    }

    #[test]
    fn a_folder_is_known_by_every_name() {
        let tree = Tree::new();
        for (folder, cwd) in [
            ("link", "data/proj"),
            ("data/proj", "link"),
            ("data/proj", "link/sub/deep"),
            ("link/sub", "inner/deep"),
            ("data", "inner/deep"),
            ("link/../data", "inner"),
        ] {
            let best = tree.best(folder, cwd);
            assert!(best.direct && best.length > 10_000, "{folder} {cwd}: {best:?}");
        }
        for (folder, cwd) in [("inner", "data/proj"), ("link/sub", "data"), ("inner/deep", "link")] {
            let best = tree.best(folder, cwd);
            assert!(!best.direct && best.length > 0, "{folder} {cwd}: {best:?}");
        }
        for (folder, cwd) in [
            ("dangling", "data"),
            ("whole-disk", "data"),
            ("inner", "data/proj2"),
            ("data/proj/sub", "absent"),
            ("nowhere", "dangling"),
        ] {
            assert_eq!(tree.best(folder, cwd), Match::default(), "{folder} {cwd}");
        }
    }

    #[test]
    fn a_folder_above_a_mapped_one_contains_what_is_mapped() {
        let mapping = PathMapping { from: "/Users/u/p".into(), to: "/workspace".into() };
        let env = Env { path_map: vec![mapping], ..Tree::new().env };
        for (folder, cwd, direct) in [
            ("/Users/u", "/workspace/src", true),
            ("/Users/u/p", "/workspace/src", true),
            ("/Users/u/p/src/a", "/workspace/src", false),
            ("/Users/v", "/workspace/src", false),
        ] {
            let folders = localised(&env, &[folder.into()]);
            assert_eq!(Relations::default().best(&env, cwd, &folders).direct, direct, "{folder}");
        }
    }

    #[test]
    fn paths_of_an_editor_get_the_spelling_of_pi() {
        let tree = Tree::new();
        for (folder, cwd, file, expected) in [
            ("link", "data/proj", "link/sub/a.ts", Some("data/proj/sub/a.ts")),
            ("data/proj", "link", "data/proj/a.ts", Some("link/a.ts")),
            ("data", "inner/deep", "data/proj/sub/deep/a.ts", Some("inner/deep/a.ts")),
            ("data", "inner/deep", "data/proj/a.ts", None),
            ("inner", "data/proj", "inner/deep/a.ts", Some("data/proj/sub/deep/a.ts")),
            ("link/sub", "data", "link/sub/a.ts", Some("data/proj/sub/a.ts")),
            ("data/proj", "data/proj/sub", "data/proj/sub/a.ts", None),
        ] {
            let cwd = tree.path(cwd);
            let mappings = respellings(&tree.env, &cwd, &[tree.path(folder)]);
            let got = respell(&tree.env.host, &mappings, &tree.path(file));
            assert_eq!(got, expected.map(|path| tree.path(path)), "{folder} {cwd} {file}");
        }
    }

    #[test]
    fn names_that_only_look_alike_are_two_folders_where_the_file_system_says_so() {
        let tree = Tree::new();
        let (composed, decomposed) = ("t\u{e9}st", "te\u{301}st");
        for (a, b) in [(composed, decomposed), ("App", "app")] {
            fs::create_dir_all(tree.path(a)).unwrap();
            let is_one_folder = Path::new(&tree.path(b)).exists();
            fs::create_dir_all(tree.path(b)).unwrap();
            assert_eq!(tree.best(a, b).direct, is_one_folder, "{a} {b}");
        }
    }

    #[test]
    fn a_path_of_any_depth_costs_its_length() {
        let tree = Tree::new();
        let deep = format!("/{}", "a/".repeat(200_000));
        let folders = [deep];
        assert!(Relations::of(&tree.env, "/w", folders.clone()).are_absent(&folders));
    }

    #[test]
    fn folders_that_are_not_there_are_told_apart() {
        let tree = Tree::new();
        let folders = [tree.path("absent"), tree.path("dangling")];
        assert!(Relations::of(&tree.env, "/w", folders.clone()).are_absent(&folders));
        let folders = [tree.path("absent"), tree.path("data")];
        assert!(!Relations::of(&tree.env, "/w", folders.clone()).are_absent(&folders));
        assert!(!Relations::default().are_absent(&folders) && !Relations::default().are_absent(&[]));
    }
}
