//! Nothing is ever added or changed beside Zed's files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use pi_x_ide_bridge::zed::{self, ZedError};
use pi_x_ide_zed_fixture::{Generation, Options, make};

use crate::support::{Machine, contents, env_of, texts};

#[tokio::test]
async fn a_cleanly_closed_database_stays_as_it_was() {
    for mode in [0o755, 0o555] {
        let Machine { root, made } = Machine::of(Generation::G2026);
        let path = made.path.clone();
        made.close().unwrap();
        let folder = path.parent().unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        let before = contents(folder);
        assert_eq!(before.len(), 1);
        let (env, cwd) = env_of(&root);
        let shown = zed::read(&env, &cwd, Some(path.to_str().unwrap().into())).await.unwrap().unwrap();
        assert_eq!(texts(&shown), ["line 0042"]);
        assert_eq!(contents(folder), before, "{mode:o}");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn what_a_crash_left_behind_is_read_and_kept() {
    let Machine { root, made } = Machine::of(Generation::G2026);
    let path = made.path.clone();
    let item = made.expected.active.item_id.unwrap();
    made.connection()
        .execute_batch(&format!(
            "PRAGMA wal_autocheckpoint = 0;
             UPDATE editor_selections SET start = 0, end = 4 WHERE editor_id = {item}"
        ))
        .unwrap();
    made.crash().unwrap();
    let folder = path.parent().unwrap();
    let (env, cwd) = env_of(&root);
    let before = contents(folder);
    assert_eq!(before.len(), 3);
    let read = async || zed::read(&env, &cwd, Some(path.to_str().unwrap().into())).await;
    assert_eq!(texts(&read().await.unwrap().unwrap()), ["line"], "the newest commit stands in the log");
    assert_eq!(contents(folder), before);
    fs::remove_file(path.with_file_name("db.sqlite-shm")).unwrap();
    let before = contents(folder);
    let without_index = read().await;
    assert_eq!(contents(folder), before, "the index of the log is not ours to make");
    assert!(matches!(without_index, Err(ZedError::Unreadable(_))), "{without_index:?}");
}

#[tokio::test]
async fn beside_a_running_zed_nothing_is_added_and_the_log_does_not_grow() {
    let mut machine = Machine::new(&Options::default());
    let link = machine.link().await.unwrap();
    let folder = machine.made.path.parent().unwrap().to_owned();
    let names = || contents(&folder).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    let before = names();
    let options = pi_x_ide_zed_fixture::LiveOptions {
        interval: std::time::Duration::ZERO,
        ..pi_x_ide_zed_fixture::LiveOptions::default()
    };
    let mut written = 0;
    let mut count = |_| {
        written += 1;
        if written > 4000 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    pi_x_ide_zed_fixture::live(&mut machine.made, &options, &mut count).unwrap();
    assert_eq!(names(), before);
    let log = fs::metadata(machine.made.path.with_file_name("db.sqlite-wal")).unwrap().len();
    assert!(log < 5_000_000, "an open transaction would keep it growing: {log}");
    drop(link);
}

#[tokio::test]
async fn a_database_that_takes_the_place_of_another_is_read() {
    let machine = Machine::of(Generation::G2026);
    let mut link = machine.link().await.unwrap();
    let seen = std::sync::Arc::new(crate::support::Seen::default());
    let sink = std::sync::Arc::clone(&seen);
    let follows = tokio::spawn(async move { link.run(sink.as_ref()).await });
    crate::support::until("the first", || seen.last_texts().is_some_and(|texts| texts == ["line 0042"])).await;
    let folder = machine.made.path.parent().unwrap();
    fs::rename(folder, folder.with_file_name("1790000000000-stable")).unwrap();
    let again = make(machine.root.path(), &Options::default()).unwrap();
    let item = again.expected.active.item_id.unwrap();
    again
        .connection()
        .execute_batch(&format!("UPDATE editor_selections SET start = 0, end = 4 WHERE editor_id = {item}"))
        .unwrap();
    crate::support::until("the new one", || seen.last_texts().is_some_and(|texts| texts == ["line"])).await;
    follows.abort();
}
