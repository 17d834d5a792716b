//! What an editor shows: one file, its ranges, their text. Protocol: "selection_changed".

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::lenient::{Text, index, present};

/// A place in a file: 0-based line, 0-based UTF-16 character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// 0-based line.
    #[serde(deserialize_with = "index")]
    pub line: u32,
    /// 0-based UTF-16 code unit within the line.
    #[serde(deserialize_with = "index")]
    pub character: u32,
}

/// From `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// First position.
    pub start: Position,
    /// Position after the last one.
    pub end: Position,
}

impl Selection {
    /// First and last line as people count them, from 1. An end at character 0 of a later line does not count that
    /// line.
    pub fn lines(&self) -> (u32, u32) {
        let first = self.start.line;
        let last = if self.end.line > first && self.end.character == 0 { self.end.line - 1 } else { self.end.line };
        (first.saturating_add(1), last.max(first).saturating_add(1))
    }

    /// `L10` or `L10-L20`.
    pub fn line_label(&self) -> String {
        match self.lines() {
            (first, last) if first == last => format!("L{first}"),
            (first, last) => format!("L{first}-L{last}"),
        }
    }
}

/// One selected range with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Selected text.
    pub text: Text,
    /// Where it stands.
    pub selection: Selection,
}

/// State of the active editor. No ranges means that the file is open without a selection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Kind of editor: `vscode`, `zed`, `nvim`, `jetbrains`, `unknown`, or any other non-empty name.
    #[serde(deserialize_with = "source")]
    pub source: String,
    /// Path of the file, in the editor's form until it is normalised.
    pub file_path: Text,
    /// Workspace folder that the editor counts the file to.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<Text>,
    /// Selected ranges in the editor's order.
    pub ranges: Vec<Range>,
    /// When the editor took it, in milliseconds since the epoch.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub received_at: Option<f64>,
}

impl Snapshot {
    /// 32 hex digits over everything but the time of receipt: two snapshots with the same hash are the same selection.
    /// Stable across versions, since it is stored in session files.
    pub fn content_hash(&self) -> String {
        let mut hash = Sha256::new();
        let mut field = |bytes: &[u8]| {
            // Length first, so that no two lists of fields run together to the same bytes.
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        field(self.source.as_bytes());
        field(self.file_path.0.as_bytes());
        field(self.workspace_folder.as_ref().map_or("", |folder| &folder.0).as_bytes());
        for Range { text, selection: Selection { start, end } } in &self.ranges {
            for number in [start.line, start.character, end.line, end.character] {
                field(&number.to_le_bytes());
            }
            field(text.0.as_bytes());
        }
        hex(&hash.finalize()[..16])
    }
}

/// A snapshot with the digests that every reader needs, made once, away from the thread that draws the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct HashedSnapshot {
    /// The snapshot itself.
    pub snapshot: Snapshot,
    /// See [`Snapshot::content_hash`].
    pub content_hash: String,
    /// One per range, in order.
    pub texts: Vec<TextDigest>,
}

/// What is told of a range's text instead of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDigest {
    /// Length in UTF-16 code units.
    pub length: usize,
    /// 16 hex digits over the text.
    pub hash: String,
}

impl From<Snapshot> for HashedSnapshot {
    fn from(snapshot: Snapshot) -> Self {
        let content_hash = snapshot.content_hash();
        let texts = snapshot.ranges.iter().map(|range| TextDigest::of(&range.text.0)).collect();
        Self { snapshot, content_hash, texts }
    }
}

impl HashedSnapshot {
    /// The same with every text empty; the digests still tell of them.
    pub fn without_text(&self) -> Self {
        let Snapshot { source, file_path, workspace_folder, ranges, received_at } = &self.snapshot;
        let ranges = ranges.iter().map(|range| Range { text: Text::default(), selection: range.selection });
        Self {
            snapshot: Snapshot {
                source: source.clone(),
                file_path: file_path.clone(),
                workspace_folder: workspace_folder.clone(),
                ranges: ranges.collect(),
                received_at: *received_at,
            },
            content_hash: self.content_hash.clone(),
            texts: self.texts.clone(),
        }
    }
}

impl TextDigest {
    fn of(text: &str) -> Self {
        Self { length: text.encode_utf16().count(), hash: hex(&Sha256::digest(text.as_bytes())[..8]) }
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn source<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let Text(source) = Text::deserialize(deserializer)?;
    if source.is_empty() { Err(serde::de::Error::custom("source must not be empty")) } else { Ok(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(start: (u32, u32), end: (u32, u32)) -> Selection {
        Selection {
            start: Position { line: start.0, character: start.1 },
            end: Position { line: end.0, character: end.1 },
        }
    }

    #[test]
    fn lines_count_from_one_and_leave_out_an_empty_last_line() {
        assert_eq!(selection((9, 0), (11, 0)).line_label(), "L10-L11");
        assert_eq!(selection((9, 0), (10, 4)).line_label(), "L10-L11");
        assert_eq!(selection((9, 0), (10, 0)).line_label(), "L10");
        assert_eq!(selection((9, 0), (9, 0)).line_label(), "L10");
        assert_eq!(selection((u32::MAX, 0), (0, 0)).lines(), (u32::MAX, u32::MAX));
    }

    #[test]
    fn the_hash_ignores_only_the_time_of_receipt() {
        let snapshot = |text: &str, received_at| Snapshot {
            source: "vscode".into(),
            file_path: Text("/a".into()),
            workspace_folder: None,
            ranges: vec![Range { text: Text(text.into()), selection: selection((0, 0), (0, 3)) }],
            received_at,
        };
        let base = snapshot("foo", None);
        assert_eq!(base.content_hash(), snapshot("foo", Some(1.0)).content_hash());
        assert_ne!(base.content_hash(), snapshot("bar", None).content_hash());
        assert_eq!(base.content_hash().len(), 32);
    }
}
