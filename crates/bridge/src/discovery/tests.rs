//! Scans of real folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::sources::discover;
use crate::testing::{env_with_home, make_pipe};

const DEAD_PID: u64 = i32::MAX as u64;

struct Machine {
    home: tempfile::TempDir,
    env: Arc<Env>,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let env = env_with_home(home.path());
        let machine = Self { home, env };
        fs::create_dir_all(machine.folder()).unwrap();
        machine
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join(".pi/pi-x-ide/lock")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn lock(&self, name: &str, changes: Value) -> PathBuf {
        let mut lock = json!({
            "version": 1, "ide": "vscode", "name": "VS Code", "transport": "ws", "host": "127.0.0.1", "port": 9,
            "authToken": "secret", "workspaceFolders": ["/w/app"], "pid": std::process::id(),
        });
        lock.as_object_mut().unwrap().extend(changes.as_object().cloned().unwrap());
        self.write(name, lock.to_string())
    }

    async fn all(&self, cwd: &str) -> Vec<Candidate> {
        discover(&self.env, cwd, &Options { all: true, ..Options::default() }).await
    }

    async fn usable(&self, cwd: &str) -> Vec<Candidate> {
        discover(&self.env, cwd, &Options::default()).await
    }
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

async fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn no_folder_and_no_home_mean_no_editor() {
    let machine = Machine::new();
    fs::remove_dir_all(machine.home.path().join(".pi")).unwrap();
    assert!(machine.all("/w/app").await.is_empty());
    fs::write(machine.home.path().join(".pi"), "a file").unwrap();
    assert!(machine.usable("/w/app").await.is_empty());
    let homeless = Arc::new(Env { home: None, ..(*machine.env).clone() });
    assert!(discover(&homeless, "/w/app", &Options::default()).await.is_empty());
}

#[tokio::test]
async fn candidates_are_ranked_and_carry_no_token() {
    let machine = Machine::new();
    machine.lock("vscode-1-1.lock", json!({ "workspaceFolders": ["/other"] }));
    machine.lock("vscode-1-2.lock", json!({ "workspaceFolders": ["/w"] }));
    machine.lock("vscode-1-3.lock", json!({ "workspaceFolders": ["/w/app", "/w"] }));
    let found = machine.usable("/w/app/src").await;
    let order: Vec<_> = found.iter().map(|c| (c.match_length, c.direct, c.workspace_folder.as_deref())).collect();
    let expected = [(10006, true, Some("/w/app")), (10002, true, Some("/w")), (0, false, Some("/other"))];
    assert_eq!(order, expected);
    assert!(!format!("{found:?}").contains("secret"));
}

#[tokio::test]
async fn bad_files_are_skipped_with_a_reason() {
    let machine = Machine::new();
    let dead = format!("vscode-{DEAD_PID}-9.lock");
    machine.write("empty.lock", "");
    machine.write("vscode-1-1.lock", "{ half");
    machine.write("latin1.lock", [0xe9]);
    machine.write("big.lock", vec![b' '; 50 << 20]);
    machine.write("future-1-1.lock", r#"{"version":2}"#);
    machine.write("notes.txt", "no lock");
    machine.write(&dead, "{ half");
    fs::create_dir(machine.folder().join("folder.lock")).unwrap();
    symlink("/etc/passwd", machine.folder().join("link.lock")).unwrap();
    let pipe = machine.folder().join("pipe.lock");
    make_pipe(&pipe);

    assert!(machine.usable("/w/app").await.is_empty());
    let standing: HashMap<_, _> = machine
        .all("/w/app")
        .await
        .into_iter()
        .map(|c| (c.id.rsplit('/').next().unwrap().to_owned(), (c.standing, c.reason)))
        .collect();
    let expected = [
        ("empty.lock", Standing::Malformed),
        ("vscode-1-1.lock", Standing::Malformed),
        (dead.as_str(), Standing::Malformed),
        ("latin1.lock", Standing::Untrusted),
        ("big.lock", Standing::Untrusted),
        ("folder.lock", Standing::Untrusted),
        ("link.lock", Standing::Untrusted),
        ("pipe.lock", Standing::Untrusted),
        ("future-1-1.lock", Standing::Unsupported),
    ];
    assert_eq!(standing.len(), expected.len(), "{standing:?}");
    for (name, expected) in expected {
        let (found, reason) = &standing[name];
        assert_eq!(*found, expected, "{name}: {reason}");
        assert!(!reason.is_empty() && machine.folder().join(name).symlink_metadata().is_ok(), "{name} is gone");
    }
}

#[tokio::test]
async fn only_what_is_proven_dead_is_removed() {
    let machine = Machine::new();
    let (closed, listener) = (closed_port().await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let open = listener.local_addr().unwrap().port();
    let gone = machine.lock("a.lock", json!({ "pid": DEAD_PID, "port": closed }));
    let adopted = machine.lock("b.lock", json!({ "pid": DEAD_PID, "port": open }));
    let foreign = machine.lock("c.lock", json!({ "pid": DEAD_PID, "port": closed, "hostId": "00" }));
    let old = machine.lock("d.lock", json!({ "pid": 0 }));
    let half = machine.write(&format!("vscode-{DEAD_PID}-9.lock"), "{ half");
    age(&old, 25 * 60 * 60);
    age(&half, 11);

    let untouched = Options { clean_up: false, ..Options::default() };
    discover(&machine.env, "/w/app", &untouched).await;
    assert!(gone.exists() && old.exists() && half.exists());

    let usable: Vec<_> = machine.usable("/w/app").await.into_iter().map(|c| c.id).collect();
    assert_eq!(usable, [adopted.to_str().unwrap()]);
    assert!(!gone.exists() && !old.exists() && !half.exists());
    assert!(adopted.exists() && foreign.exists());
}

#[tokio::test]
async fn a_process_that_cannot_see_the_editors_machine_removes_nothing() {
    let machine = Machine::new();
    let gone = machine.lock("a.lock", json!({ "pid": DEAD_PID, "port": closed_port().await }));
    let vars = HashMap::from([("PI_X_IDE_HOST_OVERRIDE".to_owned(), "host.docker.internal".to_owned())]);
    let container = Arc::new(Env { vars, ..(*machine.env).clone() });
    discover(&container, "/w/app", &Options::default()).await;
    let vars = HashMap::from([("PI_X_IDE_PID_CHECK".to_owned(), "0".to_owned())]);
    let unchecked = Arc::new(Env { vars, ..(*machine.env).clone() });
    assert_eq!(discover(&unchecked, "/w/app", &Options::default()).await.len(), 1);
    assert!(gone.exists());
}

#[tokio::test]
async fn a_shared_folder_is_one_refusal() {
    let machine = Machine::new();
    machine.lock("a.lock", json!({}));
    fs::set_permissions(machine.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(machine.usable("/w/app").await.is_empty());
    let all = machine.all("/w/app").await;
    assert_eq!((all.len(), all[0].standing), (1, Standing::Untrusted), "{all:?}");
}

#[tokio::test]
async fn links_to_the_project_match_by_real_path() {
    let machine = Machine::new();
    let real = machine.home.path().join("real");
    let link = machine.home.path().join("link");
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    for (folder, cwd) in [(&real, &link), (&link, &real)] {
        machine.lock("a.lock", json!({ "workspaceFolders": [folder] }));
        let found = machine.usable(cwd.to_str().unwrap()).await;
        assert!(found[0].direct, "{found:?}");
        assert_eq!(found[0].workspace_folder.as_deref(), folder.to_str());
    }
    for folder in ["", ".", "/", "dangling"] {
        machine.lock("a.lock", json!({ "workspaceFolders": [folder] }));
        assert!(!machine.usable(real.to_str().unwrap()).await[0].direct, "{folder:?}");
    }
}

#[tokio::test]
async fn a_lock_without_a_pid_goes_by_age_and_by_the_given_clock() {
    let machine = Machine::new();
    let lock = machine.lock("a.lock", json!({ "pid": 0 }));
    let after = |hours: u64| {
        let clock = crate::env::Clock::Fixed(SystemTime::now() + Duration::from_secs(hours * 60 * 60));
        Arc::new(Env { clock, ..(*machine.env).clone() })
    };
    assert_eq!(discover(&after(23), "/w/app", &Options::default()).await.len(), 1);
    assert!(discover(&after(25), "/w/app", &Options::default()).await.is_empty());
    assert!(!lock.exists());
}

#[tokio::test]
async fn an_editor_on_a_drive_that_hangs_hides_no_other() {
    let machine = Machine::new();
    let project = machine.home.path().join("project");
    fs::create_dir(&project).unwrap();
    symlink(&project, machine.home.path().join("link")).unwrap();
    let link = machine.home.path().join("link");
    machine.lock("a.lock", json!({ "workspaceFolders": ["/hung/project"] }));
    machine.lock("b.lock", json!({ "name": "Right", "workspaceFolders": [link] }));
    // As often as anybody would still look at it.
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    for _ in 0..4 {
        let held = Arc::clone(&held);
        let hang = move || held.lock().is_ok_and(|held| held.recv().is_ok());
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(machine.env.patience.run("/hung/project", soon, hang).await, None);
    }
    let usable = machine.usable(project.to_str().unwrap()).await;
    let direct: Vec<_> = usable.iter().filter(|found| found.direct).map(|found| found.name.as_str()).collect();
    assert_eq!((direct, usable.len()), (vec!["Right"], 2));
    drop(release);
}

#[tokio::test]
async fn a_lock_that_names_a_stranger_is_neither_asked_nor_dialled_nor_removed() {
    let machine = Machine::new();
    for host in ["198.51.100.7", "127.1", "0x7f000001", "localhost.", "127.0.0.1%lo", "::ffff:127.0.0.1", "0.0.0.0"] {
        machine.lock("a.lock", json!({ "host": host }));
        let found = machine.all("/w/app").await.remove(0);
        assert_eq!((found.standing, found.checks.probes.len()), (Standing::HostRefused, 0), "{host}");
        assert!(found.reason.contains("is not dialled"), "{}", found.reason);
        assert!(machine.usable("/w/app").await.is_empty());
        let path = machine.lock("a.lock", json!({ "host": host, "pid": DEAD_PID, "port": closed_port().await }));
        let found = machine.all("/w/app").await.remove(0);
        assert_eq!((found.standing, path.exists()), (Standing::Stale, true), "{host}: {}", found.reason);
        let path = machine.lock("a.lock", json!({ "host": host, "pid": null }));
        age(&path, 25 * 3600);
        assert!(machine.usable("/w/app").await.is_empty() && path.exists(), "{host}");
    }
    for host in [" ::1 ", "", "LOCALHOST", "127.0.0.53"] {
        machine.lock("a.lock", json!({ "host": host }));
        assert_eq!(machine.usable("/w/app").await.len(), 1, "{host}");
    }
}
