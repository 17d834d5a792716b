//! Snapshots: as JavaScript gives them, and as it gets them.

use napi_derive::napi;
use pi_x_ide_bridge::protocol::lenient::Text;
use pi_x_ide_bridge::protocol::snapshot::{self as wire, HashedSnapshot};
use serde::Serialize;

use crate::failure::Failure;

/// Most text of one snapshot, in bytes: what fits in a message of the protocol when some of it has to be escaped.
const MAX_TEXT_BYTES: usize = 12 * 1024 * 1024;

/// A place in a file. Protocol: "Notifications".
#[napi(object)]
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// 0-based line.
    pub line: f64,
    /// 0-based UTF-16 code unit within the line.
    pub character: f64,
}

/// From `start` up to, not including, `end`.
#[napi(object)]
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// First position.
    pub start: Position,
    /// Position after the last one.
    pub end: Position,
}

/// One selected range with its text.
#[napi(object, object_to_js = false)]
pub struct RangeInput {
    /// Selected text.
    pub text: String,
    /// Where it stands.
    pub selection: Selection,
}

/// State of an editor as it is published: the shape of the wire. No ranges: the file is open without a selection.
#[napi(object, object_to_js = false)]
pub struct SnapshotInput {
    /// Kind of editor, `unknown` by default; a server fills in its own.
    pub source: Option<String>,
    /// Absolute path of the file, in the editor's form.
    pub file_path: String,
    /// Workspace folder that the editor counts the file to.
    pub workspace_folder: Option<String>,
    /// Selected ranges in the editor's order.
    pub ranges: Vec<RangeInput>,
    /// When the editor took it, in milliseconds since the epoch.
    pub received_at: Option<f64>,
}

/// One selected range as it is told: its text stays in the addon until it is asked for.
#[napi(object, object_from_js = false)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRange {
    /// Where it stands.
    pub selection: Selection,
    /// Length of the text in UTF-16 code units, as `text.length` would tell.
    pub text_length: f64,
    /// 16 hex digits over the text.
    pub hash: String,
    /// The text itself, only from `latest({ text: true })`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// State of an editor. No ranges: the file is open without a selection.
#[napi(object, object_from_js = false)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditorSnapshot {
    /// Kind of editor: `vscode`, `zed`, `nvim`, `jetbrains`, `unknown`, or any other name an editor gives.
    pub source: String,
    /// Path of the file in this host's form.
    pub file_path: String,
    /// Workspace folder that the editor counts the file to, in this host's form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<String>,
    /// Selected ranges in the editor's order.
    pub ranges: Vec<SnapshotRange>,
    /// When the editor took it, else when it arrived, in milliseconds since the epoch.
    pub received_at: f64,
}

impl SnapshotInput {
    /// The wire form; fails on an empty path or a position that is no index.
    pub fn into_wire(self, default_source: &str) -> Result<wire::Snapshot, Failure> {
        if self.file_path.is_empty() {
            return Err(Failure::invalid("filePath must not be empty"));
        }
        let size: usize = self.ranges.iter().map(|range| range.text.len()).sum();
        if size > MAX_TEXT_BYTES {
            return Err(Failure::too_large(size, MAX_TEXT_BYTES));
        }
        let ranges = self
            .ranges
            .into_iter()
            .map(|range| Ok(wire::Range { text: Text(range.text), selection: range.selection.into_wire()? }));
        Ok(wire::Snapshot {
            source: self.source.filter(|source| !source.is_empty()).unwrap_or_else(|| default_source.to_owned()),
            file_path: Text(self.file_path),
            workspace_folder: self.workspace_folder.map(Text),
            ranges: ranges.collect::<Result<_, Failure>>()?,
            received_at: self.received_at.filter(|time| time.is_finite()),
        })
    }
}

impl Selection {
    /// The wire form; fails on a number that is no index.
    pub fn into_wire(self) -> Result<wire::Selection, Failure> {
        Ok(wire::Selection { start: self.start.into_wire()?, end: self.end.into_wire()? })
    }
}

impl Position {
    fn into_wire(self) -> Result<wire::Position, Failure> {
        Ok(wire::Position { line: index("line", self.line)?, character: index("character", self.character)? })
    }
}

/// A 0-based index from JavaScript.
pub fn index(name: &str, value: f64) -> Result<u32, Failure> {
    if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(Failure::invalid(format!("{name} must be a whole number from 0 to {}, not {value}", u32::MAX)))
    }
}

impl From<wire::Selection> for Selection {
    fn from(wire::Selection { start, end }: wire::Selection) -> Self {
        let position = |p: wire::Position| Position { line: f64::from(p.line), character: f64::from(p.character) };
        Self { start: position(start), end: position(end) }
    }
}

impl EditorSnapshot {
    /// What JavaScript is told of a snapshot.
    pub fn new(hashed: &HashedSnapshot, with_text: bool) -> Self {
        let HashedSnapshot { snapshot, texts, .. } = hashed;
        let ranges = snapshot.ranges.iter().zip(texts).map(|(range, digest)| SnapshotRange {
            selection: range.selection.into(),
            text_length: digest.length as f64,
            hash: digest.hash.clone(),
            text: with_text.then(|| range.text.0.clone()),
        });
        Self {
            source: snapshot.source.clone(),
            file_path: snapshot.file_path.0.clone(),
            workspace_folder: snapshot.workspace_folder.as_ref().map(|folder| folder.0.clone()),
            ranges: ranges.collect(),
            received_at: snapshot.received_at.unwrap_or_default(),
        }
    }
}
