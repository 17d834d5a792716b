//! A link against writers that go on as Zed does.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pi_x_ide_bridge::connection::LinkEvent;
use pi_x_ide_bridge::zed::{Offsets, ranges};
use pi_x_ide_zed_fixture::{LiveEvent, LiveOptions, Options, live};

use crate::support::{Machine, Seen, until};

/// An editor and its selections.
type Rows = (i64, Vec<(u64, u64)>);

#[tokio::test]
async fn what_is_not_known_stays_as_it_was() {
    let machine = Machine::new(&Options::default());
    let (workspace, item) = {
        let active = &machine.made.expected.active;
        (active.workspace_id, active.item_id.unwrap())
    };
    let mut link = machine.link().await.unwrap();
    let seen = Arc::new(Seen::default());
    let sink = Arc::clone(&seen);
    let follows = tokio::spawn(async move { link.run(sink.as_ref()).await });
    until("the first", || seen.last_texts().is_some_and(|texts| texts == ["line 0042"])).await;
    machine.execute(&format!("DELETE FROM editor_selections WHERE editor_id = {item}"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(seen.events.lock().unwrap().len(), 1, "the rows may come back at any moment");
    machine.execute(&format!(
        "INSERT INTO editor_selections(editor_id, workspace_id, start, end) VALUES ({item}, {workspace}, 0, 4)"
    ));
    until("they came back", || seen.last_texts().is_some_and(|texts| texts == ["line"])).await;
    machine.execute(&format!("UPDATE editor_selections SET start = 2, end = 2 WHERE editor_id = {item}"));
    until("a caret", || seen.last_texts().is_some_and(|texts| texts.is_empty())).await;
    machine.execute(&format!("DELETE FROM items WHERE workspace_id = {workspace}"));
    until("closed", || matches!(seen.last(), Some(LinkEvent::Cleared))).await;
    follows.abort();
}

#[tokio::test]
async fn a_database_that_breaks_ends_the_link_after_some_tries() {
    let machine = Machine::new(&Options::default());
    let mut link = machine.link().await.unwrap();
    let seen = Seen::default();
    machine.execute("PRAGMA foreign_keys = OFF; DROP TABLE editors");
    let reason = link.run(&seen).await.to_string();
    assert!(reason.contains("no table editors"), "{reason}");
    assert_eq!(seen.notes.lock().unwrap().len(), 1, "told once, however often it was tried");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_that_is_told_was_committed_and_the_last_one_is_told() {
    let mut machine = Machine::new(&Options::default());
    let mut link = machine.link().await.unwrap();
    let seen = Arc::new(Seen::default());
    let sink = Arc::clone(&seen);
    let follows = tokio::spawn(async move { link.run(sink.as_ref()).await });
    let committed: Arc<Mutex<Vec<Rows>>> = Arc::default();
    let stop = Arc::default();
    let options = LiveOptions {
        interval: Duration::from_millis(5),
        switch_every: 7,
        checkpoint_every: 11,
        cursors: 3,
        stop: Arc::clone(&stop),
        ..LiveOptions::default()
    };
    let log = Arc::clone(&committed);
    let writer = tokio::task::spawn_blocking(move || {
        live(&mut machine.made, &options, &mut |event| {
            if let LiveEvent::Selection { item_id, ranges, .. } = event {
                log.lock().unwrap().push((item_id, ranges));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        machine
    });
    tokio::time::sleep(Duration::from_secs(6)).await;
    stop.store(true, Ordering::Relaxed);
    let machine = writer.await.unwrap();
    let last = committed.lock().unwrap().last().cloned().unwrap();
    let editor = |item: i64| {
        let mut editors = machine.made.expected.editors.iter();
        editors.find(|editor| editor.item_id == item).unwrap()
    };
    let text_of = |item: i64| {
        let path = editor(item).path.clone().unwrap();
        (path.clone(), std::fs::read(path).unwrap())
    };
    let shown = |item: i64, rows: &[(u64, u64)]| -> Option<(String, Vec<String>)> {
        if editor(item).dirty {
            return None;
        }
        let (path, bytes) = text_of(item);
        let text = String::from_utf8(bytes).ok().filter(|text| text.is_ascii() && !text.contains('\r'))?;
        let offsets: Vec<_> = rows.iter().map(|(a, b)| Offsets { start: *a as i64, end: *b as i64 }).collect();
        Some((path, ranges(&text, &offsets).into_iter().map(|range| range.text.0).collect()))
    };
    let began = Instant::now();
    let last_shown = || match seen.last() {
        Some(LinkEvent::Selection(snapshot)) => Some(snapshot.file_path.0),
        _ => None,
    };
    until("the last state", || last_shown() == Some(text_of(last.0).0)).await;
    assert!(began.elapsed() < Duration::from_secs(10));
    let known: HashSet<_> = committed.lock().unwrap().iter().filter_map(|(item, rows)| shown(*item, rows)).collect();
    let plain: HashSet<_> = known.iter().map(|(path, _)| path.clone()).collect();
    let events = seen.events.lock().unwrap();
    let mut checked = 0;
    for event in events.iter().skip(1) {
        let LinkEvent::Selection(snapshot) = event else { panic!("{event:?}") };
        let told: Vec<_> = snapshot.ranges.iter().map(|range| range.text.0.clone()).collect();
        if plain.contains(&snapshot.file_path.0) && !told.is_empty() {
            assert!(
                known.contains(&(snapshot.file_path.0.clone(), told.clone())),
                "{}: {told:?}",
                snapshot.file_path.0
            );
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked} of {}", events.len());
    assert!(seen.notes.lock().unwrap().iter().all(|note| !note.contains("busy")), "{:?}", seen.notes);
    follows.abort();
}
