//! What `live` tells is what stands in the database.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use pi_x_ide_zed_fixture::{FixtureError, Generation, LiveEvent, LiveOptions, Options, Scenario, live, make};
use rusqlite::{Connection, OpenFlags};

fn quick() -> LiveOptions {
    LiveOptions { interval: Duration::from_millis(1), cursors: 3, ..LiveOptions::default() }
}

fn rows(reader: &Connection, workspace: i64, item: i64) -> Vec<(u64, u64)> {
    reader
        .prepare("SELECT start, end FROM editor_selections WHERE editor_id = ? AND workspace_id = ? ORDER BY item_id")
        .expect("selections")
        .query_map((item, workspace), |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("offsets")
}

/// Runs until so many changes were made, and checks each against a second connection.
fn check(options: &Options, writing: &LiveOptions, changes: u64) -> Vec<LiveEvent> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let mut made = make(root.path(), options).expect("a fixture");
    let reader = Connection::open_with_flags(&made.path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a reader");
    let workspace = made.expected.active.workspace_id;
    let mut events = Vec::new();
    live(&mut made, writing, &mut |event| {
        let mut flow = ControlFlow::Continue(());
        match &event {
            LiveEvent::Selection { n, item_id, ranges, .. } => {
                assert_eq!(ranges.len(), writing.cursors);
                assert_eq!(&rows(&reader, workspace, *item_id), ranges);
                if *n == changes {
                    flow = ControlFlow::Break(());
                }
            }
            LiveEvent::Activate { item_id, .. } => {
                let active: Vec<i64> = reader
                    .prepare(
                        "SELECT item_id FROM items JOIN panes USING (pane_id) \
                         WHERE items.workspace_id = ? AND items.active = 1 AND panes.active = 1",
                    )
                    .and_then(|mut statement| statement.query_map([workspace], |row| row.get(0))?.collect())
                    .expect("active items");
                assert_eq!(active, [*item_id]);
            }
            LiveEvent::Ready { .. } | LiveEvent::Stop { .. } => {}
        }
        events.push(event);
        flow
    })
    .expect("live writing");
    let broken: i64 =
        reader.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).expect("foreign keys");
    assert_eq!(broken, 0);
    events
}

#[test]
fn ranges_equal_the_rows_in_every_generation_with_selections() {
    for generation in Generation::ALL.into_iter().filter(|generation| generation.has_selections()) {
        let writing = LiveOptions { switch_every: 3, type_every: 4, checkpoint_every: 5, ..quick() };
        let events = check(&Options::of(generation), &writing, 24);
        assert!(matches!(events[0], LiveEvent::Ready { .. }));
        assert_eq!(events.last(), Some(&LiveEvent::Stop { n: 24 }));
        let switches = events.iter().filter(|event| matches!(event, LiveEvent::Activate { .. })).count();
        assert_eq!(switches, 8);
    }
}

#[test]
fn atomic_writing_tells_the_same() {
    check(&Options::default(), &LiveOptions { atomic: true, ..quick() }, 10);
}

#[test]
fn no_cursor_leaves_no_row() {
    check(&Options::default(), &LiveOptions { cursors: 0, ..quick() }, 3);
}

#[test]
fn a_gap_shows_an_editor_without_rows() {
    let root = tempfile::tempdir().unwrap();
    let mut made = make(root.path(), &Options::default()).unwrap();
    let (path, active) = (made.path.clone(), made.expected.active.clone());
    let writing = LiveOptions { gap: Duration::from_millis(40), ..quick() };
    let stop = Arc::clone(&writing.stop);
    let watcher = thread::spawn(move || {
        let reader = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let started = Instant::now();
        let mut seen = false;
        while !seen && started.elapsed() < Duration::from_secs(20) {
            seen = rows(&reader, active.workspace_id, active.item_id.unwrap()).is_empty();
        }
        stop.store(true, Ordering::Relaxed);
        seen
    });
    live(&mut made, &writing, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(watcher.join().unwrap());
}

#[test]
fn an_active_terminal_leaves_another_editor_to_start_with() {
    let scenarios = Scenario::parse_list("+terminal-active").unwrap();
    let events = check(&Options { scenarios, ..Options::default() }, &quick(), 2);
    assert_eq!(events.len(), 4);
}

#[test]
fn the_duration_ends_it() {
    let root = tempfile::tempdir().unwrap();
    let mut made = make(root.path(), &Options::default()).unwrap();
    let writing = LiveOptions { duration: Some(Duration::from_millis(30)), ..quick() };
    let mut last = None;
    live(&mut made, &writing, &mut |event| {
        last = Some(event);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(matches!(last, Some(LiveEvent::Stop { .. })), "{last:?}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let ignore = &mut |_| ControlFlow::Continue(());
    let mut old = make(root.path(), &Options::of(Generation::G2024)).unwrap();
    assert!(matches!(live(&mut old, &quick(), ignore), Err(FixtureError::NoSelections(Generation::G2024))));
    old.close().unwrap();
    let mut new = make(root.path(), &Options::default()).unwrap();
    let many = LiveOptions { cursors: 8001, ..quick() };
    assert!(matches!(live(&mut new, &many, ignore), Err(FixtureError::TooManyCursors(8001))));
}

#[test]
fn the_most_cursors_fit_one_statement() {
    check(&Options::default(), &LiveOptions { cursors: 8000, ..quick() }, 1);
}

#[test]
fn events_are_json_objects_with_their_name() {
    let event = LiveEvent::Selection { n: 2, t: 1.5, item_id: 7, ranges: vec![(1, 4)] };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(json, r#"{"event":"selection","n":2,"t":1.5,"item_id":7,"ranges":[[1,4]]}"#);
    assert_eq!(serde_json::from_str::<LiveEvent>(&json).unwrap(), event);
}
