//! What several test modules share.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::connection::{EventSink, LinkEvent};
use crate::env::Env;
use crate::protocol::lenient::Text;
use crate::protocol::snapshot::Snapshot;

/// This machine with another home folder and no variables.
pub(crate) fn env_with_home(home: &Path) -> Arc<Env> {
    Arc::new(Env { home: Some(home.to_owned()), vars: HashMap::new(), ..Env::current() })
}

/// An open file without a selection.
pub(crate) fn snapshot(file: &str) -> Snapshot {
    Snapshot {
        source: "vscode".into(),
        file_path: Text(file.into()),
        workspace_folder: None,
        ranges: Vec::new(),
        received_at: None,
    }
}

/// Waits until a condition holds; panics after ten seconds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// Remembers the events of a link.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<LinkEvent>>);

impl EventSink for Seen {
    fn deliver(&self, event: LinkEvent) {
        self.0.lock().unwrap().push(event);
    }

    async fn room(&self) {}
}
