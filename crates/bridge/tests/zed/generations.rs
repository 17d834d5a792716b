//! Every scenario of every generation gives what was expected of it.

use pi_x_ide_zed_fixture::{ExpectedEditor, Generation};

use crate::support::{Machine, texts};

/// What no reader can tell: the buffer's text stands nowhere.
const NOT_TO_BE_TOLD: &str = "restore_unsaved_buffers=false";

#[tokio::test]
async fn the_active_editor_of_every_generation() {
    for generation in Generation::ALL {
        let machine = Machine::of(generation);
        let shown = machine.read().await.unwrap().unwrap();
        let active = &machine.made.expected.active;
        let name = generation.name();
        assert_eq!(Some(&shown.file_path.0), active.path.as_ref(), "{name}");
        assert_eq!(texts(&shown).first().copied(), active.selected_text.as_deref(), "{name}");
        assert_eq!(shown.source, "zed");
        assert_eq!(shown.workspace_folder.unwrap().0, machine.folder("alpha"), "{name}");
        assert!(shown.received_at.is_some());
    }
}

#[tokio::test]
async fn every_editor_of_every_generation_when_it_is_the_active_one() {
    let mut checked = 0;
    for generation in Generation::ALL {
        let machine = Machine::of(generation);
        let expected = &machine.made.expected;
        let workspace = expected.active.workspace_id;
        for editor in expected.editors.iter().filter(|editor| editor.workspace_id == workspace) {
            if editor.note.starts_with("stale") {
                continue;
            }
            machine.activate(workspace, editor.item_id);
            let shown = machine.read().await.unwrap().unwrap();
            let about = format!("{}: {}", generation.name(), editor.note);
            assert_eq!(Some(&shown.file_path.0), editor.path.as_ref(), "{about}");
            if editor.note.contains(NOT_TO_BE_TOLD) || generation < Generation::G2025a {
                continue;
            }
            assert_eq!(found(&shown), wanted(editor), "{about}");
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked}");
}

type Place = (u64, u64);

fn found(shown: &pi_x_ide_bridge::protocol::snapshot::Snapshot) -> Vec<(String, Place, Place)> {
    let place = |p: pi_x_ide_bridge::protocol::snapshot::Position| (u64::from(p.line), u64::from(p.character));
    let range = |r: &pi_x_ide_bridge::protocol::snapshot::Range| {
        (r.text.0.clone(), place(r.selection.start), place(r.selection.end))
    };
    shown.ranges.iter().map(range).collect()
}

fn wanted(editor: &ExpectedEditor) -> Vec<(String, Place, Place)> {
    let of = |selection: &pi_x_ide_zed_fixture::ExpectedSelection| {
        let text = selection.text.clone().filter(|text| !text.is_empty() && selection.start != selection.end)?;
        // Line, byte, UTF-16 character.
        let place = |p: Option<[u64; 3]>| p.map(|[line, _, character]| (line, character));
        Some((text, place(selection.from)?, place(selection.to)?))
    };
    editor.selections.iter().filter_map(of).collect()
}
