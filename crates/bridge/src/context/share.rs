//! Whether a snapshot may go along with a prompt at all.

use crate::paths::{Host, contains};
use crate::protocol::snapshot::Snapshot;

/// How far the user reached for this editor: decides on files outside pi's folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// The user attached or mentioned the snapshot.
    pub attached: bool,
    /// The user picked this editor by hand.
    pub picked_by_hand: bool,
}

/// Whether the file may be named to the model: inside pi's folder or the matched workspace folder, else only where
/// the user reached for it.
pub fn may_go_along(host: &Host, cwd: &str, workspace_folder: Option<&str>, snapshot: &Snapshot, reach: Reach) -> bool {
    let file = &snapshot.file_path.0;
    let inside = |folder: &str| contains(host, folder, file, host.ignores_case());
    reach.attached || reach.picked_by_hand || inside(cwd) || workspace_folder.is_some_and(inside)
}
