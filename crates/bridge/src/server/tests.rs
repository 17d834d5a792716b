//! A real server with real clients and a real lock folder.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::time::SystemTime;

use futures_util::SinkExt;
use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::*;
use crate::connection::{Link, LinkEvent, Target, Timings, open};
use crate::env::Clock;
use crate::env::Patience;
use crate::protocol::TOKEN_HEADER;
use crate::protocol::json_rpc::{InitializeParams, initialize_request};
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

    /// One that listens on the addresses, as far as they can be had.
    async fn start_on(addresses: &Addresses) -> Self {
        let home = tempfile::tempdir().unwrap();
        let found = Arc::clone(addresses);
        let find = Arc::new(move || found.lock().unwrap().clone());
        let further = FurtherAddresses { find, every: Duration::from_millis(5) };
        let server = Server::start_on(env_with_home(home.path()), options(), Some(further)).await.unwrap();
        Self { server, home }
    }

    fn lock(&self) -> Value {
        serde_json::from_slice(&fs::read(self.server.lock_file()).unwrap()).unwrap()
    }

    async fn client(&self, cwd: &str) -> Link {
        let token = self.lock()["authToken"].as_str().unwrap().to_owned();
        let target =
            Target { hosts: vec!["127.0.0.1".into()], port: self.server.port(), token, patience: Patience::default() };
        let hello = InitializeParams { protocol_version: 1.0, cwd: Some(cwd.into()), ..InitializeParams::default() };
        open(&target, &hello, Timings::default()).await.unwrap()
    }

    fn address(&self, ip: Ipv4Addr) -> SocketAddr {
        (ip, self.server.port()).into()
    }

    /// A link that has not said anything yet; fails with the status of the answer.
    async fn link(&self, ip: Ipv4Addr, headers: &[(&'static str, &str)]) -> Result<RawLink, u16> {
        let mut request = format!("ws://{}/", self.address(ip)).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((link, _)) => Ok(link),
            Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }
}

type RawLink = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What the look for further addresses finds.
type Addresses = Arc<Mutex<Vec<Ipv4Addr>>>;

/// Another address of loopback, where Linux listens without being asked.
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn options() -> Options {
    Options {
        ide: "vscode".into(),
        name: "Test".into(),
        version: None,
        workspace_folders: vec!["/w".into()],
        lock_dir: None,
        allowed_hosts: Vec::new(),
        heartbeat: Options::HEARTBEAT,
        wsl_listener: false,
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
async fn folders_that_would_make_the_file_unreadable_are_refused() {
    let editor = Editor::start().await;
    let before = editor.lock()["workspaceFolders"].clone();
    let many = vec!["/a/long/name/of/a/folder".repeat(10); 5000];
    let refused = editor.server.set_workspace_folders(many).await.unwrap_err();
    assert_eq!(refused.code(), "PIX_TOO_LARGE");
    editor.server.focus().await.unwrap();
    assert_eq!(editor.lock()["workspaceFolders"], before);
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
    let routed = editor.server.mention(snapshot("/w/sub/b"), None).unwrap();
    assert_eq!((routed.client.cwd.as_deref(), routed.chosen_by), (Some("/w/sub"), ChosenBy::Workspace));
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

#[tokio::test]
async fn the_lock_file_tells_the_time_of_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(86_400_007);
    let env = Env { clock: Clock::Fixed(time), ..Env::clone(&env_with_home(home.path())) };
    let editor = Editor { server: Server::start(Arc::new(env), options()).await.unwrap(), home };
    editor.server.focus().await.unwrap();
    let lock = editor.lock();
    for member in ["createdAt", "updatedAt"] {
        assert_eq!(lock[member], "1970-01-02T00:00:00.007Z");
    }
    assert_eq!(lock["focusedAt"], 86_400_007);
}

#[tokio::test]
async fn a_prompt_and_a_terminal_decide_over_the_wire() {
    let editor = Editor::start().await;
    let token = editor.lock()["authToken"].as_str().unwrap().to_owned();
    let mut links = Vec::new();
    for terminal in ["t1", "t2", "t2", "t3"] {
        let mut link = editor.link(Ipv4Addr::LOCALHOST, &[(TOKEN_HEADER, &token)]).await.unwrap();
        // Before it has joined, a prompt is nobody's.
        link.send(Message::text(r#"{"jsonrpc":"2.0","method":"prompt_submitted"}"#)).await.unwrap();
        let hello = InitializeParams { terminal_session_id: Some(terminal.into()), ..InitializeParams::default() };
        link.send(Message::text(initialize_request(&hello))).await.unwrap();
        links.push(link);
        until("joined", || editor.server.clients().len() == links.len()).await;
    }
    let chosen = |terminal| {
        let routed = editor.server.mention(snapshot("/elsewhere"), terminal).unwrap();
        (routed.client.id, routed.chosen_by)
    };
    assert_eq!(chosen(None), (4, ChosenBy::LastUsed));
    assert_eq!(chosen(Some("t2")), (3, ChosenBy::Terminal));
    assert_eq!(chosen(Some("t1")), (1, ChosenBy::Terminal));
    links[1].send(Message::text(r#"{"jsonrpc":"2.0","method":"prompt_submitted","params":{}}"#)).await.unwrap();
    until("prompted", || chosen(Some("none")) == (2, ChosenBy::LastUsed)).await;
    assert_eq!(chosen(Some("t2")), (2, ChosenBy::Terminal));
    assert_eq!(editor.server.clients()[0].terminal_session_id.as_deref(), Some("t1"));
}

#[cfg(target_os = "linux")]
mod further_addresses {
    use super::*;

    async fn is_open(address: SocketAddr) -> bool {
        TcpStream::connect(address).await.is_ok()
    }

    async fn wait(address: SocketAddr, open: bool) {
        for _ in 0..2000 {
            if is_open(address).await == open {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{address} never became {}", if open { "open" } else { "closed" });
    }

    #[tokio::test]
    async fn come_and_go_with_the_same_rules_as_on_loopback() {
        let addresses = Addresses::default();
        let editor = Editor::start_on(&addresses).await;
        assert!(!is_open(editor.address(OTHER)).await);
        addresses.lock().unwrap().push(OTHER);
        wait(editor.address(OTHER), true).await;
        assert_eq!(editor.lock()["host"], "127.0.0.1");
        let token = editor.lock()["authToken"].as_str().unwrap().to_owned();
        let token = (TOKEN_HEADER, token.as_str());
        let mut member = editor.link(OTHER, &[token]).await.unwrap();
        member.send(Message::text(initialize_request(&InitializeParams::default()))).await.unwrap();
        until("joined", || editor.server.clients().len() == 1).await;
        for (headers, status) in
            [(&[][..], 401), (&[token, ("host", "evil.example")], 403), (&[token, ("origin", "http://127.0.0.2")], 403)]
        {
            assert_eq!(editor.link(OTHER, headers).await.map(drop), Err(status), "{headers:?}");
        }
        addresses.lock().unwrap().clear();
        wait(editor.address(OTHER), false).await;
        assert!(is_open(editor.address(Ipv4Addr::LOCALHOST)).await);
        assert_eq!(editor.server.clients().len(), 1, "a link outlives its listener");
        addresses.lock().unwrap().push(OTHER);
        wait(editor.address(OTHER), true).await;
        editor.server.close().await;
        for address in [Ipv4Addr::LOCALHOST, OTHER] {
            assert!(!is_open(editor.address(address)).await, "{address}");
        }
    }

    #[tokio::test]
    async fn that_have_the_port_taken_are_tried_again() {
        let addresses = Addresses::default();
        let editor = Editor::start_on(&addresses).await;
        let squatter = std::net::TcpListener::bind(editor.address(OTHER)).unwrap();
        addresses.lock().unwrap().push(OTHER);
        // Meanwhile the server goes on.
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            editor.client("/w").await.close().await;
        }
        drop(squatter);
        let token = editor.lock()["authToken"].as_str().unwrap().to_owned();
        wait(editor.address(OTHER), true).await;
        editor.link(OTHER, &[(TOKEN_HEADER, &token)]).await.unwrap();
    }

    #[tokio::test]
    async fn that_never_come_do_not_keep_the_server() {
        let editor = Editor::start_on(&Addresses::default()).await;
        editor.server.close().await;
        assert!(!is_open(editor.address(Ipv4Addr::LOCALHOST)).await);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Mutex::new(held);
        let find = Arc::new(move || {
            let _ = held.lock().unwrap().recv();
            vec![OTHER]
        });
        let hanging = FurtherAddresses { find, every: Duration::from_secs(30) };
        let home = tempfile::tempdir().unwrap();
        let server = Server::start_on(env_with_home(home.path()), options(), Some(hanging)).await.unwrap();
        let editor = Editor { server, home };
        tokio::time::timeout(Duration::from_secs(10), editor.server.close()).await.unwrap();
        drop(release);
        assert!(!is_open(editor.address(OTHER)).await);
    }

    #[tokio::test]
    async fn are_a_matter_of_windows() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { wsl_listener: true, ..options() };
        let server = Server::start(env_with_home(home.path()), options).await.unwrap();
        let editor = Editor { server, home };
        assert!(is_open(editor.address(Ipv4Addr::LOCALHOST)).await);
        assert!(!is_open(editor.address(OTHER)).await);
    }
}
