//! Which workspace and which editor of Zed's rows the user means. Pure.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::folders::FolderColumns;

/// A row of `workspaces`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// `workspace_id`.
    pub id: i64,
    /// What tells its folders.
    pub folders: FolderColumns,
    /// `session_id` of the run of Zed that saved it last; `None` once its window was closed.
    pub session: Option<String>,
    /// `window_id` at the last save.
    pub window: Option<i64>,
    /// `timestamp`, which sorts as text.
    pub timestamp: String,
}

/// What Zed tells of its windows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows {
    /// Id of the run that is, or was, the last one; `None` in old generations.
    pub session: Option<String>,
    /// Window ids, front to back; may be missing or old.
    pub front_to_back: Vec<i64>,
    /// The active workspace of each window that has several.
    pub active: HashMap<i64, i64>,
}

impl Windows {
    /// Whether a workspace may be open in the present run: closing a window takes the session from its row.
    pub fn may_be_open(&self, workspace: &Workspace) -> bool {
        self.session.is_none() || workspace.session.is_some()
    }

    /// The workspace that is meant among some that fit equally well: of the present session, active in its window, of
    /// the foremost window, with the selection that was written last, saved last.
    pub fn foremost<'a>(
        &self,
        workspaces: impl Iterator<Item = &'a Workspace>,
        last_written: impl Fn(&Workspace) -> Option<i64>,
    ) -> Option<&'a Workspace> {
        workspaces.max_by_key(|workspace| {
            let window = workspace.window.filter(|_| self.is_of_this_session(workspace));
            let is_active = window.and_then(|window| self.active.get(&window)).is_none_or(|id| *id == workspace.id);
            let place = window.and_then(|window| self.front_to_back.iter().position(|other| *other == window));
            (
                self.is_of_this_session(workspace),
                is_active,
                Reverse(place.unwrap_or(usize::MAX)),
                last_written(workspace),
                workspace.timestamp.as_str(),
                workspace.id,
            )
        })
    }

    fn is_of_this_session(&self, workspace: &Workspace) -> bool {
        workspace.session.is_some() && workspace.session == self.session
    }
}

/// A row of `items` with its pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `item_id`, which is also that of its editor.
    pub id: i64,
    /// `pane_id`; grows with each save.
    pub pane: i64,
    /// Whether the pane had the keyboard focus.
    pub pane_is_active: bool,
    /// Whether it is the visible tab of its pane.
    pub is_active: bool,
    /// Whether it is an editor of one file: a search over many has no row in `editors`.
    pub is_editor: bool,
}

/// The editor that is shown: the active item of the active pane if that is one; with the focus elsewhere, in a terminal
/// say, the one whose selection was written last, else a visible one. `None` where no editor is open.
pub fn shown_editor(items: &[Item], last_written: impl Fn(i64) -> Option<i64>) -> Option<i64> {
    let editors = || items.iter().filter(|item| item.is_editor);
    let focused = editors().filter(|item| item.pane_is_active && item.is_active).max_by_key(|item| item.pane);
    let written = || editors().filter_map(|item| Some((last_written(item.id)?, item))).max_by_key(|(row, _)| *row);
    let visible = || editors().max_by_key(|item| (item.is_active, item.pane));
    let shown = focused.or_else(|| Some(written()?.1)).or_else(visible);
    shown.map(|item| item.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(id: i64, session: Option<&str>, window: i64, timestamp: &str) -> Workspace {
        Workspace {
            id,
            session: session.map(str::to_owned),
            window: Some(window),
            timestamp: timestamp.into(),
            ..Workspace::default()
        }
    }

    #[test]
    fn each_sign_of_recency_counts_before_the_next() {
        let windows =
            Windows { session: Some("now".into()), front_to_back: vec![12, 11], active: HashMap::from([(12, 5)]) };
        let foremost = |rows: &[Workspace], written: &[(i64, i64)]| {
            let last = |w: &Workspace| written.iter().find(|(id, _)| *id == w.id).map(|(_, row)| *row);
            windows.foremost(rows.iter(), last).map(|w| w.id)
        };
        let (now, old) = (Some("now"), Some("old"));
        let first = workspace(1, old, 12, "2026-02-02 00:00:00");
        assert_eq!(foremost(&[first.clone(), workspace(2, now, 11, "2026-01-01")], &[(1, 99)]), Some(2), "session");
        let other = workspace(3, now, 12, "2026-03-03");
        assert_eq!(foremost(&[other.clone(), workspace(2, now, 11, "2026-01-01")], &[(3, 99)]), Some(2), "not active");
        assert_eq!(foremost(&[workspace(5, now, 12, "2026-01-01"), workspace(2, now, 11, "2026-03-03")], &[]), Some(5));
        let same = [workspace(6, now, 13, "2026-01-01"), workspace(7, now, 14, "2026-03-03")];
        assert_eq!(foremost(&same, &[(6, 8), (7, 7)]), Some(6), "selection");
        assert_eq!(foremost(&same, &[]), Some(7), "timestamp");
        assert_eq!(foremost(&[], &[]), None);
        assert!(!windows.may_be_open(&workspace(8, None, 11, "")));
        assert!(Windows::default().may_be_open(&workspace(8, None, 11, "")), "of a generation without sessions");
    }

    #[test]
    fn the_focused_editor_else_the_last_one_used() {
        let item =
            |id, pane, pane_is_active, is_active, is_editor| Item { id, pane, pane_is_active, is_active, is_editor };
        let written = |id: i64| [(1, 10), (2, 30), (9, 50)].iter().find(|(other, _)| *other == id).map(|(_, row)| *row);
        let editors = [item(1, 1, false, true, true), item(2, 2, true, false, true), item(3, 2, true, true, true)];
        assert_eq!(shown_editor(&editors, written), Some(3), "focused, although nothing was selected in it");
        let terminal = [item(1, 1, false, true, true), item(2, 2, true, false, true), item(3, 2, true, true, false)];
        assert_eq!(shown_editor(&terminal, written), Some(2), "a terminal has the focus");
        let dock = [item(1, 1, false, true, true), item(4, 2, false, true, true)];
        assert_eq!(shown_editor(&dock, written), Some(1), "a dock has the focus");
        assert_eq!(shown_editor(&dock, |_| None), Some(4), "nothing was ever selected");
        assert_eq!(shown_editor(&[item(3, 2, true, true, false)], written), None);
    }
}
