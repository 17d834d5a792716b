//! A Zed on Windows, read from WSL through private copies.
#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use pi_x_ide_bridge::env::{Env, Variables};
use pi_x_ide_bridge::zed::{self, Link, Scope};
use pi_x_ide_zed_fixture::{Options, make};

use crate::support::{Seen, contents, texts, until};

/// Folders of this process's copies.
fn copies() -> usize {
    let prefix = format!("pi-x-ide-zed-{}-", std::process::id());
    let names = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count()
}

#[tokio::test]
async fn a_database_on_a_drive_of_windows_is_read_from_copies_that_go() {
    let root = tempfile::tempdir().unwrap();
    let drives = root.path().join("drives");
    fs::create_dir_all(root.path().join("etc")).unwrap();
    fs::write(root.path().join("etc/wsl.conf"), format!("[automount]\nroot = {}\n", drives.display())).unwrap();
    let data = drives.join("c/data");
    let made = make(&data, &Options::default()).unwrap();
    let vars: HashMap<_, _> = [
        ("WSL_DISTRO_NAME", "Ubuntu"),
        ("PI_X_IDE_ZED_DB", r"C:\data\zed\db\0-stable\db.sqlite"),
        ("PI_X_IDE_ZED_POLL_INTERVAL_MS", "100"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let env = Arc::new(Env::of_system(Variables::new(vars, Some(root.path().join("home"))), root.path()));
    let cwd = data.join("projects/alpha").to_str().unwrap().to_owned();
    let place = zed::places(&env).remove(0);
    assert!(place.is_on_windows && place.is_across, "{place:?}");
    let folder = made.path.parent().unwrap();
    let before = contents(folder);
    let shown = zed::read(&env, &cwd, None).await.unwrap().unwrap();
    assert_eq!(texts(&shown), ["line 0042"], "without a process of Zed: that of Windows cannot be seen");
    assert_eq!((contents(folder), copies()), (before, 0));

    let soon = tokio::time::Instant::now() + Duration::from_secs(5);
    let mut link = Link::open(Arc::clone(&env), cwd.clone(), place, Scope::Containing, soon).await.unwrap();
    let seen = Arc::new(Seen::default());
    let sink = Arc::clone(&seen);
    let follows = tokio::spawn(async move { link.run(sink.as_ref()).await });
    until("the first", || seen.last_texts().is_some_and(|texts| texts == ["line 0042"])).await;
    assert_eq!(copies(), 1);
    let item = made.expected.active.item_id.unwrap();
    let change = format!("UPDATE editor_selections SET start = 0, end = 4 WHERE editor_id = {item}");
    made.connection().execute_batch(&change).unwrap();
    until("the change", || seen.last_texts().is_some_and(|texts| texts == ["line"])).await;
    assert_eq!(copies(), 1);
    follows.abort();
    until("removed", || copies() == 0).await;
    let old = std::time::SystemTime::now() - Duration::from_secs(13 * 3600);
    for name in ["db.sqlite", "db.sqlite-wal"] {
        fs::File::options().append(true).open(folder.join(name)).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(zed::read(&env, &cwd, None).await.unwrap(), None, "nobody wrote it for half a day");
}
