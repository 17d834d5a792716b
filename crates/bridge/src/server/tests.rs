//! A real server with real clients and a real lock folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::*;
use crate::connection::{Link, LinkEvent, Target, Timings, open};
use crate::protocol::json_rpc::{ClientName, InitializeParams};
use crate::testing::{Seen, env_with_home, snapshot, until};

struct Editor {
    server: Server,
    home: tempfile::TempDir,
}

impl Editor {
    async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let env = env_with_home(home.path());
        Self { server: Server::start(env, options()).await.unwrap(), home }
    }

    fn lock(&self) -> Value {
        serde_json::from_slice(&fs::read(self.server.lock_file()).unwrap()).unwrap()
    }

    async fn client(&self, cwd: &str) -> Link {
        let token = self.lock()["authToken"].as_str().unwrap().to_owned();
        let target = Target { hosts: vec!["127.0.0.1".into()], port: self.server.port(), token };
        let hello = InitializeParams { protocol_version: 1.0, client: ClientName::default(), cwd: Some(cwd.into()) };
        open(&target, &hello, Timings::default()).await.unwrap()
    }
}

fn options() -> Options {
    Options {
        ide: "vscode".into(),
        name: "Test".into(),
        version: None,
        workspace_folders: vec!["/w".into()],
        lock_dir: None,
        allowed_hosts: Vec::new(),
        heartbeat: Options::HEARTBEAT,
    }
}

/// Events of a client until there are this many.
async fn events(link: &mut Link, count: usize) -> Vec<LinkEvent> {
    let seen = Seen::default();
    let enough = async {
        while seen.0.lock().unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        reason = link.run(&seen) => panic!("{reason}"),
        () = enough => {}
        () = tokio::time::sleep(Duration::from_secs(10)) => panic!("only {:?}", seen.0.lock().unwrap()),
    }
    seen.0.into_inner().unwrap()
}

#[tokio::test]
async fn the_lock_file_is_private_and_complete() {
    let editor = Editor::start().await;
    let (file, lock) = (editor.server.lock_file(), editor.lock());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));
    let name = format!("vscode-{}-{}.lock", std::process::id(), editor.server.port());
    assert_eq!(file.file_name().unwrap().to_str(), Some(name.as_str()));
    assert_eq!(lock["authToken"].as_str().map(str::len), Some(64));
    assert_eq!(lock["workspaceFolders"][0], "/w");
    editor.server.close().await;
    editor.server.close().await;
    assert!(!file.exists());
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 0, "no temporary file is left");
}

#[tokio::test]
async fn only_the_products_own_folder_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let env = env_with_home(home.path());
    let (own, other) = (env.lock_dir().unwrap(), home.path().join("other"));
    for folder in [&own, &other] {
        fs::create_dir_all(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let server = Server::start(Arc::clone(&env), options()).await.unwrap();
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    server.close().await;
    let elsewhere = Options { lock_dir: Some(other.clone()), ..options() };
    assert_eq!(Server::start(env, elsewhere).await.map(drop).unwrap_err().code(), "PIX_LOCK_FOLDER");
    assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o777);
}

#[tokio::test]
async fn refreshes_keep_the_endpoint_and_are_drained_before_the_end() {
    let editor = Editor::start().await;
    let before = editor.lock();
    editor.server.set_workspace_folders(vec!["/x".into()]).await.unwrap();
    editor.server.focus().await.unwrap();
    let after = editor.lock();
    assert_eq!((&after["authToken"], &after["port"]), (&before["authToken"], &before["port"]));
    assert_eq!(after["workspaceFolders"][0], "/x");
    assert!(after["focusedAt"].is_u64());
    let last = editor.server.set_workspace_folders(vec!["/y".into()]);
    let (written, ()) = tokio::join!(last, editor.server.close());
    written.unwrap();
    assert!(!editor.server.lock_file().exists());
    assert!(matches!(editor.server.focus().await, Err(ServerError::Closed)));
}

#[tokio::test]
async fn a_lock_file_that_somebody_removes_comes_back() {
    let editor = Editor::start().await;
    let token = editor.lock()["authToken"].clone();
    fs::remove_file(editor.server.lock_file()).unwrap();
    until("restored", || editor.server.lock_file().exists()).await;
    assert_eq!(editor.lock()["authToken"], token);
    fs::remove_dir_all(editor.home.path().join(".pi")).unwrap();
    until("restored with its folder", || editor.server.lock_file().exists()).await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_a_typed_error() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".pi"), "a file").unwrap();
    let env = env_with_home(home.path());
    let error = Server::start(env, options()).await.map(drop).unwrap_err();
    assert_eq!(error.code(), "PIX_LOCK_FOLDER");
}

#[tokio::test]
async fn a_client_gets_the_present_state_and_then_every_change() {
    let editor = Editor::start().await;
    let mut first = editor.client("/w").await;
    assert_eq!(events(&mut first, 1).await, [LinkEvent::Cleared]);
    editor.server.publish(snapshot("/w/a"));
    assert_eq!(events(&mut first, 1).await, [LinkEvent::Selection(snapshot("/w/a"))]);
    let mut second = editor.client("/w/sub").await;
    assert_eq!(events(&mut second, 1).await, [LinkEvent::Selection(snapshot("/w/a"))]);
    assert_eq!(editor.server.clients().len(), 2);
    assert_eq!(editor.server.mention(snapshot("/w/sub/b")).unwrap().cwd.as_deref(), Some("/w/sub"));
    assert_eq!(events(&mut second, 1).await, [LinkEvent::Mention(snapshot("/w/sub/b"))]);
    editor.server.clear();
    assert_eq!(events(&mut first, 1).await, [LinkEvent::Cleared]);
    first.close().await;
    until("one client left", || editor.server.clients().len() == 1).await;
}

#[tokio::test]
async fn closing_ends_the_links() {
    let editor = Editor::start().await;
    let mut link = editor.client("/w").await;
    let seen = Seen::default();
    let (reason, ()) = tokio::join!(link.run(&seen), editor.server.close());
    assert!(matches!(reason, crate::connection::CloseReason::Theirs(_)), "{reason}");
}

#[tokio::test]
async fn a_dropped_server_takes_its_lock_file_along_and_a_slow_handshake_does_not_keep_it() {
    let Editor { server, home: _home } = Editor::start().await;
    let _slow = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    server.close().await;
    drop(server);
    let Editor { server, home: _home } = Editor::start().await;
    let file = server.lock_file().to_owned();
    drop(server);
    until("removed", || !file.exists()).await;
}
