//! Random paths in every form, and random lock folders.
#![expect(clippy::unwrap_used, reason = "a folder that cannot be made must stop the test")]

use pi_x_ide_bridge::paths::{
    Host, Os, PathMapping, Wsl, best_match, contains, display_path, folders_above, normalise, respell,
};
use proptest::prelude::*;

fn host() -> impl Strategy<Value = Host> {
    let wsl = |distro: &str, root: &str| Host {
        os: Os::Linux,
        wsl: Some(Wsl { distro: distro.into(), automount_root: root.into() }),
    };
    prop::sample::select(vec![
        Host { os: Os::Linux, wsl: None },
        Host { os: Os::MacOs, wsl: None },
        Host { os: Os::Windows, wsl: None },
        wsl("Ubuntu", "/mnt"),
        wsl("", "/mnt/"),
        wsl("Ubuntu", "/"),
        wsl("Debian", "/win/"),
    ])
}

/// A prefix of some form, and few enough names that one path often contains another.
fn path() -> impl Strategy<Value = String> {
    let prefix = prop::sample::select(vec![
        "/",
        "//",
        "C:\\",
        "c:/",
        "D:\\",
        "C:",
        "\\\\?\\C:\\",
        "\\\\?\\UNC\\wsl$\\Ubuntu\\",
        "\\\\wsl$\\Ubuntu\\",
        "//wsl.localhost/ubuntu/",
        "\\\\wsl.localhost\\Debian",
        "\\\\server\\share\\",
        "\\\\?\\UNC\\server\\share\\",
        "/mnt/",
        "/mnt/c/",
        "/MNT/C",
        "/win/d/",
        "/c/",
        "",
        "file:///",
        "~/",
        "\\",
        "\\\\?\\",
        "//?/",
        "\\\\.\\",
    ]);
    let part =
        prop::sample::select(vec!["a", "A", "b", "..", ".", "", "é", "e\u{301}", "c", "mnt", "x y", "\u{1F1E6}"]);
    let separator = prop::sample::select(vec!["/", "\\", "//"]);
    (prefix, prop::collection::vec((part, separator), 0..5)).prop_map(|(prefix, parts)| {
        parts.into_iter().fold(prefix.to_owned(), |path, (part, separator)| path + part + separator)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn normalising_twice_equals_once(host in host(), path in prop_oneof![path(), any::<String>()]) {
        let once = normalise(&host, &path).into_owned();
        prop_assert_eq!(normalise(&host, &once).into_owned(), once);
    }

    #[test]
    fn every_absolute_path_contains_itself_in_every_spelling(host in host(), path in path(), ignore: bool) {
        let spelt = normalise(&host, &path);
        prop_assert_eq!(contains(&host, &path, &path, ignore), contains(&host, &spelt, &path, ignore));
        for above in folders_above(&host, &path) {
            prop_assert!(contains(&host, &above, &path, ignore), "{above}");
            prop_assert_eq!(normalise(&host, &above).into_owned(), above);
        }
    }

    #[test]
    fn containment_is_transitive(host in host(), paths in prop::array::uniform3(path()), ignore: bool) {
        let [a, b, c] = &paths;
        if contains(&host, a, b, ignore) && contains(&host, b, c, ignore) {
            prop_assert!(contains(&host, a, c, ignore));
        }
        if contains(&host, a, b, ignore) && contains(&host, b, a, ignore) {
            prop_assert_eq!(contains(&host, a, c, ignore), contains(&host, b, c, ignore));
        }
    }

    #[test]
    fn a_match_is_what_containment_says(host in host(), folder in path(), cwd in path(), ignore: bool) {
        let found = best_match(&host, &[&folder], &cwd, ignore);
        prop_assert!(!found.direct || contains(&host, &folder, &cwd, ignore));
        prop_assert_eq!(found.length > 0, found.folder.is_some());
        if let Some(folder) = found.folder {
            prop_assert_eq!(found.direct, contains(&host, &folder, &cwd, ignore));
            prop_assert!(found.direct || contains(&host, &cwd, &folder, ignore));
        }
    }

    #[test]
    fn a_mapped_path_lies_in_the_mapped_folder(host in host(), from in path(), inner in path()) {
        let to = if host.os == Os::Windows { "D:\\to" } else { "/to" };
        let mapping = [PathMapping { from: from.clone(), to: to.to_owned() }];
        if let Some(mapped) = respell(&host, &mapping, &inner) {
            prop_assert!(contains(&host, to, &mapped, false), "{mapped}");
        } else {
            prop_assert!(!contains(&host, &from, &inner, host.ignores_case()));
        }
        prop_assert!(!display_path(&host, &from, &inner).is_empty() || inner.is_empty());
    }
}

#[cfg(unix)]
mod lock_folders {
    use std::collections::{BTreeSet, HashMap};
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{DirBuilderExt, symlink};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use pi_x_ide_bridge::discovery::{Options, Standing};
    use pi_x_ide_bridge::env::{Env, Variables};
    use pi_x_ide_bridge::sources::discover;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const TOKEN: &str = "0123456789abcdef-secret";

    #[derive(Debug, Clone)]
    enum Kind {
        Text(String),
        Bytes(Vec<u8>),
        Folder,
        Link,
        DanglingLink,
        Pipe,
    }

    /// Locks of which no one is proven dead: whatever they hold, they must be there afterwards.
    fn lock_text() -> impl Strategy<Value = String> {
        let odd = prop_oneof![
            Just(json!(null)),
            Just(json!(0)),
            Just(json!(-1)),
            Just(json!(1.5)),
            Just(json!("7")),
            Just(json!(9_007_199_254_740_993_u64)),
            Just(json!([{}])),
            any::<String>().prop_map(Value::from),
        ];
        let member = prop::sample::select(vec![
            "version",
            "ide",
            "name",
            "transport",
            "host",
            "port",
            "authToken",
            "workspaceFolders",
            "runningInWindows",
            "focusedAt",
            "hostId",
            "extra",
        ]);
        let changes = prop::collection::vec((member, odd), 0..3);
        (changes, any::<bool>(), 0..400_usize).prop_map(|(changes, truncate, at)| {
            let mut lock = json!({
                "version": 1, "ide": "vscode", "name": "VS Code", "transport": "ws", "host": "127.0.0.1", "port": 9,
                "authToken": TOKEN, "workspaceFolders": ["/w/app", "C:\\w", ""], "pid": std::process::id(),
            });
            lock.as_object_mut().unwrap().extend(changes.into_iter().map(|(name, value)| (name.to_owned(), value)));
            let text = lock.to_string();
            if truncate { text.chars().take(at).collect() } else { text }
        })
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            6 => lock_text().prop_map(Kind::Text),
            2 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Kind::Bytes),
            1 => prop::sample::select(vec![Kind::Folder, Kind::Link, Kind::DanglingLink, Kind::Pipe]),
        ]
    }

    fn name() -> impl Strategy<Value = OsString> {
        let own = format!("vscode-{}", std::process::id());
        prop_oneof![
            4 => (1..60_000_u16).prop_map(move |port| OsString::from(format!("{own}-{port}.lock"))),
            1 => prop::sample::select(vec![
                "x.lock", ".lock", "a b\n\u{1b}[2J.lock", "..lock", "nvim-0-0.lock", "vscode-99999999999999999999-1.lock",
                "notes.txt", "x.lock.tmp", "-rf.lock", "\u{202e}kcol.lock",
            ]).prop_map(OsString::from),
            1 => Just(OsString::from_vec(b"\xff\xfe-1-1.lock".to_vec())),
        ]
    }

    fn make(path: &Path, kind: &Kind) {
        match kind {
            Kind::Text(text) => fs::write(path, text).unwrap(),
            Kind::Bytes(bytes) => fs::write(path, bytes).unwrap(),
            Kind::Folder => fs::create_dir(path).unwrap(),
            Kind::Link => symlink("/etc/passwd", path).unwrap(),
            Kind::DanglingLink => symlink("absent", path).unwrap(),
            Kind::Pipe => {
                assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
            }
        }
        if matches!(kind, Kind::Text(_) | Kind::Bytes(_)) {
            let hour_ago = SystemTime::now() - Duration::from_secs(3600);
            fs::File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
        }
    }

    fn listing(folder: &Path) -> BTreeSet<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 150, ..ProptestConfig::default() })]

        #[test]
        fn every_lock_is_told_once_with_a_reason_and_nothing_unproven_is_deleted(
            files in prop::collection::hash_map(name(), kind(), 0..8),
        ) {
            let home = tempfile::tempdir().unwrap();
            let folder = Env::lock_dir_in(home.path());
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
            files.iter().for_each(|(name, kind)| make(&folder.join(name), kind));
            let before = listing(&folder);
            let env = Arc::new(Env::of(Variables::new(HashMap::new(), Some(home.path().to_owned()))));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let all = Options { all: true, ..Options::default() };
            let candidates = runtime.block_on(discover(&env, "/w/app/src", &all));
            prop_assert_eq!(listing(&folder), before.clone());
            let expected: BTreeSet<String> = before
                .iter()
                .filter_map(|name| name.to_str().filter(|name| name.ends_with(".lock")))
                .map(|name| folder.join(name).to_str().unwrap().to_owned())
                .collect();
            let told: BTreeSet<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
            prop_assert_eq!((told.len(), told), (candidates.len(), expected));
            let usable = |standing| standing == Standing::Usable;
            prop_assert!(candidates.iter().all(|candidate| !candidate.reason.is_empty()));
            prop_assert!(candidates.is_sorted_by_key(|candidate| !usable(candidate.standing)));
            let told = format!("{candidates:?}");
            prop_assert!(!told.contains(TOKEN));
        }
    }
}
