//! A database, a home folder to read it from, a running Zed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pi_x_ide_bridge::connection::{EventSink, LinkEvent};
use pi_x_ide_bridge::env::{Env, Variables};
use pi_x_ide_bridge::protocol::snapshot::Snapshot;
use pi_x_ide_bridge::zed::{self, Link, Place, Scope, ZedError};
use pi_x_ide_zed_fixture::{Generation, Made, Options, make};

/// A machine with one database, and nothing else of the user's.
pub struct Machine {
    pub root: tempfile::TempDir,
    pub made: Made,
}

impl Machine {
    pub fn new(options: &Options) -> Self {
        let root = tempfile::tempdir().unwrap();
        let made = make(root.path(), options).unwrap();
        Self { root, made }
    }

    pub fn of(generation: Generation) -> Self {
        Self::new(&Options { generation, ..Options::default() })
    }

    /// Zed's process is not looked for: none runs here.
    pub fn env(&self) -> Arc<Env> {
        self.env_with(&[("PI_X_IDE_PID_CHECK", "0")])
    }

    pub fn env_with(&self, vars: &[(&str, &str)]) -> Arc<Env> {
        let home = self.root.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        let vars: HashMap<_, _> = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Arc::new(Env::of(Variables::new(vars, Some(home))))
    }

    pub fn folder(&self, name: &str) -> String {
        self.root.path().join("projects").join(name).to_str().unwrap().to_owned()
    }

    pub fn database(&self) -> String {
        self.made.path.to_str().unwrap().to_owned()
    }

    pub async fn read(&self) -> Result<Option<Snapshot>, ZedError> {
        self.read_for("alpha").await
    }

    pub async fn read_for(&self, folder: &str) -> Result<Option<Snapshot>, ZedError> {
        zed::read(&self.env(), &self.folder(folder), Some(self.database())).await
    }

    pub fn execute(&self, sql: &str) {
        self.made.connection().execute_batch(sql).unwrap();
    }

    /// Makes an editor the visible one of the focused pane.
    pub fn activate(&self, workspace: i64, item: i64) {
        self.execute(&format!(
            "BEGIN;
             UPDATE items SET active = 0 WHERE workspace_id = {workspace}
                AND pane_id = (SELECT pane_id FROM items WHERE item_id = {item} AND workspace_id = {workspace});
             UPDATE items SET active = 1 WHERE workspace_id = {workspace} AND item_id = {item};
             UPDATE panes SET active = pane_id = (SELECT pane_id FROM items
                WHERE item_id = {item} AND workspace_id = {workspace}) WHERE workspace_id = {workspace};
             COMMIT;"
        ));
    }

    pub fn place(&self) -> Place {
        zed::place_at(&self.env(), &self.database(), "Zed", true).unwrap()
    }

    pub async fn link(&self) -> Result<Link, ZedError> {
        let env = self.env_with(&[("PI_X_IDE_PID_CHECK", "0"), ("PI_X_IDE_ZED_POLL_INTERVAL_MS", "100")]);
        let soon = tokio::time::Instant::now() + Duration::from_secs(5);
        Link::open(env, self.folder("alpha"), self.place(), Scope::Containing, soon).await
    }
}

/// To read the database below `root` when nobody writes it any more, and pi's folder.
pub fn env_of(root: &tempfile::TempDir) -> (Arc<Env>, String) {
    let vars = [("PI_X_IDE_PID_CHECK".to_owned(), "0".to_owned())].into();
    let env = Env::of(Variables::new(vars, Some(root.path().join("home"))));
    (env.into(), root.path().join("projects/alpha").to_str().unwrap().to_owned())
}

/// The text of each range.
pub fn texts(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.ranges.iter().map(|range| range.text.0.as_str()).collect()
}

/// What lies in a folder, with every byte.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// A process whose executable has the name of Zed's.
pub struct FakeZed {
    process: Child,
    _folder: tempfile::TempDir,
}

impl FakeZed {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("zed-editor");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let process = Command::new(&program).arg("600").stdin(Stdio::null()).spawn().unwrap();
        Self { process, _folder: folder }
    }
}

impl Drop for FakeZed {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Remembers what a link tells.
#[derive(Default)]
pub struct Seen {
    pub events: Mutex<Vec<LinkEvent>>,
    pub notes: Mutex<Vec<String>>,
}

impl Seen {
    pub fn last(&self) -> Option<LinkEvent> {
        self.events.lock().unwrap().last().cloned()
    }

    pub fn last_texts(&self) -> Option<Vec<String>> {
        match self.last()? {
            LinkEvent::Selection(snapshot) => Some(texts(&snapshot).into_iter().map(str::to_owned).collect()),
            _ => None,
        }
    }
}

impl EventSink for Seen {
    fn deliver(&self, event: LinkEvent) {
        self.events.lock().unwrap().push(event);
    }

    fn note(&self, message: String) {
        self.notes.lock().unwrap().push(message);
    }

    async fn room(&self) {}
}

/// Waits until a condition holds; panics after twenty seconds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
