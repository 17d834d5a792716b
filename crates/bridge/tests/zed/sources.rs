//! Zed among the other editors: who connects by itself, what is listed, when it ends.

use std::sync::Arc;
use std::time::Duration;

use pi_x_ide_bridge::discovery::{self, Standing, Transport};
use pi_x_ide_bridge::events::LinkState;
use pi_x_ide_bridge::follow;
use pi_x_ide_bridge::server::{Options as ServerOptions, Server};
use pi_x_ide_bridge::sources::discover;
use pi_x_ide_zed_fixture::Options;

use crate::support::{FakeZed, Machine, until};

fn all() -> discovery::Options {
    discovery::Options { all: true, ..discovery::Options::default() }
}

#[tokio::test]
async fn without_a_running_zed_there_is_no_context() {
    let machine = Machine::new(&Options::default());
    let database = machine.database();
    let env = machine.env_with(&[("PI_X_IDE_ZED_DB", &database), ("ZED_TERM", "true")]);
    let cwd = machine.folder("alpha");
    let found = discover(&env, &cwd, &all()).await.remove(0);
    assert_eq!((found.standing, found.transport), (Standing::Stale, Transport::Zed), "{}", found.reason);
    assert!(discover(&env, &cwd, &discovery::Options::default()).await.is_empty());
    assert!(follow::connect_best(Arc::clone(&env), cwd.clone(), follow::Options::default()).await.unwrap().is_none());
    let zed = FakeZed::start();
    let found = discover(&env, &cwd, &all()).await.remove(0);
    assert_eq!((found.standing, found.by_itself), (Standing::Usable, true), "{}", found.reason);
    let session = follow::follow(Arc::clone(&env), cwd, follow::Options::default());
    until("connected", || session.status().state == LinkState::Connected && session.latest().is_some()).await;
    assert_eq!(session.latest().unwrap().snapshot.source, "zed");
    drop(zed);
    until("ended with Zed", || session.status().state == LinkState::Searching && session.latest().is_none()).await;
    session.close().await;
}

#[tokio::test]
async fn it_connects_by_itself_in_its_own_terminal_only() {
    let machine = Machine::new(&Options::default());
    let (database, cwd) = (machine.database(), machine.folder("alpha"));
    let base = [("PI_X_IDE_ZED_DB", database.as_str()), ("PI_X_IDE_PID_CHECK", "0")];
    let elsewhere = machine.env_with(&base);
    let inside = machine.env_with(&[base[0], base[1], ("TERM_PROGRAM", "Zed")]);
    let editor = Server::start(
        Arc::clone(&elsewhere),
        ServerOptions {
            ide: "vscode".into(),
            name: "VS Code".into(),
            version: None,
            workspace_folders: vec![cwd.clone()],
            lock_dir: None,
            allowed_hosts: Vec::new(),
            heartbeat: ServerOptions::HEARTBEAT,
            wsl_listener: false,
        },
    )
    .await
    .unwrap();
    let first = async |env: &Arc<_>, cwd: &str| {
        let options = follow::Options::default();
        let session = follow::connect_best(Arc::clone(env), cwd.to_owned(), options).await.unwrap();
        session.map(|session| session.status().candidate.clone().unwrap().transport)
    };
    assert_eq!(first(&elsewhere, &cwd).await, Some(Transport::Ws));
    assert_eq!(first(&inside, &cwd).await, Some(Transport::Zed));
    assert_eq!(first(&elsewhere, &machine.folder("beta")).await, None);
    let listed = discover(&elsewhere, &machine.folder("beta"), &all()).await;
    let zed = listed.iter().find(|found| found.transport == Transport::Zed).unwrap();
    assert!(zed.direct && !zed.by_itself && zed.standing == Standing::Usable, "{zed:?}");
    let picked =
        follow::connect(Arc::clone(&elsewhere), machine.folder("beta"), zed.clone(), follow::Options::default())
            .await
            .unwrap();
    until("picked by hand", || picked.latest().is_some()).await;
    assert_eq!(picked.latest().unwrap().snapshot.file_path.0, machine.folder("beta/lib.rs"));
    picked.close().await;
    let off = machine.env_with(&[base[0], base[1], ("TERM_PROGRAM", "zed"), ("PI_X_IDE_ZED", "off")]);
    assert!(discover(&off, &cwd, &all()).await.iter().all(|found| found.transport == Transport::Ws));
    editor.close().await;
}

#[tokio::test]
async fn a_database_that_cannot_be_read_is_listed_with_its_reason() {
    let machine = Machine::new(&Options::default());
    let database = machine.database();
    let env = machine.env_with(&[("PI_X_IDE_ZED_DB", &database), ("PI_X_IDE_PID_CHECK", "0"), ("ZED_TERM", "true")]);
    machine.execute("PRAGMA foreign_keys = OFF; DROP TABLE editors");
    let cwd = machine.folder("alpha");
    let found = discover(&env, &cwd, &all()).await.remove(0);
    assert_eq!(found.standing, Standing::Unsupported);
    assert!(found.reason.contains("no table editors"), "{}", found.reason);
    let diagnosis = pi_x_ide_bridge::doctor::diagnose(&env, &cwd, &all()).await;
    assert!(diagnosis.candidates.iter().any(|found| found.reason.contains("no table editors")));
    let session = follow::follow(env, cwd, follow::Options::default());
    until("nobody", || session.status().state == LinkState::Searching).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    session.close().await;
}
