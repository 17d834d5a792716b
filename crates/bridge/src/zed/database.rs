//! One open connection to Zed's database: opened so that nothing is ever added or changed beside it, read in short
//! transactions. Blocks.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior};
use serde::Deserialize;

use super::choice::{Item, Windows, Workspace};
use super::error::ZedError;
use super::folders::FolderColumns;
use super::offsets::Offsets;

/// A statement that runs longer is ended: no real database needs so long, a hostile one would never end.
const STATEMENT_WITHIN: Duration = Duration::from_secs(2);

/// Steps of SQLite between two looks at the clock.
const STEPS: i32 = 10_000;

/// The oldest generations keep connections to other machines under other names.
const REMOTE_COLUMNS: &[&str] =
    &["remote_connection_id", "ssh_connection_id", "ssh_project_id", "dev_server_project_id", "remote_project_id"];

/// How the files of a database are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Zed's own files.
    InPlace,
    /// A private copy.
    Copied,
}

/// An open database.
pub(super) struct Database {
    path: PathBuf,
    connection: Connection,
    schema: Schema,
    schema_version: i64,
    /// Opened without a write-ahead log, so that no change is ever seen.
    is_frozen: bool,
    statement_began: Arc<Mutex<Instant>>,
}

impl Database {
    pub(super) fn open(path: &Path, access: Access) -> Result<Self, ZedError> {
        let metadata = fs::metadata(path).map_err(|error| ZedError::of_io(path, &error))?;
        if !metadata.is_file() {
            return Err(ZedError::Unreadable("it is no file".into()));
        }
        // Told apart by a look of our own, since SQLite says the same for both.
        fs::File::open(path).map_err(|error| ZedError::of_io(path, &error))?;
        let is_frozen = !has_log(path).map_err(|error| ZedError::of_io(path, &error))?;
        let query = match access {
            // Beside a log it would be wrong; without one, opening in any other way leaves files behind.
            _ if is_frozen => "mode=ro&immutable=1",
            // The index of the log is Zed's: never made by us.
            Access::InPlace => "mode=ro&readonly_shm=1",
            Access::Copied => "mode=ro",
        };
        let of_sqlite = |error| ZedError::of_sqlite(path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(uri(path, query), flags).map_err(of_sqlite)?;
        // Whoever waits for Zed's lock waits at the next tick instead.
        connection.busy_timeout(Duration::ZERO).map_err(of_sqlite)?;
        let statement_began = Arc::new(Mutex::new(Instant::now()));
        let began = Arc::clone(&statement_began);
        let is_late = move || began.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > STATEMENT_WITHIN;
        connection.progress_handler(STEPS, Some(is_late)).map_err(of_sqlite)?;
        // What a database may bring along is not to be run.
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;").map_err(of_sqlite)?;
        let path = path.to_owned();
        let schema_version = 0;
        let mut database =
            Self { path, connection, schema: Schema::default(), schema_version, is_frozen, statement_began };
        // Also reads the file for the first time: a connection alone tells nothing.
        database.read(|_| Ok(()))?;
        Ok(database)
    }

    /// Changes whenever anybody else commits, in this connection only. Protocol-free: `PRAGMA data_version`.
    pub(super) fn data_version(&self) -> Result<i64, ZedError> {
        self.begin_statement();
        number(&self.connection, "PRAGMA data_version").map_err(|error| ZedError::of_sqlite(&self.path, &error))
    }

    /// Whether changes can be seen at all; otherwise it has to be opened anew.
    pub(super) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Everything that one answer needs, from one state of the database. The transaction ends with `read`, since an open
    /// one keeps Zed's log from being used again.
    pub(super) fn read<T>(&mut self, read: impl FnOnce(&Rows<'_>) -> rusqlite::Result<T>) -> Result<T, ZedError> {
        self.begin_statement();
        let Self { path, connection, schema, schema_version, .. } = self;
        let of_sqlite = |error| ZedError::of_sqlite(path, &error);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred).map_err(of_sqlite)?;
        // Zed updates its tables while we run.
        let version = number(&transaction, "PRAGMA schema_version").map_err(of_sqlite)?;
        if *schema == Schema::default() || *schema_version != version {
            *schema = Schema::read(&transaction).map_err(of_sqlite)?;
            *schema_version = version;
        }
        schema.check()?;
        read(&Rows { transaction: &transaction, schema }).map_err(of_sqlite)
    }

    fn begin_statement(&self) {
        *self.statement_began.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Whether a log lies beside the database that holds something.
fn has_log(path: &Path) -> io::Result<bool> {
    match fs::metadata(log_of(path)) {
        Ok(log) => Ok(log.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The write-ahead log of a database.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Every byte of a path that means something in a URI is escaped.
fn uri(path: &Path, query: &str) -> String {
    let mut uri = String::from("file:");
    if cfg!(windows) {
        uri.push_str("///");
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            b':' if cfg!(windows) => uri.push(':'),
            // Writing to a String cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri.push('?');
    uri.push_str(query);
    uri
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Which tables and columns there are, of those that are needed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Schema {
    workspaces: Vec<String>,
    editors: Vec<String>,
    selections: Vec<String>,
    items: Vec<String>,
    panes: Vec<String>,
    key_values: Vec<String>,
    scoped_key_values: Vec<String>,
    file_folds: Vec<String>,
}

impl Schema {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let columns = |table: &str| -> rusqlite::Result<Vec<String>> {
            let mut info = connection.prepare_cached("SELECT name FROM pragma_table_info(?1)")?;
            info.query_map([table], |row| row.get(0))?.collect()
        };
        Ok(Self {
            workspaces: columns("workspaces")?,
            editors: columns("editors")?,
            selections: columns("editor_selections")?,
            items: columns("items")?,
            panes: columns("panes")?,
            key_values: columns("kv_store")?,
            scoped_key_values: columns("scoped_kv_store")?,
            file_folds: columns("file_folds")?,
        })
    }

    fn check(&self) -> Result<(), ZedError> {
        let of_folders = ["paths", "local_paths", "workspace_location", "local_paths_array"];
        for (table, columns, needs) in [
            ("workspaces", &self.workspaces, &["workspace_id"][..]),
            ("editors", &self.editors, &["item_id", "workspace_id"]),
            ("items", &self.items, &["item_id", "workspace_id", "pane_id", "kind", "active"]),
            ("panes", &self.panes, &["pane_id", "active"]),
        ] {
            if columns.is_empty() {
                return Err(ZedError::UnknownSchema(format!("there is no table {table}")));
            }
            if let Some(missing) = needs.iter().find(|need| !has(columns, need)) {
                return Err(ZedError::UnknownSchema(format!("there is no column {table}.{missing}")));
            }
        }
        if !of_folders.iter().any(|column| has(&self.workspaces, column)) {
            return Err(ZedError::UnknownSchema("no column of workspaces tells folders".into()));
        }
        if !["path", "buffer_path"].iter().any(|column| has(&self.editors, column)) {
            return Err(ZedError::UnknownSchema("no column of editors tells the file".into()));
        }
        Ok(())
    }
}

fn has(columns: &[String], name: &str) -> bool {
    columns.iter().any(|column| column == name)
}

/// The column, or NULL where this generation does not have it.
fn or_null<'a>(columns: &[String], name: &'a str) -> &'a str {
    if has(columns, name) { name } else { "NULL" }
}

/// The rows of one state of the database.
pub(super) struct Rows<'a> {
    transaction: &'a Transaction<'a>,
    schema: &'a Schema,
}

/// What `editors` tells of one editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditorRow {
    /// File, as the bytes of this host; `None` for an untitled buffer.
    pub(super) path: Option<Vec<u8>>,
    /// Text that is not in the file; `None` where the file has it all.
    pub(super) contents: Option<Vec<u8>>,
    /// Time of the file, in nanoseconds since the epoch, when the buffer was last in step with it.
    pub(super) modified: Option<i128>,
}

/// The selections of one editor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The largest row: grows with each write, whichever editor it is of.
    pub(super) last_row: i64,
    /// One per cursor, in buffer order.
    pub(super) offsets: Vec<Offsets>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MultiWorkspace {
    active_workspace_id: Option<i64>,
}

impl Rows<'_> {
    pub(super) fn workspaces(&self) -> rusqlite::Result<Vec<Workspace>> {
        let columns = &self.schema.workspaces;
        let column = |name| or_null(columns, name);
        let blob = if has(columns, "local_paths") { "local_paths" } else { column("workspace_location") };
        let remote: Vec<_> = REMOTE_COLUMNS.iter().filter(|name| has(columns, name)).copied().collect();
        let remote = if remote.is_empty() { "NULL".into() } else { format!("COALESCE({}, NULL)", remote.join(", ")) };
        let sql = format!(
            "SELECT workspace_id, {}, {blob}, {}, {remote} IS NOT NULL, {}, {}, {} FROM workspaces",
            column("paths"),
            column("local_paths_array"),
            column("session_id"),
            column("window_id"),
            column("timestamp"),
        );
        let workspace = |row: &Row<'_>| {
            Ok(Workspace {
                id: row.get(0)?,
                folders: FolderColumns {
                    paths: text(row, 1),
                    blob: bytes(row, 2),
                    array: text(row, 3),
                    is_remote: integer(row, 4) == Some(1),
                },
                session: text(row, 5),
                window: integer(row, 6),
                timestamp: text(row, 7).unwrap_or_default(),
            })
        };
        self.transaction.prepare_cached(&sql)?.query_map([], workspace)?.collect()
    }

    pub(super) fn windows(&self) -> rusqlite::Result<Windows> {
        let mut windows = Windows::default();
        if has(&self.schema.workspaces, "session_id") && has(&self.schema.key_values, "value") {
            windows.session = self.value("session_id")?;
            let stack = self.value("session_window_stack")?;
            windows.front_to_back = stack.and_then(|stack| serde_json::from_str(&stack).ok()).unwrap_or_default();
        }
        if has(&self.schema.scoped_key_values, "namespace") {
            let sql = "SELECT key, value FROM scoped_kv_store WHERE namespace = 'multi_workspace_state'";
            let mut statement = self.transaction.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let window = text(row, 0).and_then(|window| window.parse().ok());
                let state: Option<MultiWorkspace> = text(row, 1).and_then(|state| serde_json::from_str(&state).ok());
                if let Some((window, active)) = window.zip(state.and_then(|state| state.active_workspace_id)) {
                    windows.active.insert(window, active);
                }
            }
        }
        Ok(windows)
    }

    fn value(&self, key: &str) -> rusqlite::Result<Option<String>> {
        let mut statement = self.transaction.prepare_cached("SELECT value FROM kv_store WHERE key = ?1")?;
        let mut rows = statement.query([key])?;
        Ok(rows.next()?.and_then(|row| text(row, 0)))
    }

    pub(super) fn items(&self, workspace: i64) -> rusqlite::Result<Vec<Item>> {
        let sql = "SELECT i.item_id, i.pane_id, p.active, i.active, i.kind = 'Editor' AND EXISTS \
                   (SELECT 1 FROM editors e WHERE e.item_id = i.item_id AND e.workspace_id = i.workspace_id) \
                   FROM items i JOIN panes p ON p.pane_id = i.pane_id WHERE i.workspace_id = ?1";
        let is = |row: &Row<'_>, column| integer(row, column).is_some_and(|value| value != 0);
        let item = |row: &Row<'_>| {
            Ok(Item {
                id: row.get(0)?,
                pane: row.get(1)?,
                pane_is_active: is(row, 2),
                is_active: is(row, 3),
                is_editor: is(row, 4),
            })
        };
        self.transaction.prepare_cached(sql)?.query_map([workspace], item)?.collect()
    }

    /// The selections of each editor of a workspace; empty in generations that do not keep them.
    pub(super) fn selections(&self, workspace: i64) -> rusqlite::Result<HashMap<i64, Written>> {
        let mut written: HashMap<i64, Written> = HashMap::new();
        if !has(&self.schema.selections, "editor_id") {
            return Ok(written);
        }
        let sql = "SELECT item_id, editor_id, start, \"end\" FROM editor_selections WHERE workspace_id = ?1 \
                   ORDER BY item_id";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let mut rows = statement.query([workspace])?;
        while let Some(row) = rows.next()? {
            let of_editor = written.entry(row.get(1)?).or_default();
            of_editor.last_row = row.get(0)?;
            of_editor.offsets.push(Offsets { start: row.get(2)?, end: row.get(3)? });
        }
        Ok(written)
    }

    /// The row of one editor. `contents` lies before the times in the record and may be large, so it is told first
    /// whether there is any.
    pub(super) fn editor(&self, workspace: i64, editor: i64) -> rusqlite::Result<Option<EditorRow>> {
        let columns = &self.schema.editors;
        let path = if has(columns, "path") { "path" } else { "buffer_path" };
        let with_contents = if has(columns, "contents") { "typeof(contents) != 'null'" } else { "0" };
        let of_editor = "FROM editors WHERE item_id = ?1 AND workspace_id = ?2";
        let key = [editor, workspace];
        let first = |sql: &str, read: fn(&Row<'_>) -> EditorRow| -> rusqlite::Result<Option<EditorRow>> {
            let mut statement = self.transaction.prepare_cached(sql)?;
            let mut rows = statement.query(key)?;
            Ok(rows.next()?.map(read))
        };
        let is_dirty = {
            let mut statement = self.transaction.prepare_cached(&format!("SELECT {with_contents} {of_editor}"))?;
            let mut rows = statement.query(key)?;
            rows.next()?.is_some_and(|row| integer(row, 0) == Some(1))
        };
        if is_dirty {
            let sql = format!("SELECT {path}, contents {of_editor}");
            return first(&sql, |row| EditorRow { path: bytes(row, 0), contents: bytes(row, 1), modified: None });
        }
        let (seconds, nanos) = (or_null(columns, "mtime_seconds"), or_null(columns, "mtime_nanos"));
        first(&format!("SELECT {path}, {seconds}, {nanos} {of_editor}"), |row| {
            let modified = integer(row, 1).zip(integer(row, 2));
            let modified = modified.map(|(seconds, nanos)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos));
            EditorRow { path: bytes(row, 0), contents: None, modified }
        })
    }

    /// Whether this Zed kept a UTF-8 byte order mark in the buffer: the tables are those of versions before it did not.
    pub(super) fn keeps_mark(&self) -> bool {
        self.schema.scoped_key_values.is_empty() && self.schema.file_folds.is_empty()
    }
}

/// Text, lossy; `None` for anything else.
fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

fn bytes(row: &Row<'_>, column: usize) -> Option<Vec<u8>> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Some(bytes.to_owned()),
        _ => None,
    }
}

fn integer(row: &Row<'_>, column: usize) -> Option<i64> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => Some(number),
        _ => None,
    }
}
