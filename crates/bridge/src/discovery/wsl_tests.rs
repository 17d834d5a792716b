//! Scans and links from a fake WSL to editors on a fake Windows: the gateway is another loopback address.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::events::LinkState;
use crate::follow;
use crate::server::{self, Server};
use crate::sources::discover;
use crate::testing::{FakeWsl, snapshot, until};

const WINDOWS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

struct Machine {
    wsl: FakeWsl,
    env: Arc<Env>,
}

impl Machine {
    fn new(vars: &[(&str, &str)]) -> Self {
        let wsl = FakeWsl::new();
        wsl.gateway(WINDOWS);
        let env = Arc::new(wsl.env(vars));
        Self { wsl, env }
    }

    /// An editor on Windows with `C:\work\app` open, that listens on Windows' own loopback.
    async fn editor(&self) -> Server {
        let folder = self.wsl.drives().join("windows-side");
        let options = server::Options {
            ide: "vscode".into(),
            name: "Windows".into(),
            version: None,
            workspace_folders: vec![r"C:\work\app".into()],
            lock_dir: Some(folder),
            allowed_hosts: Vec::new(),
            heartbeat: server::Options::HEARTBEAT,
            wsl_listener: false,
        };
        Server::start(Arc::clone(&self.env), options).await.unwrap()
    }

    /// The lock as that editor would write it to a Windows profile.
    fn lock(&self, user: &str, editor: &Server) -> PathBuf {
        let text = fs::read_to_string(editor.lock_file()).unwrap();
        let mut lock: serde_json::Value = serde_json::from_str(&text).unwrap();
        lock["runningInWindows"] = json!(true);
        lock["pid"] = json!(i32::MAX);
        self.write(user, &format!("vscode-{}-{}.lock", i32::MAX, editor.port()), &lock)
    }

    fn dead_lock(&self, port: u16) -> PathBuf {
        let lock = json!({
            "version": 1, "ide": "vscode", "name": "Dead", "transport": "ws", "host": "127.0.0.1", "port": port,
            "authToken": "secret", "workspaceFolders": [r"C:\work\app"], "pid": 4, "runningInWindows": true,
        });
        self.write("me", &format!("vscode-4-{port}.lock"), &lock)
    }

    fn write(&self, user: &str, name: &str, lock: &serde_json::Value) -> PathBuf {
        let path = self.wsl.profile(user).join(name);
        fs::write(&path, lock.to_string()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        path
    }

    fn cwd(&self) -> String {
        let cwd = self.wsl.drive('c').join("work/app/src");
        fs::create_dir_all(&cwd).unwrap();
        cwd.to_str().unwrap().to_owned()
    }

    async fn all(&self) -> Vec<Candidate> {
        discover(&self.env, &self.cwd(), &Options { all: true, ..Options::default() }).await
    }

    fn follow(&self) -> follow::Session {
        follow::follow(Arc::clone(&self.env), self.cwd(), follow::Options::default())
    }
}

/// Passes what comes to Windows' address on to its loopback, as its WSL listener does. Counts who came.
async fn listen_on_windows(port: u16) -> Arc<std::sync::atomic::AtomicUsize> {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let listener = TcpListener::bind((WINDOWS, port)).await.unwrap();
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::spawn(async move {
                let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut socket, &mut server).await;
            });
        }
    });
    count
}

/// A server that listens on nothing but Windows' loopback is not there for WSL with NAT.
fn hosts(candidate: &Candidate) -> Vec<(&str, Probe)> {
    candidate.checks.probes.iter().map(|probe| (probe.host.as_str(), probe.outcome)).collect()
}

fn age(path: &Path, minutes: u64) {
    let time = SystemTime::now() - Duration::from_secs(minutes * 60);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

async fn closed_port() -> u16 {
    TcpListener::bind((WINDOWS, 0)).await.unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn an_editor_on_windows_is_reached_at_the_gateway_and_speaks_of_paths_of_this_host() {
    let machine = Machine::new(&[]);
    let editor = machine.editor().await;
    let arrivals = listen_on_windows(editor.port()).await;
    machine.lock("me", &editor);
    let found = machine.all().await.remove(0);
    assert_eq!((found.standing, found.direct), (Standing::Usable, true), "{found:?}");
    assert_eq!(found.workspace_folder, Some(machine.wsl.drive('c').join("work/app").to_str().unwrap().into()));
    assert_eq!(hosts(&found)[0], ("127.0.0.2", Probe::Reachable));
    let probed = arrivals.load(std::sync::atomic::Ordering::Relaxed);
    let session = machine.follow();
    until("connected", || session.status().state == LinkState::Connected).await;
    assert!(arrivals.load(std::sync::atomic::Ordering::Relaxed) > probed, "by way of the gateway");
    editor.publish(snapshot(r"c:\work\app\src\a b.ts"));
    until("selection", || session.mentions() == ["@\"a b.ts\""]).await;
    session.close().await;
}

#[tokio::test]
async fn a_silent_windows_hides_the_lock_and_costs_it_only_after_two_heartbeats() {
    let machine = Machine::new(&[]);
    let lock = machine.dead_lock(closed_port().await);
    for (minutes, standing) in [(0, Standing::Stale), (29, Standing::Stale), (31, Standing::Removed)] {
        age(&lock, minutes);
        assert!(
            discover(&machine.env, &machine.cwd(), &Options { clean_up: false, ..Options::default() }).await.is_empty()
        );
        let found = machine.all().await.remove(0);
        assert_eq!((found.standing, lock.exists()), (standing, standing != Standing::Removed), "{minutes}: {found:?}");
        assert!(found.reason.contains("127.0.0.2") && found.reason.contains("127.0.0.1"), "{}", found.reason);
    }
}

#[tokio::test]
async fn with_mirrored_networking_the_gateway_is_a_stranger() {
    let machine = Machine::new(&[]);
    fs::create_dir(machine.env.system_root.join("sys/class/net/loopback0")).unwrap();
    let editor = machine.editor().await;
    let stranger = listen_on_windows(editor.port()).await;
    machine.lock("me", &editor);
    let found = machine.all().await.remove(0);
    assert_eq!(hosts(&found), [("127.0.0.1", Probe::Reachable)]);
    let session = machine.follow();
    until("connected", || session.status().state == LinkState::Connected).await;
    assert_eq!(stranger.load(std::sync::atomic::Ordering::Relaxed), 0);
    session.close().await;
}

#[tokio::test]
async fn every_profile_is_looked_at_and_a_link_into_another_folder_counts_once() {
    let machine = Machine::new(&[]);
    let editor = machine.editor().await;
    listen_on_windows(editor.port()).await;
    let (mine, other) = (machine.lock("me", &editor), machine.lock("other", &editor));
    machine.lock("Public", &editor);
    let users = machine.wsl.drive('c').join("Users");
    std::os::unix::fs::symlink(users.join("me"), users.join("me.old")).unwrap();
    let mut found: Vec<_> = machine.all().await.into_iter().map(|candidate| candidate.id).collect();
    found.sort();
    assert_eq!(found, [mine.to_str().unwrap(), other.to_str().unwrap()]);
}

#[tokio::test]
async fn an_override_is_the_only_host_and_deletes_nothing() {
    let machine = Machine::new(&[("PI_X_IDE_HOST_OVERRIDE", " 127.0.0.3 ")]);
    let editor = machine.editor().await;
    let gateway = listen_on_windows(editor.port()).await;
    let lock = machine.lock("me", &editor);
    age(&lock, 60);
    let found = machine.all().await.remove(0);
    assert_eq!(hosts(&found), [("127.0.0.3", Probe::Refused)], "{found:?}");
    assert_eq!((found.standing, lock.exists()), (Standing::Stale, true));
    let listener = TcpListener::bind(("127.0.0.3", editor.port())).await.unwrap();
    assert_eq!(machine.all().await[0].standing, Standing::Usable);
    assert_eq!(gateway.load(std::sync::atomic::Ordering::Relaxed), 0);
    drop(listener);
}

#[tokio::test]
async fn the_token_stays_here_where_the_lock_names_a_stranger() {
    let machine = Machine::new(&[]);
    let stranger = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 1), 0)).await.unwrap();
    let port = stranger.local_addr().unwrap().port();
    let path = machine.dead_lock(port);
    let text = fs::read_to_string(&path).unwrap().replace("\"127.0.0.1\"", "\"198.51.100.7\"");
    fs::write(&path, text).unwrap();
    let candidate = Candidate { standing: Standing::Usable, ..machine.all().await.remove(0) };
    let outcome = follow::connect(Arc::clone(&machine.env), machine.cwd(), candidate, follow::Options::default()).await;
    assert_eq!(outcome.err().map(|error| error.code()), Some("PIX_HOST_REFUSED"));
}

#[tokio::test]
async fn many_dead_locks_are_asked_at_once() {
    let machine = Machine::new(&[]);
    let mut ports = HashSet::new();
    while ports.len() < 10 {
        ports.insert(closed_port().await);
    }
    ports.iter().for_each(|port| drop(machine.dead_lock(*port)));
    let scanner = Scanner::new(Arc::clone(&machine.env), Options { all: true, ..Options::default() });
    let found = scanner.survey(&machine.cwd()).await.candidates;
    assert_eq!(found.iter().filter(|candidate| candidate.checks.probes.len() == 2).count(), 10, "{found:?}");
}
