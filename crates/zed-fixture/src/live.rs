//! Goes on writing as a running Zed does.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};

use crate::{FixtureError, Made, text};

/// Zed inserts this many selections at once. It goes on with the next batch, but not without deleting the first.
const MAX_CURSORS: usize = 8000;
/// How long [`LiveOptions::stop`] may stay unnoticed.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// How [`live`] writes.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// The pause before each change.
    pub interval: Duration,
    /// When to stop; none goes on until told.
    pub duration: Option<Duration>,
    /// Selections per change; 0 deletes the rows and inserts none.
    pub cursors: usize,
    /// Activates another editor with every nth change; 0 never does.
    pub switch_every: u64,
    /// Writes `editors.contents` with every nth change; 0 never does.
    pub type_every: u64,
    /// Makes a PASSIVE checkpoint with every nth change; 0 leaves it to SQLite.
    pub checkpoint_every: u64,
    /// A pause between DELETE and INSERT, to widen the gap that Zed has there. Not when `atomic`.
    pub gap: Duration,
    /// DELETE and INSERT in one transaction; Zed uses two.
    pub atomic: bool,
    /// Equal seeds give equal changes to equal databases.
    pub seed: u64,
    /// Set it from another thread to end within a few milliseconds, even within a long pause.
    pub stop: Arc<AtomicBool>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(250),
            duration: None,
            cursors: 1,
            switch_every: 0,
            type_every: 0,
            checkpoint_every: 0,
            gap: Duration::ZERO,
            atomic: false,
            seed: 8,
            stop: Arc::default(),
        }
    }
}

/// What [`live`] did. Each event comes after the commit of what it tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum LiveEvent {
    /// Nothing has changed yet.
    Ready {
        /// The database file.
        db: PathBuf,
        /// This process.
        pid: u32,
        /// The workspace that will change.
        workspace_id: i64,
        /// The editor that will change first.
        item_id: i64,
    },
    /// Another editor is active now.
    Activate {
        /// When, in Unix seconds.
        t: f64,
        /// The editor.
        item_id: i64,
    },
    /// The editor has new selections.
    Selection {
        /// Which change, from 1.
        n: u64,
        /// When, in Unix seconds.
        t: f64,
        /// The editor.
        item_id: i64,
        /// Start and end of each row, in the order of insertion.
        ranges: Vec<(u64, u64)>,
    },
    /// The last event; what the callback returns for it means nothing.
    Stop {
        /// How many changes there were.
        n: u64,
    },
}

/// Changes selections in the active workspace until the time is over, the callback breaks or `stop` is set.
///
/// It starts with the active editor, or with any where a terminal is active.
pub fn live(
    made: &mut Made,
    options: &LiveOptions,
    on_event: &mut dyn FnMut(LiveEvent) -> ControlFlow<()>,
) -> Result<(), FixtureError> {
    let mut n = 0;
    let mut writer = Writer::new(made, options)?;
    let ready = LiveEvent::Ready {
        db: writer.made.path.clone(),
        pid: std::process::id(),
        workspace_id: writer.workspace,
        item_id: writer.current,
    };
    let mut flow = on_event(ready);
    let end = options.duration.and_then(|duration| Instant::now().checked_add(duration));
    while flow.is_continue() && end.is_none_or(|end| Instant::now() < end) && pause(options) {
        n += 1;
        flow = writer.change(n, on_event)?;
    }
    let _ = on_event(LiveEvent::Stop { n });
    Ok(())
}

/// Whether the interval passed without a word to stop.
fn pause(options: &LiveOptions) -> bool {
    let started = Instant::now();
    while !options.stop.load(Ordering::Relaxed) {
        let left = options.interval.saturating_sub(started.elapsed());
        if left.is_zero() {
            return true;
        }
        sleep(left.min(STOP_CHECK));
    }
    false
}

struct Writer<'a> {
    made: &'a mut Made,
    options: &'a LiveOptions,
    random: fastrand::Rng,
    workspace: i64,
    current: i64,
    /// Item and buffer length of each editor to choose from.
    editors: Vec<(i64, u64)>,
}

impl<'a> Writer<'a> {
    fn new(made: &'a mut Made, options: &'a LiveOptions) -> Result<Self, FixtureError> {
        let generation = made.expected.generation;
        if !generation.has_selections() {
            return Err(FixtureError::NoSelections(generation));
        }
        if options.cursors > MAX_CURSORS {
            return Err(FixtureError::TooManyCursors(options.cursors));
        }
        let workspace = made.expected.active.workspace_id;
        let open = open_editors(&made.connection, workspace)?;
        let editors: Vec<(i64, u64)> = made
            .expected
            .editors
            .iter()
            .filter(|editor| editor.workspace_id == workspace && open.contains(&editor.item_id))
            .filter(|editor| editor.path.is_some() && !editor.note.contains("big file"))
            .filter_map(|editor| Some((editor.item_id, editor.buffer_bytes?)))
            .collect();
        let first = made.expected.active.item_id.or_else(|| editors.first().map(|&(item, _)| item));
        let current = first.ok_or(FixtureError::NoEditors(workspace))?;
        let random = fastrand::Rng::with_seed(options.seed);
        Ok(Self { made, options, random, workspace, current, editors })
    }

    fn change(
        &mut self,
        n: u64,
        on_event: &mut dyn FnMut(LiveEvent) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, FixtureError> {
        let due = |every: u64| every > 0 && n.is_multiple_of(every);
        if due(self.options.switch_every) {
            self.switch()?;
            if on_event(LiveEvent::Activate { t: unix_now(), item_id: self.current }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let ranges = self.ranges();
        self.select(&ranges)?;
        if due(self.options.type_every) {
            self.made.connection.execute(
                "UPDATE editors SET contents = ?, language = 'Python' WHERE item_id = ? AND workspace_id = ?",
                (format!("# keystroke {n}\n{}", text::latin()), self.current, self.workspace),
            )?;
        }
        if due(self.options.checkpoint_every) {
            self.made.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        }
        Ok(on_event(LiveEvent::Selection { n, t: unix_now(), item_id: self.current, ranges }))
    }

    fn ranges(&mut self) -> Vec<(u64, u64)> {
        let size = self.editors.iter().find(|(item, _)| *item == self.current).map_or(4000, |&(_, size)| size);
        let first = self.random.u64(0..size.saturating_sub(200).max(1));
        (0..self.options.cursors as u64)
            .map(|n| first + 50 * n)
            .map(|start| (start, start + [0, 9, 33][self.random.usize(0..3)]))
            .collect()
    }

    fn select(&mut self, ranges: &[(u64, u64)]) -> Result<(), FixtureError> {
        if self.options.atomic {
            let transaction = self.made.connection.transaction()?;
            delete_selections(&transaction, self.workspace, self.current)?;
            insert_selections(&transaction, self.workspace, self.current, ranges)?;
            transaction.commit()?;
        } else {
            delete_selections(&self.made.connection, self.workspace, self.current)?;
            sleep(self.options.gap);
            insert_selections(&self.made.connection, self.workspace, self.current, ranges)?;
        }
        Ok(())
    }

    /// What saving a workspace does: drops its panes and builds them again, all in one transaction.
    fn switch(&mut self) -> Result<(), FixtureError> {
        let Some(&(current, _)) = self.random.choice(&self.editors) else {
            return Ok(());
        };
        self.current = current;
        let workspace = self.workspace;
        let transaction = self.made.connection.transaction()?;
        let panes = panes(&transaction, workspace)?;
        let tabs = tabs(&transaction, workspace)?;
        let focused = tabs.iter().find(|tab| tab.item == current).map(|tab| tab.pane);
        transaction.execute("DELETE FROM panes WHERE workspace_id = ?", [workspace])?;
        for (pane, group, position) in panes {
            let active = Some(pane) == focused;
            transaction.execute("INSERT INTO panes(workspace_id, active) VALUES (?, ?)", (workspace, active))?;
            let new = transaction.last_insert_rowid();
            transaction.execute("INSERT INTO center_panes VALUES (?, ?, ?)", (new, group, position))?;
            for tab in tabs.iter().filter(|tab| tab.pane == pane) {
                let visible = if active { tab.item == current } else { tab.active };
                transaction.execute(
                    "INSERT INTO items(item_id, workspace_id, pane_id, kind, position, active, preview) \
                     VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (tab.item, workspace, new, &tab.kind, tab.position, visible, tab.preview),
                )?;
            }
        }
        transaction
            .execute("UPDATE workspaces SET timestamp = CURRENT_TIMESTAMP WHERE workspace_id = ?", [workspace])?;
        transaction.commit()?;
        Ok(())
    }
}

struct TabRow {
    item: i64,
    pane: i64,
    kind: String,
    position: i64,
    active: bool,
    preview: Option<i64>,
}

fn open_editors(connection: &Connection, workspace: i64) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare("SELECT item_id FROM items WHERE workspace_id = ? AND kind = 'Editor'")?
        .query_map([workspace], |row| row.get(0))?
        .collect()
}

type PaneRow = (i64, Option<i64>, Option<i64>);

/// Id, group and position within the group.
fn panes(connection: &Connection, workspace: i64) -> rusqlite::Result<Vec<PaneRow>> {
    connection
        .prepare(
            "SELECT pane_id, parent_group_id, position FROM panes JOIN center_panes USING (pane_id) \
             WHERE workspace_id = ? ORDER BY pane_id",
        )?
        .query_map([workspace], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

fn tabs(connection: &Connection, workspace: i64) -> rusqlite::Result<Vec<TabRow>> {
    connection
        .prepare("SELECT item_id, pane_id, kind, position, active, preview FROM items WHERE workspace_id = ?")?
        .query_map([workspace], |row| {
            Ok(TabRow {
                item: row.get(0)?,
                pane: row.get(1)?,
                kind: row.get(2)?,
                position: row.get(3)?,
                active: row.get(4)?,
                preview: row.get(5)?,
            })
        })?
        .collect()
}

fn delete_selections(connection: &Connection, workspace: i64, item: i64) -> rusqlite::Result<()> {
    connection
        .execute("DELETE FROM editor_selections WHERE editor_id = ? AND workspace_id = ?", (item, workspace))
        .map(drop)
}

/// One statement for all, as one commit.
fn insert_selections(
    connection: &Connection,
    workspace: i64,
    item: i64,
    ranges: &[(u64, u64)],
) -> rusqlite::Result<()> {
    if ranges.is_empty() {
        return Ok(());
    }
    let marks = vec!["(?, ?, ?, ?)"; ranges.len()].join(", ");
    let sql = format!("INSERT INTO editor_selections(editor_id, workspace_id, start, end) VALUES {marks}");
    let values = ranges.iter().flat_map(|&(start, end)| [item, workspace, start as i64, end as i64]);
    connection.execute(&sql, params_from_iter(values)).map(drop)
}

fn unix_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
