//! The tables as data: which column exists from when to when.

use rusqlite::Connection;

use crate::Generation::{self, G2023, G2024, G2025a, G2025b, G2025c, G2026};

/// The generations a part of the schema lives in, both ends included.
#[derive(Clone, Copy)]
struct Span(Generation, Generation);

impl Span {
    fn has(self, generation: Generation) -> bool {
        (self.0..=self.1).contains(&generation)
    }
}

const ALWAYS: Span = Span(G2023, G2026);
const SINCE_2024: Span = Span(G2024, G2026);
const SINCE_2025A: Span = Span(G2025a, G2026);
const SINCE_2025B: Span = Span(G2025b, G2026);
const SINCE_2025C: Span = Span(G2025c, G2026);
const LOCAL_PATHS: Span = Span(G2024, G2025a);

const fn only(generation: Generation) -> Span {
    Span(generation, generation)
}

struct Column {
    name: &'static str,
    sql: &'static str,
    span: Span,
}

const fn col(name: &'static str, sql: &'static str) -> Column {
    col_in(ALWAYS, name, sql)
}

const fn col_in(span: Span, name: &'static str, sql: &'static str) -> Column {
    Column { name, sql, span }
}

struct Table {
    name: &'static str,
    span: Span,
    strict: bool,
    columns: &'static [Column],
    constraints: &'static [&'static str],
}

const TO_WORKSPACE: &str =
    "FOREIGN KEY(workspace_id) REFERENCES workspaces(workspace_id) ON DELETE CASCADE ON UPDATE CASCADE";
const TO_PANE: &str = "FOREIGN KEY(pane_id) REFERENCES panes(pane_id) ON DELETE CASCADE";
const TO_GROUP: &str = "FOREIGN KEY(parent_group_id) REFERENCES pane_groups(group_id) ON DELETE CASCADE";
const TO_EDITOR: &str =
    "FOREIGN KEY(editor_id, workspace_id) REFERENCES editors(item_id, workspace_id) ON DELETE CASCADE";

/// In the order of creation: a table comes after those that it refers to.
static TABLES: &[Table] = &[
    Table {
        name: "migrations",
        span: ALWAYS,
        strict: false,
        columns: &[col("domain", "TEXT"), col("step", "INTEGER"), col("migration", "TEXT")],
        constraints: &[],
    },
    Table {
        name: "kv_store",
        span: ALWAYS,
        strict: true,
        columns: &[col("key", "TEXT PRIMARY KEY"), col("value", "TEXT NOT NULL")],
        constraints: &[],
    },
    Table {
        name: "scoped_kv_store",
        span: only(G2026),
        strict: true,
        columns: &[col("namespace", "TEXT NOT NULL"), col("key", "TEXT NOT NULL"), col("value", "TEXT NOT NULL")],
        constraints: &["PRIMARY KEY(namespace, key)"],
    },
    Table {
        name: "ssh_projects",
        span: LOCAL_PATHS,
        strict: false,
        columns: &[
            col("id", "INTEGER PRIMARY KEY"),
            col("host", "TEXT NOT NULL"),
            col("port", "INTEGER"),
            col("paths", "TEXT NOT NULL"),
            col("user", "TEXT"),
        ],
        constraints: &[],
    },
    Table {
        name: "dev_server_projects",
        span: LOCAL_PATHS,
        strict: false,
        columns: &[col("id", "INTEGER NOT NULL UNIQUE"), col("path", "TEXT"), col("dev_server_name", "TEXT")],
        constraints: &[],
    },
    Table {
        name: "ssh_connections",
        span: only(G2025b),
        strict: false,
        columns: &[
            col("id", "INTEGER PRIMARY KEY"),
            col("host", "TEXT NOT NULL"),
            col("port", "INTEGER"),
            col("user", "TEXT"),
        ],
        constraints: &[],
    },
    Table {
        name: "remote_connections",
        span: SINCE_2025C,
        strict: false,
        columns: &[
            col("id", "INTEGER PRIMARY KEY"),
            col("kind", "TEXT NOT NULL"),
            col("host", "TEXT"),
            col("port", "INTEGER"),
            col("user", "TEXT"),
            col("distro", "TEXT"),
            col("name", "TEXT"),
            col("container_id", "TEXT"),
            col_in(only(G2026), "use_podman", "BOOLEAN"),
            col_in(only(G2026), "remote_env", "TEXT"),
        ],
        constraints: &[],
    },
    Table { name: "workspaces", span: ALWAYS, strict: true, columns: WORKSPACES, constraints: &[] },
    Table {
        name: "pane_groups",
        span: ALWAYS,
        strict: true,
        columns: &[
            col("group_id", "INTEGER PRIMARY KEY"),
            col("workspace_id", "INTEGER NOT NULL"),
            col("parent_group_id", "INTEGER"),
            col("position", "INTEGER"),
            col("axis", "TEXT NOT NULL"),
            col("flexes", "TEXT"),
        ],
        constraints: &[TO_WORKSPACE, TO_GROUP],
    },
    Table {
        name: "panes",
        span: ALWAYS,
        strict: true,
        columns: &[
            col("pane_id", "INTEGER PRIMARY KEY"),
            col("workspace_id", "INTEGER NOT NULL"),
            col("active", "INTEGER NOT NULL"),
            col_in(SINCE_2024, "pinned_count", "INTEGER DEFAULT 0"),
        ],
        constraints: &[TO_WORKSPACE],
    },
    Table {
        name: "center_panes",
        span: ALWAYS,
        strict: true,
        columns: &[
            col("pane_id", "INTEGER PRIMARY KEY"),
            col("parent_group_id", "INTEGER"),
            col("position", "INTEGER"),
        ],
        constraints: &[TO_PANE, TO_GROUP],
    },
    Table {
        name: "items",
        span: ALWAYS,
        strict: true,
        columns: &[
            col("item_id", "INTEGER NOT NULL"),
            col("workspace_id", "INTEGER NOT NULL"),
            col("pane_id", "INTEGER NOT NULL"),
            col("kind", "TEXT NOT NULL"),
            col("position", "INTEGER NOT NULL"),
            col("active", "INTEGER NOT NULL"),
            col_in(SINCE_2024, "preview", "INTEGER"),
        ],
        constraints: &[TO_WORKSPACE, TO_PANE, "PRIMARY KEY(item_id, workspace_id)"],
    },
    Table {
        name: "editors",
        span: ALWAYS,
        strict: true,
        // The physical order is Zed's: what follows `contents` costs a walk over its overflow pages.
        columns: &[
            col("item_id", "INTEGER NOT NULL"),
            col("workspace_id", "INTEGER NOT NULL"),
            col_in(only(G2023), "path", "BLOB NOT NULL"),
            col_in(SINCE_2024, "path", "BLOB"),
            col("scroll_top_row", "INTEGER NOT NULL DEFAULT 0"),
            col("scroll_horizontal_offset", "REAL NOT NULL DEFAULT 0"),
            col("scroll_vertical_offset", "REAL NOT NULL DEFAULT 0"),
            col_in(SINCE_2024, "contents", "TEXT"),
            col_in(SINCE_2024, "language", "TEXT"),
            col_in(SINCE_2024, "mtime_seconds", "INTEGER DEFAULT NULL"),
            col_in(SINCE_2024, "mtime_nanos", "INTEGER DEFAULT NULL"),
            col_in(SINCE_2025A, "buffer_path", "TEXT"),
        ],
        constraints: &["PRIMARY KEY(item_id, workspace_id)", TO_WORKSPACE],
    },
    Table {
        name: "editor_selections",
        span: SINCE_2025A,
        strict: true,
        columns: &[
            col("item_id", "INTEGER NOT NULL"),
            col("editor_id", "INTEGER NOT NULL"),
            col("workspace_id", "INTEGER NOT NULL"),
            col("start", "INTEGER NOT NULL"),
            col("end", "INTEGER NOT NULL"),
        ],
        constraints: &["PRIMARY KEY(item_id)", TO_EDITOR],
    },
    Table {
        name: "editor_folds",
        span: SINCE_2025A,
        strict: true,
        columns: &[
            col("item_id", "INTEGER NOT NULL"),
            col("editor_id", "INTEGER NOT NULL"),
            col("workspace_id", "INTEGER NOT NULL"),
            col("start", "INTEGER NOT NULL"),
            col("end", "INTEGER NOT NULL"),
            col_in(only(G2026), "start_fingerprint", "TEXT"),
            col_in(only(G2026), "end_fingerprint", "TEXT"),
        ],
        constraints: &["PRIMARY KEY(item_id)", TO_EDITOR],
    },
    Table {
        name: "file_folds",
        span: only(G2026),
        strict: false,
        columns: &[
            col("workspace_id", "INTEGER NOT NULL"),
            col("path", "TEXT NOT NULL"),
            col("start", "INTEGER NOT NULL"),
            col("end", "INTEGER NOT NULL"),
            col("start_fingerprint", "TEXT"),
            col("end_fingerprint", "TEXT"),
        ],
        constraints: &[TO_WORKSPACE, "PRIMARY KEY(workspace_id, path, start)"],
    },
    Table {
        name: "bookmarks",
        span: only(G2026),
        strict: false,
        columns: &[
            col("workspace_id", "INTEGER NOT NULL"),
            col("path", "TEXT NOT NULL"),
            col("row", "INTEGER NOT NULL"),
            col("label", "TEXT NOT NULL DEFAULT ''"),
        ],
        constraints: &[TO_WORKSPACE],
    },
    Table {
        name: "terminals",
        span: ALWAYS,
        strict: true,
        columns: &[
            col("workspace_id", "INTEGER"),
            col("item_id", "INTEGER"),
            col("working_directory", "BLOB"),
            col("working_directory_path", "TEXT"),
            col("custom_title", "TEXT"),
        ],
        constraints: &[
            "PRIMARY KEY(workspace_id, item_id)",
            "FOREIGN KEY(workspace_id) REFERENCES workspaces(workspace_id) ON DELETE CASCADE",
        ],
    },
];

/// Up to 2025a `workspaces` grew column by column; 2025b rebuilt it, so the later columns stand in another order.
const WORKSPACES: &[Column] = &[
    col("workspace_id", "INTEGER PRIMARY KEY"),
    col_in(only(G2023), "workspace_location", "BLOB UNIQUE"),
    col_in(LOCAL_PATHS, "local_paths", "BLOB UNIQUE"),
    col_in(SINCE_2025B, "paths", "TEXT"),
    col_in(SINCE_2025B, "paths_order", "TEXT"),
    col_in(only(G2025b), "ssh_connection_id", "INTEGER REFERENCES ssh_connections(id)"),
    col_in(SINCE_2025C, "remote_connection_id", "INTEGER REFERENCES remote_connections(id)"),
    col_in(Span(G2023, G2025a), "dock_visible", "INTEGER"),
    col_in(Span(G2023, G2025a), "dock_anchor", "TEXT"),
    col_in(Span(G2023, G2025a), "dock_pane", "INTEGER"),
    col_in(Span(G2023, G2025a), "left_sidebar_open", "INTEGER"),
    col("timestamp", "TEXT DEFAULT CURRENT_TIMESTAMP NOT NULL"),
    col("window_state", "TEXT"),
    col("window_x", "REAL"),
    col("window_y", "REAL"),
    col("window_width", "REAL"),
    col("window_height", "REAL"),
    col("display", "BLOB"),
    col("left_dock_visible", "INTEGER"),
    col("left_dock_active_panel", "TEXT"),
    col("left_dock_zoom", "INTEGER"),
    col("right_dock_visible", "INTEGER"),
    col("right_dock_active_panel", "TEXT"),
    col("right_dock_zoom", "INTEGER"),
    col("bottom_dock_visible", "INTEGER"),
    col("bottom_dock_active_panel", "TEXT"),
    col("bottom_dock_zoom", "INTEGER"),
    col("fullscreen", "INTEGER"),
    col_in(SINCE_2024, "centered_layout", "INTEGER"),
    col_in(LOCAL_PATHS, "dev_server_project_id", "INTEGER"),
    col_in(LOCAL_PATHS, "local_paths_order", "BLOB"),
    col_in(LOCAL_PATHS, "session_id", "TEXT DEFAULT NULL"),
    col_in(LOCAL_PATHS, "window_id", "INTEGER DEFAULT NULL"),
    col_in(LOCAL_PATHS, "ssh_project_id", "INTEGER REFERENCES ssh_projects(id) ON DELETE CASCADE"),
    col_in(only(G2025a), "local_paths_array", "TEXT"),
    col_in(only(G2025a), "local_paths_order_array", "TEXT"),
    col_in(SINCE_2025B, "session_id", "TEXT"),
    col_in(SINCE_2025B, "window_id", "INTEGER"),
    col_in(only(G2026), "identity_paths", "TEXT"),
    col_in(only(G2026), "identity_paths_order", "TEXT"),
];

static INDEXES: &[(Span, &str)] = &[
    (only(G2025a), "CREATE UNIQUE INDEX local_paths_array_uq ON workspaces(local_paths_array)"),
    (only(G2025b), "CREATE UNIQUE INDEX ix_workspaces_location ON workspaces(ssh_connection_id, paths)"),
    (SINCE_2025C, "CREATE UNIQUE INDEX ix_workspaces_location ON workspaces(remote_connection_id, paths)"),
];

/// How many `migrations` rows the `WorkspaceDb` and `EditorDb` domains have.
const fn steps(generation: Generation) -> [(&'static str, i64); 2] {
    let (workspace, editor) = match generation {
        G2023 => (8, 2),
        G2024 => (17, 4),
        G2025a => (23, 7),
        G2025b => (28, 7),
        G2025c => (32, 7),
        G2026 => (40, 9),
    };
    [("WorkspaceDb", workspace), ("EditorDb", editor)]
}

fn in_generation(generation: Generation) -> impl Iterator<Item = &'static Table> {
    TABLES.iter().filter(move |table| table.span.has(generation))
}

/// Whether the generation's table has the column.
pub(crate) fn has_column(generation: Generation, table: &str, column: &str) -> bool {
    in_generation(generation)
        .filter(|candidate| candidate.name == table)
        .flat_map(|candidate| candidate.columns)
        .any(|candidate| candidate.name == column && candidate.span.has(generation))
}

/// Creates the tables, their indexes and the `migrations` rows.
pub(crate) fn create(connection: &Connection, generation: Generation) -> rusqlite::Result<()> {
    for table in in_generation(generation) {
        let columns = table.columns.iter().filter(|column| column.span.has(generation));
        let parts: Vec<String> = columns
            .map(|column| format!("\"{}\" {}", column.name, column.sql))
            .chain(table.constraints.iter().map(|&constraint| constraint.to_owned()))
            .collect();
        let strict = if table.strict { " STRICT" } else { "" };
        connection.execute(&format!("CREATE TABLE {} ({}){strict}", table.name, parts.join(", ")), [])?;
    }
    for (_, sql) in INDEXES.iter().filter(|(span, _)| span.has(generation)) {
        connection.execute(sql, [])?;
    }
    let mut insert = connection.prepare("INSERT INTO migrations VALUES (?, ?, 'synthetic')")?;
    for (domain, count) in steps(generation) {
        for step in 0..count {
            insert.execute((domain, step))?;
        }
    }
    Ok(())
}
