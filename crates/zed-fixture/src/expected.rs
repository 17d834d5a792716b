use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Generation;

/// What a correct reader has to see, as `expected.json` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The schema written.
    pub generation: Generation,
    /// Every described row of `editors`, in the order of writing. History rows are not described.
    pub editors: Vec<ExpectedEditor>,
    /// Items that have no `editors` row.
    pub notes: Vec<ExpectedNote>,
    /// The active workspace and editor.
    pub active: Active,
    /// The `session_id` of the workspaces that are open now.
    pub session_id: String,
    /// The database file.
    pub db: PathBuf,
}

impl Expected {
    /// The description of one `editors` row.
    pub fn editor(&self, workspace_id: i64, item_id: i64) -> Option<&ExpectedEditor> {
        self.editors.iter().find(|editor| editor.workspace_id == workspace_id && editor.item_id == item_id)
    }

    /// The active editor; none while a terminal tab is active.
    pub fn active_editor(&self) -> Option<&ExpectedEditor> {
        self.editor(self.active.workspace_id, self.active.item_id?)
    }
}

/// The workspace in front and the editor active in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    /// The workspace's id.
    pub workspace_id: i64,
    /// The active editor; none while a terminal tab is active.
    pub item_id: Option<i64>,
    /// The active editor's file.
    pub path: Option<String>,
    /// The active editor's selected text; none where the generation keeps no selections.
    pub selected_text: Option<String>,
    /// The workspace's roots as the user ordered them; the database has them sorted.
    pub roots_in_user_order: Vec<String>,
    /// Whether any pane has `active = 1`.
    pub panes_active: bool,
}

/// One row of `editors` and its selections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedEditor {
    /// The row's workspace.
    pub workspace_id: i64,
    /// The row's item; a stale row has no such item any more.
    pub item_id: i64,
    /// The file; none for an untitled buffer.
    pub path: Option<String>,
    /// Whether the buffer has unsaved changes.
    pub dirty: bool,
    /// Which situation this is, for a person.
    pub note: String,
    /// Whether the `contents` column holds the buffer.
    pub contents_in_db: bool,
    /// The buffer's length in UTF-8 bytes; none where the buffer is not known (remote and missing files).
    pub buffer_bytes: Option<u64>,
    /// The selections, in buffer order.
    pub selections: Vec<ExpectedSelection>,
}

/// One selection: a row of `editor_selections` where the generation has that table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedSelection {
    /// The lesser offset of the row, in UTF-8 bytes of the buffer.
    pub start: u64,
    /// The greater offset of the row.
    pub end: u64,
    /// The selected text, after clipping to the text and to whole characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where the clipped selection starts: line, UTF-8 column and UTF-16 column, all from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<[u64; 3]>,
    /// Where the clipped selection ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<[u64; 3]>,
}

/// A remark about an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedNote {
    /// The item.
    pub item_id: i64,
    /// What is special about it.
    pub note: String,
}
