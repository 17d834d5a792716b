//! The database of each generation, asked with plain SQL.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use pi_x_ide_zed_fixture::{Expected, Generation, Made, Options, Scenario, make, text};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

fn made(options: &Options) -> (TempDir, Made) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let made = make(root.path(), options).expect("a fixture");
    (root, made)
}

fn read_only(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a reader")
}

fn columns(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?)").expect("pragma");
    statement.query_map([table], |row| row.get(0)).expect("columns").collect::<Result<_, _>>().expect("names")
}

fn selection_rows(connection: &Connection, workspace: i64, item: i64) -> Vec<(u64, u64)> {
    connection
        .prepare("SELECT start, end FROM editor_selections WHERE editor_id = ? AND workspace_id = ? ORDER BY item_id")
        .expect("selections")
        .query_map((item, workspace), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
        .expect("rows")
        .map(|row| row.map(|(start, end)| (start.min(end) as u64, start.max(end) as u64)))
        .collect::<Result<_, _>>()
        .expect("offsets")
}

#[test]
fn each_generation_has_its_tables_and_columns() {
    use Generation::{G2023, G2024, G2025a, G2025b, G2025c, G2026};
    let parts: &[(&str, &str, &[Generation])] = &[
        ("workspaces", "workspace_location", &[G2023]),
        ("workspaces", "local_paths", &[G2024, G2025a]),
        ("workspaces", "local_paths_array", &[G2025a]),
        ("workspaces", "session_id", &[G2024, G2025a, G2025b, G2025c, G2026]),
        ("workspaces", "ssh_project_id", &[G2024, G2025a]),
        ("workspaces", "paths", &[G2025b, G2025c, G2026]),
        ("workspaces", "ssh_connection_id", &[G2025b]),
        ("workspaces", "remote_connection_id", &[G2025c, G2026]),
        ("workspaces", "identity_paths", &[G2026]),
        ("items", "preview", &[G2024, G2025a, G2025b, G2025c, G2026]),
        ("editors", "path", &Generation::ALL),
        ("editors", "contents", &[G2024, G2025a, G2025b, G2025c, G2026]),
        ("editors", "buffer_path", &[G2025a, G2025b, G2025c, G2026]),
        ("editor_selections", "start", &[G2025a, G2025b, G2025c, G2026]),
        ("ssh_projects", "paths", &[G2024, G2025a]),
        ("ssh_connections", "host", &[G2025b]),
        ("remote_connections", "kind", &[G2025c, G2026]),
        ("remote_connections", "remote_env", &[G2026]),
        ("scoped_kv_store", "namespace", &[G2026]),
        ("file_folds", "path", &[G2026]),
    ];
    for generation in Generation::ALL {
        let (_root, made) = made(&Options::of(generation));
        for &(table, column, generations) in parts {
            let has = columns(made.connection(), table).iter().any(|name| name == column);
            assert_eq!(has, generations.contains(&generation), "{generation}: {table}.{column}");
        }
    }
}

#[test]
fn each_database_is_sound_and_in_wal_mode() {
    for generation in Generation::ALL {
        let (_root, made) = made(&Options::of(generation));
        let ask = |pragma: &str| -> String {
            made.connection().query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!(ask("integrity_check"), "ok", "{generation}");
        assert_eq!(ask("journal_mode"), "wal");
        let count = |sql: &str| -> i64 { made.connection().query_row(sql, [], |row| row.get(0)).unwrap() };
        assert_eq!(count("SELECT count(*) FROM pragma_foreign_key_check"), 0, "{generation}");
        assert_eq!(count("SELECT foreign_keys FROM pragma_foreign_keys"), 1);
        assert_eq!(count("SELECT synchronous FROM pragma_synchronous"), 1);
        assert_eq!(count("SELECT timeout FROM pragma_busy_timeout"), 500);
    }
}

#[test]
fn the_rows_are_the_expected_ones() {
    for generation in Generation::ALL {
        let (_root, made) = made(&Options::of(generation));
        let reader = read_only(&made.path);
        for editor in &made.expected.editors {
            let key = (editor.item_id, editor.workspace_id);
            let path: Option<Vec<u8>> = reader
                .query_row("SELECT path FROM editors WHERE item_id = ? AND workspace_id = ?", key, |row| row.get(0))
                .unwrap();
            assert_eq!(path.as_deref(), editor.path.as_deref().map(str::as_bytes), "{generation}: {}", editor.note);
            if generation.has_selections() {
                let rows = selection_rows(&reader, editor.workspace_id, editor.item_id);
                let expected: Vec<_> = editor.selections.iter().map(|range| (range.start, range.end)).collect();
                assert_eq!(rows, expected, "{generation}: {}", editor.note);
            }
        }
    }
}

/// The buffer as a correct reader gets it: the row's contents, else the decoded file.
fn buffer(generation: Generation, contents: Option<String>, path: Option<&str>) -> Option<String> {
    if contents.is_some() {
        return contents;
    }
    let bytes = fs::read(path?).ok()?;
    let decoded = match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] => {
            let units: Vec<u16> = units.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            String::from_utf16(&units).ok()?
        }
        bytes => String::from_utf8(bytes.to_vec()).ok()?,
    };
    let stripped = decoded.strip_prefix('\u{feff}').filter(|_| generation.strips_bom());
    Some(text::normalise(stripped.unwrap_or(&decoded)))
}

#[test]
fn the_expected_texts_come_from_the_contents_or_the_files() {
    for generation in Generation::ALL.into_iter().filter(|generation| generation.has_selections()) {
        let (_root, made) = made(&Options::of(generation));
        let mut checked = 0;
        for editor in &made.expected.editors {
            let key = (editor.item_id, editor.workspace_id);
            let contents: Option<String> = made
                .connection()
                .query_row("SELECT contents FROM editors WHERE item_id = ? AND workspace_id = ?", key, |row| row.get(0))
                .unwrap();
            assert_eq!(contents.is_some(), editor.contents_in_db, "{generation}: {}", editor.note);
            let hidden = editor.dirty && !editor.contents_in_db;
            let Some(buffer) = buffer(generation, contents, editor.path.as_deref()).filter(|_| !hidden) else {
                continue;
            };
            for selection in &editor.selections {
                let Some(text) = &selection.text else { continue };
                let (start, end) = text::clip(&buffer, selection.start as usize, selection.end as usize);
                assert_eq!(&buffer[start..end], text, "{generation}: {}", editor.note);
                checked += 1;
            }
        }
        assert!(checked > 40, "{generation}: only {checked} texts checked");
    }
}

#[test]
fn mtimes_are_those_of_the_files_but_for_the_changed_one() {
    let (_root, made) = made(&Options::default());
    let mut differing = Vec::new();
    for editor in &made.expected.editors {
        let Some(modified) = editor.path.as_deref().and_then(|path| fs::metadata(path).ok()) else { continue };
        let modified = modified.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let row: (i64, i64) = made
            .connection()
            .query_row(
                "SELECT mtime_seconds, mtime_nanos FROM editors WHERE item_id = ? AND workspace_id = ?",
                (editor.item_id, editor.workspace_id),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        if row != (modified.as_secs() as i64, i64::from(modified.subsec_nanos())) {
            differing.push(editor.note.as_str());
        }
    }
    // The remote workspace with the local path has the other host's mtime.
    assert_eq!(differing.len(), 2, "{differing:?}");
    assert!(differing[0].starts_with("remote ssh"));
    assert!(differing[1].starts_with("disk is newer"));
}

#[test]
fn roots_stand_sorted_with_the_users_order_beside_them() {
    let (_root, made) = made(&Options::default());
    let active = &made.expected.active;
    let (paths, order): (String, String) = made
        .connection()
        .query_row("SELECT paths, paths_order FROM workspaces WHERE workspace_id = ?", [active.workspace_id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let roots: Vec<&str> = paths.lines().collect();
    assert!(roots.is_sorted());
    let by_user: HashMap<&str, &str> = order.split(',').zip(roots).collect();
    assert_eq!([by_user["0"], by_user["1"]], active.roots_in_user_order.as_slice());
}

#[test]
fn json_paths_are_an_array() {
    let (_root, made) = made(&Options { json_paths: true, ..Options::of(Generation::G2025b) });
    let active = &made.expected.active;
    let paths: String = made
        .connection()
        .query_row("SELECT paths FROM workspaces WHERE workspace_id = ?", [active.workspace_id], |row| row.get(0))
        .unwrap();
    let mut roots: Vec<String> = serde_json::from_str(&paths).unwrap();
    roots.reverse();
    assert_eq!(roots, active.roots_in_user_order);
}

#[test]
fn nothing_is_from_the_future_and_the_main_window_is_the_latest() {
    let options = Options { history_workspaces: 30, windows: 40, ..Options::default() };
    let (_root, made) = made(&options);
    let latest: i64 = made
        .connection()
        .query_row(
            "SELECT workspace_id FROM workspaces WHERE timestamp <= datetime('now') \
             ORDER BY timestamp DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(latest, made.expected.active.workspace_id);
    let future: i64 = made
        .connection()
        .query_row("SELECT count(*) FROM workspaces WHERE timestamp > datetime('now')", [], |row| row.get(0))
        .unwrap();
    assert_eq!(future, 0);
}

#[test]
fn focus_and_terminal_scenarios_change_what_is_active() {
    let scenarios = Scenario::parse_list("+terminal-active,+no-focus,-multi-root").unwrap();
    let (_root, made) = made(&Options { scenarios, ..Options::default() });
    let active = &made.expected.active;
    assert_eq!(active.item_id, None);
    assert!(!active.panes_active);
    assert_eq!(active.roots_in_user_order.len(), 1);
    let (focused, kinds): (i64, String) = made
        .connection()
        .query_row(
            "SELECT sum(DISTINCT p.active), group_concat(i.kind) FROM panes p JOIN items i USING (pane_id) \
             WHERE p.workspace_id = ? AND i.active = 1",
            [active.workspace_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(focused, 0);
    assert!(kinds.split(',').any(|kind| kind == "Terminal"), "{kinds}");
}

#[test]
fn history_and_big_file_have_their_sizes() {
    let options = Options {
        history_workspaces: 3,
        history_editors: 4,
        history_mb: 1,
        big_file_mb: 1,
        scenarios: Vec::new(),
        windows: 1,
        ..Options::default()
    };
    let (_root, made) = made(&options);
    let (editors, bytes): (i64, i64) = made
        .connection()
        .query_row("SELECT count(*), sum(length(contents)) FROM editors WHERE contents IS NOT NULL", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((editors, bytes), (12, 12 * ((1 << 20) / 12)));
    let big = made.expected.editors.iter().find(|editor| editor.note.starts_with("big file")).unwrap();
    assert!(big.buffer_bytes.unwrap() >= 1 << 20);
    assert_eq!(big.selections[0].text.as_deref(), Some("lazy dog"));
}

#[test]
fn expected_json_says_the_same_and_equal_seeds_give_equal_ids() {
    let (root, first) = made(&Options::default());
    let json = fs::read(root.path().join("expected.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Expected>(&json).unwrap(), first.expected);
    let (_other, second) = made(&Options::default());
    let ids = |made: &Made| -> Vec<i64> { made.expected.editors.iter().map(|editor| editor.item_id).collect() };
    assert_eq!(ids(&first), ids(&second));
    assert_eq!(first.expected.session_id, second.expected.session_id);
}

#[test]
fn close_removes_the_wal_and_a_crash_leaves_it() {
    let beside = |path: &Path| ["sqlite-wal", "sqlite-shm"].map(|extension| path.with_extension(extension).exists());
    let (root, running) = made(&Options::default());
    let path = running.path.clone();
    assert_eq!(beside(&path), [true, true]);
    let expected = running.close().unwrap();
    assert_eq!(beside(&path), [false, false]);

    let again = make(root.path(), &Options::default()).unwrap();
    again.crash().unwrap();
    assert_eq!(beside(&path), [true, true]);
    // Nothing was checkpointed, so only the WAL has the rows.
    assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
    let workspaces: i64 =
        read_only(&path).query_row("SELECT max(workspace_id) FROM workspaces", [], |row| row.get(0)).unwrap();
    assert!(workspaces >= expected.active.workspace_id);
}
