//! Writes single rows, and keeps the description of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ToSql, params_from_iter};

use crate::error::at;
use crate::expected::{ExpectedEditor, ExpectedNote, ExpectedSelection};
use crate::{FixtureError, Generation, Options, schema, text};

/// gpui entity ids are `(version << 32) | slot`.
const ENTITY: i64 = 1 << 32;
const DAY: i64 = 86_400;

/// The id of the nth window of a run, from 1.
pub(crate) fn window(n: usize) -> i64 {
    ENTITY + n as i64
}

/// A file of the fixture as it is on disk.
pub(crate) struct DiskFile {
    pub path: String,
    pub modified: SystemTime,
}

/// Whose run a workspace was last open in.
#[derive(Clone, Copy, Default)]
pub(crate) enum Session {
    #[default]
    Current,
    Old,
    /// Its window was closed.
    Closed,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Remote<'a> {
    pub kind: &'a str,
    pub host: Option<&'a str>,
    pub port: Option<u16>,
    pub user: Option<&'a str>,
    pub distro: Option<&'a str>,
    pub name: Option<&'a str>,
    pub container_id: Option<&'a str>,
    pub use_podman: Option<bool>,
    pub remote_env: Option<&'a str>,
}

#[derive(Default)]
pub(crate) struct Workspace<'a> {
    /// As the user ordered them.
    pub roots: &'a [&'a str],
    pub session: Session,
    pub window: i64,
    /// Unix seconds; without it, somewhat later than the workspace before.
    pub stamp: Option<i64>,
    pub remote: Option<Remote<'a>>,
    pub json_paths: bool,
}

/// A pane that is being filled from the left.
pub(crate) struct Pane {
    id: i64,
    workspace: i64,
    next: i64,
}

pub(crate) struct Tab {
    pub kind: &'static str,
    pub active: bool,
    pub preview: bool,
}

impl Tab {
    pub const EDITOR: Self = Self { kind: "Editor", active: false, preview: false };
    pub const ACTIVE_EDITOR: Self = Self { active: true, ..Self::EDITOR };
    pub const TERMINAL: Self = Self { kind: "Terminal", ..Self::EDITOR };
}

#[derive(Default)]
pub(crate) struct Editor<'a> {
    /// None for an untitled buffer.
    pub path: Option<&'a str>,
    /// The buffer, with LF; none when it is not known.
    pub text: Option<&'a str>,
    pub dirty: bool,
    /// Dirty, but with `restore_unsaved_buffers` off.
    pub hidden: bool,
    /// As the rows have them, first offset first.
    pub selections: Vec<(usize, usize)>,
    pub language: Option<&'a str>,
    pub modified: Option<SystemTime>,
    pub note: &'a str,
}

pub(crate) struct Builder<'a> {
    connection: &'a Connection,
    pub generation: Generation,
    projects: PathBuf,
    random: fastrand::Rng,
    pub session: String,
    old_session: String,
    slot: i64,
    clock: i64,
    pub now: i64,
    pub editors: Vec<ExpectedEditor>,
    pub notes: Vec<ExpectedNote>,
}

impl<'a> Builder<'a> {
    pub fn new(connection: &'a Connection, root: &Path, options: &Options) -> Self {
        let mut random = fastrand::Rng::with_seed(options.seed);
        let now = unix_seconds(SystemTime::now());
        Self {
            connection,
            generation: options.generation,
            projects: root.join("projects"),
            session: uuid(&mut random),
            old_session: uuid(&mut random),
            random,
            slot: 100,
            clock: now - 40 * DAY,
            now,
            editors: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Inserts those of the values whose columns the generation has; gives the row's id.
    pub fn insert(&self, table: &str, values: &[(&str, &dyn ToSql)]) -> Result<i64, FixtureError> {
        let kept = || values.iter().filter(|(column, _)| schema::has_column(self.generation, table, column));
        let columns: Vec<String> = kept().map(|(column, _)| format!("\"{column}\"")).collect();
        let marks = vec!["?"; columns.len()].join(", ");
        let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "));
        Ok(self.connection.prepare_cached(&sql)?.insert(params_from_iter(kept().map(|(_, value)| value)))?)
    }

    pub fn entity(&mut self) -> i64 {
        self.slot += self.random.i64(1..=9);
        ENTITY + self.slot
    }

    pub fn offset_below(&mut self, end: i64) -> i64 {
        self.random.i64(0..end)
    }

    pub fn uuid(&mut self) -> String {
        uuid(&mut self.random)
    }

    /// From here on workspaces are a day old at most, so that history is the oldest.
    pub fn end_history(&mut self) {
        self.clock = self.clock.max(self.now - DAY);
    }

    /// A path in the projects folder, with the system's separators; the folder itself for an empty one.
    pub fn path(&self, relative: &str) -> Result<String, FixtureError> {
        let mut path = self.projects.clone();
        path.extend(relative.split('/').filter(|part| !part.is_empty()));
        path.into_os_string().into_string().map_err(|path| FixtureError::NotUtf8(path.into()))
    }

    pub fn folder(&self, relative: &str) -> Result<String, FixtureError> {
        let path = self.path(relative)?;
        fs::create_dir_all(&path).map_err(at(path.as_ref()))?;
        Ok(path)
    }

    pub fn file(&self, relative: &str, bytes: impl AsRef<[u8]>) -> Result<DiskFile, FixtureError> {
        let path = self.path(relative)?;
        let file: &Path = path.as_ref();
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        fs::write(file, bytes).map_err(at(file))?;
        let modified = fs::metadata(file).and_then(|metadata| metadata.modified()).map_err(at(file))?;
        Ok(DiskFile { path, modified })
    }

    pub fn workspace(&mut self, spec: &Workspace<'_>) -> Result<i64, FixtureError> {
        let (sorted, order) = sorted_with_order(spec.roots);
        let order_text = order.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let lines = sorted.join("\n");
        let paths = if spec.json_paths { serde_json::to_string(&sorted)? } else { lines.clone() };
        // Up to 2025a the paths of a remote workspace stand with its host only.
        let local = spec.remote.is_none();
        let blob = local.then(|| text::bincode_strings(&sorted));
        let order_blob = local.then(|| text::bincode_numbers(&order));
        let commas = local.then(|| sorted.join(","));
        let order_commas = local.then_some(&order_text);
        let remote = spec.remote.map(|remote| self.remote(&remote, spec.roots)).transpose()?;
        let session = match spec.session {
            Session::Current => Some(self.session.clone()),
            Session::Old => Some(self.old_session.clone()),
            Session::Closed => None,
        };
        let stamp = spec.stamp.unwrap_or_else(|| self.tick());
        let stamp: String = self.connection.query_row("SELECT datetime(?, 'unixepoch')", [stamp], |row| row.get(0))?;
        let display: Vec<u8> = (0..16).map(|_| self.random.u8(..)).collect();
        self.insert(
            "workspaces",
            &[
                ("workspace_location", &blob),
                ("local_paths", &blob),
                ("local_paths_order", &order_blob),
                ("local_paths_array", &commas),
                ("local_paths_order_array", &order_commas),
                ("ssh_project_id", &remote),
                ("paths", &paths),
                ("paths_order", &order_text),
                ("ssh_connection_id", &remote),
                ("remote_connection_id", &remote),
                ("identity_paths", &lines),
                ("identity_paths_order", &order_text),
                ("timestamp", &stamp),
                ("session_id", &session),
                ("window_id", &spec.window),
                ("window_state", &"Windowed"),
                ("window_x", &0.0),
                ("window_y", &0.0),
                ("window_width", &1536.0),
                ("window_height", &864.0),
                ("display", &display),
                ("left_dock_visible", &1),
                ("left_dock_active_panel", &"Project Panel"),
            ],
        )
    }

    fn remote(&self, remote: &Remote<'_>, roots: &[&str]) -> Result<i64, FixtureError> {
        let table = match self.generation {
            Generation::G2023 | Generation::G2024 | Generation::G2025a => "ssh_projects",
            Generation::G2025b => "ssh_connections",
            Generation::G2025c | Generation::G2026 => "remote_connections",
        };
        self.insert(
            table,
            &[
                ("kind", &remote.kind),
                ("host", &remote.host),
                ("port", &remote.port),
                ("paths", &serde_json::to_string(roots)?),
                ("user", &remote.user),
                ("distro", &remote.distro),
                ("name", &remote.name),
                ("container_id", &remote.container_id),
                ("use_podman", &remote.use_podman),
                ("remote_env", &remote.remote_env),
            ],
        )
    }

    /// The time of the next workspace: always later, never as late as now.
    fn tick(&mut self) -> i64 {
        self.clock = (self.clock + self.random.i64(30..=4000)).min(self.now - 60);
        self.clock
    }

    /// A workspace's only pane, or with a group one of several.
    pub fn pane(&self, workspace: i64, active: bool, group: Option<(i64, i64)>) -> Result<Pane, FixtureError> {
        let id = self
            .insert("panes", &[("workspace_id", &workspace), ("active", &i64::from(active)), ("pinned_count", &0)])?;
        let (group, position) = group.unzip();
        self.insert("center_panes", &[("pane_id", &id), ("parent_group_id", &group), ("position", &position)])?;
        Ok(Pane { id, workspace, next: 0 })
    }

    pub fn put(&mut self, pane: &mut Pane, tab: &Tab) -> Result<i64, FixtureError> {
        let item = self.entity();
        self.insert(
            "items",
            &[
                ("item_id", &item),
                ("workspace_id", &pane.workspace),
                ("pane_id", &pane.id),
                ("kind", &tab.kind),
                ("position", &pane.next),
                ("active", &i64::from(tab.active)),
                ("preview", &i64::from(tab.preview)),
            ],
        )?;
        pane.next += 1;
        Ok(item)
    }

    /// The common case: a workspace's only pane with one active editor.
    pub fn single(&mut self, workspace: i64, editor: &Editor<'_>) -> Result<i64, FixtureError> {
        let mut pane = self.pane(workspace, true, None)?;
        let item = self.put(&mut pane, &Tab::ACTIVE_EDITOR)?;
        self.editor(workspace, item, editor)?;
        Ok(item)
    }

    pub fn editor_row(
        &self,
        workspace: i64,
        item: i64,
        path: Option<&str>,
        contents: Option<(&str, Option<&str>)>,
        modified: Option<Duration>,
    ) -> Result<(), FixtureError> {
        let (contents, language) = contents.unzip();
        self.insert(
            "editors",
            &[
                ("item_id", &item),
                ("workspace_id", &workspace),
                ("path", &path.map(str::as_bytes)),
                ("buffer_path", &path),
                ("contents", &contents),
                ("language", &language.flatten()),
                ("mtime_seconds", &modified.map(|modified| modified.as_secs() as i64)),
                ("mtime_nanos", &modified.map(|modified| modified.subsec_nanos())),
                ("scroll_top_row", &0),
                ("scroll_horizontal_offset", &0.0),
                ("scroll_vertical_offset", &0.0),
            ],
        )?;
        Ok(())
    }

    pub fn selection_row(&self, workspace: i64, item: i64, start: i64, end: i64) -> Result<(), FixtureError> {
        if self.generation.has_selections() {
            self.insert(
                "editor_selections",
                &[("editor_id", &item), ("workspace_id", &workspace), ("start", &start), ("end", &end)],
            )?;
        }
        Ok(())
    }

    /// An `editors` row with its selections, and what a reader has to make of them.
    pub fn editor(&mut self, workspace: i64, item: i64, spec: &Editor<'_>) -> Result<(), FixtureError> {
        let stored = spec.dirty && !spec.hidden && schema::has_column(self.generation, "editors", "contents");
        let contents = spec.text.filter(|_| stored);
        let modified = spec.modified.map(since_epoch);
        self.editor_row(workspace, item, spec.path, contents.map(|text| (text, spec.language)), modified)?;
        for &(start, end) in &spec.selections {
            self.selection_row(workspace, item, start as i64, end as i64)?;
        }
        self.editors.push(ExpectedEditor {
            workspace_id: workspace,
            item_id: item,
            path: spec.path.map(str::to_owned),
            dirty: spec.dirty,
            note: spec.note.to_owned(),
            contents_in_db: contents.is_some(),
            buffer_bytes: spec.text.map(|text| text.len() as u64),
            selections: spec.selections.iter().map(|&range| describe(range, spec.text)).collect(),
        });
        Ok(())
    }
}

fn describe((a, b): (usize, usize), buffer: Option<&str>) -> ExpectedSelection {
    let (start, end) = (a.min(b), a.max(b));
    let clipped = buffer.map(|buffer| (buffer, text::clip(buffer, start, end)));
    ExpectedSelection {
        start: start as u64,
        end: end as u64,
        text: clipped.map(|(buffer, (from, to))| buffer[from..to].to_owned()),
        from: clipped.map(|(buffer, (from, _))| text::position(buffer, from)),
        to: clipped.map(|(buffer, (_, to))| text::position(buffer, to)),
    }
}

/// Zed keeps paths sorted by components; `order[i]` is the user's position of sorted path `i`.
fn sorted_with_order<'r>(roots: &[&'r str]) -> (Vec<&'r str>, Vec<usize>) {
    let mut pairs: Vec<(usize, &str)> = roots.iter().copied().enumerate().collect();
    pairs.sort_by_key(|&(_, root)| Path::new(root));
    pairs.into_iter().map(|(position, root)| (root, position)).unzip()
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn unix_seconds(time: SystemTime) -> i64 {
    since_epoch(time).as_secs() as i64
}

/// The form of a random UUID.
fn uuid(random: &mut fastrand::Rng) -> String {
    let bits = random.u128(..) & !(0xf << 76 | 0b11 << 62) | (4 << 76 | 0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
