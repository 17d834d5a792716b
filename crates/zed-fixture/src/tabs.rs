//! The main window's tabs, one scenario each.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::builder::{Builder, DiskFile, Editor, Pane, Tab};
use crate::error::at;
use crate::expected::ExpectedNote;
use crate::text::{crlf, latin, mixed, normalise, utf16_le};
use crate::{FixtureError, Scenario};

const BOM: &str = "\u{feff}";

/// The byte range of the nth occurrence, from 0.
pub(crate) fn nth(text: &str, needle: &str, nth: usize) -> Result<(usize, usize), FixtureError> {
    let (start, found) = text
        .match_indices(needle)
        .nth(nth)
        .ok_or_else(|| FixtureError::NoSuchText { needle: needle.to_owned(), nth })?;
    Ok((start, start + found.len()))
}

/// An editor whose buffer is in step with its file.
pub(crate) fn clean<'e>(file: &'e DiskFile, text: &'e str) -> Editor<'e> {
    Editor { path: Some(&file.path), text: Some(text), modified: Some(file.modified), ..Editor::default() }
}

/// The scenario's tab in the left pane, for those scenarios that are one.
pub(crate) fn left_tab(
    b: &mut Builder<'_>,
    workspace: i64,
    pane: &mut Pane,
    scenario: Scenario,
) -> Result<(), FixtureError> {
    let (file, buffer): (DiskFile, String);
    let editor = match scenario {
        Scenario::Crlf => {
            file = b.file("alpha/crlf.txt", crlf(mixed()))?;
            Editor {
                selections: vec![nth(mixed(), "target", 7)?],
                note: "CRLF on disk: offsets count LF text",
                ..clean(&file, mixed())
            }
        }
        Scenario::Bom => {
            file = b.file("alpha/bom.cs", [BOM, &crlf(mixed())].concat())?;
            buffer = if b.generation.strips_bom() { mixed().to_owned() } else { [BOM, mixed()].concat() };
            Editor {
                selections: vec![nth(&buffer, "target", 2)?],
                note: "UTF-8 BOM + CRLF: since early 2026 the BOM is not in the buffer, before it was (3 bytes)",
                ..clean(&file, &buffer)
            }
        }
        Scenario::Utf16 if b.generation.strips_bom() => {
            file = b.file("alpha/utf16.txt", utf16_le(&[BOM, &crlf(mixed())].concat()))?;
            Editor {
                selections: vec![nth(mixed(), "哈基米", 5)?],
                note: "UTF-16LE file: offsets are UTF-8 bytes of the decoded text",
                ..clean(&file, mixed())
            }
        }
        Scenario::MixedEol => {
            let disk = "one\r\ntwo\rthree\nfour needle\r\n";
            file = b.file("alpha/mixed-eol.txt", disk)?;
            buffer = normalise(disk);
            Editor {
                selections: vec![nth(&buffer, "needle", 0)?],
                note: "CRLF, CR and LF in one file: every one of them is one LF in the buffer",
                ..clean(&file, &buffer)
            }
        }
        Scenario::Dirty => {
            file = b.file("alpha/dirty.py", latin())?;
            buffer = ["# unsaved header — добавлено\n", latin()].concat();
            Editor {
                dirty: true,
                language: Some("Python"),
                selections: vec![nth(&buffer, "lazy dog", 17)?],
                note: "dirty buffer: contents differ from disk",
                ..clean(&file, &buffer)
            }
        }
        Scenario::DirtyHidden => {
            file = b.file("alpha/dirty-hidden.py", latin())?;
            buffer = ["# never written anywhere\n", latin()].concat();
            Editor {
                dirty: true,
                hidden: true,
                selections: vec![nth(&buffer, "lazy dog", 17)?],
                note: "restore_unsaved_buffers=false: dirty, but contents stays NULL; offsets fit neither text",
                ..clean(&file, &buffer)
            }
        }
        Scenario::ChangedOnDisk => {
            file = b.file("alpha/changed.py", latin())?;
            append_later(&file, "# changed later\n")?;
            Editor {
                selections: vec![nth(latin(), "fox", 9)?],
                note: "disk is newer than the mtime columns: offsets may no longer fit",
                ..clean(&file, latin())
            }
        }
        Scenario::Multi => {
            file = b.file("alpha/multi.rs", mixed())?;
            Editor {
                selections: (0..25).map(|n| nth(mixed(), "emoji +", n)).collect::<Result<_, _>>()?,
                note: "25 cursors, in buffer order",
                ..clean(&file, mixed())
            }
        }
        Scenario::Reversed => {
            file = b.file("alpha/reversed.rs", mixed())?;
            let (start, end) = nth(mixed(), "задачами", 1)?;
            Editor {
                selections: vec![(end, start)],
                note: "start > end: Zed does not write this, a reader should still cope",
                ..clean(&file, mixed())
            }
        }
        Scenario::OutOfRange => {
            file = b.file("alpha/short.txt", "short\n")?;
            Editor {
                selections: vec![(4000, 4010)],
                note: "offsets past the end of the text: clip, do not fail",
                ..clean(&file, "short\n")
            }
        }
        Scenario::MidChar => {
            file = b.file("alpha/midchar.txt", "ééé\n")?;
            Editor {
                selections: vec![(1, 3)],
                note: "offsets inside a character: clip start left and end right",
                ..clean(&file, "ééé\n")
            }
        }
        Scenario::NoSelectionRow => {
            file = b.file("alpha/untouched.txt", latin())?;
            Editor { note: "editor without any selection row", ..clean(&file, latin()) }
        }
        Scenario::Multibuffer => {
            let note = "multibuffer tab: items.kind Editor, no editors row".to_owned();
            let item_id = b.put(pane, &Tab::EDITOR)?;
            b.notes.push(ExpectedNote { item_id, note });
            return Ok(());
        }
        _ => return Ok(()),
    };
    let item = b.put(pane, &Tab::EDITOR)?;
    b.editor(workspace, item, &editor)
}

/// Changes the file behind the editor's back, with an mtime that differs on every file system.
fn append_later(file: &DiskFile, text: &str) -> Result<(), FixtureError> {
    let path: &Path = file.path.as_ref();
    let mut handle = File::options().append(true).open(path).map_err(at(path))?;
    handle.write_all(text.as_bytes()).map_err(at(path))?;
    handle.set_modified(file.modified + Duration::from_secs(5)).map_err(at(path))
}
