//! What stands in the database: the history, the other workspaces, and the main window.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::Connection;
use serde_json::json;

use crate::builder::{Builder, DiskFile, Editor, Pane, Remote, Session, Tab, Workspace, window};
use crate::expected::{Active, Expected};
use crate::tabs::{clean, left_tab, nth};
use crate::text::{latin, mixed};
use crate::{FixtureError, Generation, Options, Scenario};

const ACTIVE_TEXT: &str = "line 0042";

/// Fills a database whose tables exist.
pub(crate) fn build(
    connection: &Connection,
    root: &Path,
    db: &Path,
    options: &Options,
) -> Result<Expected, FixtureError> {
    let mut b = Builder::new(connection, root, options);
    history(&mut b, options)?;
    b.end_history();
    let source = b.file("alpha/src/main.py", latin())?;
    if options.has(Scenario::ParentWorkspace) {
        parent_workspace(&mut b, &source)?;
    }
    remotes(&mut b, options)?;
    if options.has(Scenario::Untitled) && b.generation >= Generation::G2025a {
        untitled(&mut b)?;
    }
    other_windows(&mut b, options)?;
    let active = main_window(&mut b, options, &source)?;
    if b.generation == Generation::G2026 {
        same_window(&mut b, options, active.workspace_id)?;
    }
    keys(&mut b, options)?;
    Ok(Expected {
        generation: b.generation,
        editors: b.editors,
        notes: b.notes,
        active,
        session_id: b.session,
        db: db.to_owned(),
    })
}

/// Old workspaces, whose files are gone. Written first, so that the interesting rows are the newest.
fn history(b: &mut Builder<'_>, options: &Options) -> Result<(), FixtureError> {
    let editors = options.history_workspaces * options.history_editors;
    let size = (options.history_mb << 20).checked_div(editors).unwrap_or(0);
    let mut unsaved = latin().repeat(size.div_ceil(latin().len()));
    unsaved.truncate(size);
    let contents = (size > 0).then_some((unsaved.as_str(), Some("Plain Text")));
    for n in 0..options.history_workspaces {
        let root = b.path(&format!("history/old-{n:03}"))?;
        let session = if n % 3 == 0 { Session::Old } else { Session::Closed };
        let workspace =
            b.workspace(&Workspace { roots: &[&root], session, window: window(1), ..Workspace::default() })?;
        let mut pane = b.pane(workspace, true, None)?;
        for editor in 0..options.history_editors {
            let tab = if editor == 0 { Tab::ACTIVE_EDITOR } else { Tab::EDITOR };
            let item = b.put(&mut pane, &tab)?;
            let path = b.path(&format!("history/old-{n:03}/f{editor:04}.txt"))?;
            let modified = Duration::new(1_700_000_000, editor as u32);
            b.editor_row(workspace, item, Some(&path), contents, Some(modified))?;
            let offset = b.offset_below(4000);
            b.selection_row(workspace, item, offset, offset)?;
        }
    }
    Ok(())
}

fn parent_workspace(b: &mut Builder<'_>, source: &DiskFile) -> Result<(), FixtureError> {
    let projects = b.path("")?;
    let workspace = b.workspace(&Workspace {
        roots: &[&projects],
        session: Session::Old,
        window: window(1),
        ..Workspace::default()
    })?;
    let editor = Editor {
        path: Some(&source.path),
        text: Some(latin()),
        selections: vec![nth(latin(), "line 0001", 0)?],
        modified: Some(source.modified),
        note: "older workspace rooted at the parent folder: a prefix match too, but shorter and older",
        ..Editor::default()
    };
    b.single(workspace, &editor)?;
    Ok(())
}

fn remotes(b: &mut Builder<'_>, options: &Options) -> Result<(), FixtureError> {
    let alpha = b.path("alpha")?;
    let user = Some("dev");
    let ssh = Remote { kind: "ssh", user, ..Remote::default() };
    let known = [
        (
            Scenario::Ssh,
            Generation::G2024,
            "/srv/app",
            Remote { host: Some("build.example.org"), port: Some(2222), ..ssh },
        ),
        (
            Scenario::Wsl,
            Generation::G2025c,
            "/home/dev/app",
            Remote { kind: "wsl", distro: Some("Ubuntu"), user, ..Remote::default() },
        ),
        (
            Scenario::Docker,
            Generation::G2025c,
            "/workspaces/app",
            Remote {
                kind: "docker",
                name: Some("app-dev"),
                container_id: Some("3f1c9a"),
                user: Some("root"),
                use_podman: Some(false),
                remote_env: Some("{}"),
                ..Remote::default()
            },
        ),
        // The local folder's path, but on another host.
        (Scenario::RemoteSamePath, Generation::G2025c, &alpha, Remote { host: Some("mirror.example.org"), ..ssh }),
    ];
    for (scenario, since, root, remote) in known {
        if !options.has(scenario) || b.generation < since {
            continue;
        }
        let workspace = b.workspace(&Workspace {
            roots: &[root],
            window: window(9),
            remote: Some(remote),
            ..Workspace::default()
        })?;
        let editor = Editor {
            path: Some(&format!("{root}/src/main.py")),
            selections: vec![(5, 11)],
            modified: Some(UNIX_EPOCH + Duration::from_secs(1_750_000_000)),
            note: &format!("remote {}: the path is on the other side, never read it locally", remote.kind),
            ..Editor::default()
        };
        b.single(workspace, &editor)?;
    }
    Ok(())
}

fn untitled(b: &mut Builder<'_>) -> Result<(), FixtureError> {
    let workspace = b.workspace(&Workspace { window: window(7), ..Workspace::default() })?;
    let scratch = "scratch: 546545\nсекрет\n";
    let editor = Editor {
        text: Some(scratch),
        dirty: true,
        selections: vec![nth(scratch, "546545", 0)?],
        language: Some("Plain Text"),
        note: "untitled buffer in a window without folders: path NULL, contents set",
        ..Editor::default()
    };
    b.single(workspace, &editor)?;
    Ok(())
}

fn other_windows(b: &mut Builder<'_>, options: &Options) -> Result<(), FixtureError> {
    let beta = b.file("beta/lib.rs", mixed())?;
    for n in 0..options.windows.saturating_sub(1) {
        // Only the second window's folder exists.
        let (root, path, text) = if n == 0 {
            (b.path("beta")?, beta.path.clone(), Some(mixed()))
        } else {
            (b.path(&format!("gamma-{n}"))?, b.path(&format!("gamma-{n}/x.rs"))?, None)
        };
        let workspace = b.workspace(&Workspace { roots: &[&root], window: window(2 + n), ..Workspace::default() })?;
        let editor = Editor {
            path: Some(&path),
            text,
            selections: vec![nth(mixed(), "灵感菇", 3)?],
            modified: Some(beta.modified),
            note: "another window",
            ..Editor::default()
        };
        b.single(workspace, &editor)?;
    }
    Ok(())
}

/// Two panes: many tabs on the left, the focus on the right.
fn main_window(b: &mut Builder<'_>, options: &Options, source: &DiskFile) -> Result<Active, FixtureError> {
    let (alpha, docs) = (b.path("alpha")?, b.folder("alpha-docs")?);
    // The user's order is not the sorted one.
    let roots: &[&str] = if options.has(Scenario::MultiRoot) { &[&docs, &alpha] } else { &[&alpha] };
    let workspace = b.workspace(&Workspace {
        roots,
        window: window(1),
        stamp: Some(b.now),
        json_paths: options.json_paths,
        ..Workspace::default()
    })?;
    let focus = !options.has(Scenario::NoFocus);
    let group =
        b.insert("pane_groups", &[("workspace_id", &workspace), ("axis", &"Horizontal"), ("flexes", &"[1.0,1.0]")])?;
    let mut left = b.pane(workspace, false, Some((group, 0)))?;
    let mut right = b.pane(workspace, focus, Some((group, 1)))?;

    for scenario in Scenario::ALL.into_iter().filter(|&scenario| options.has(scenario)) {
        left_tab(b, workspace, &mut left, scenario)?;
    }
    b.put(&mut left, &Tab::TERMINAL)?;
    if options.has(Scenario::Caret) {
        let caret = b.file("alpha/caret.txt", latin())?;
        let item = b.put(&mut left, &Tab::ACTIVE_EDITOR)?;
        b.editor(
            workspace,
            item,
            &Editor { selections: vec![(607, 607)], note: "caret only", ..clean(&caret, latin()) },
        )?;
    }
    if options.big_file_mb > 0 {
        big_file(b, workspace, &mut left, options.big_file_mb << 20)?;
    }

    let terminal = options.has(Scenario::TerminalActive);
    let (tab, note) = if terminal {
        b.put(&mut right, &Tab { active: true, ..Tab::TERMINAL })?;
        (Tab::EDITOR, "open, but a terminal tab is active in the focused pane")
    } else {
        (Tab { preview: true, ..Tab::ACTIVE_EDITOR }, "THE ACTIVE EDITOR")
    };
    let item = b.put(&mut right, &tab)?;
    let selections = vec![nth(latin(), ACTIVE_TEXT, 0)?];
    b.editor(workspace, item, &Editor { selections, note, ..clean(source, latin()) })?;
    // Closed tabs keep their editors rows until the workspace is next loaded.
    for _ in 0..3 {
        let item = b.entity();
        let note = "stale: no items row any more";
        b.editor(workspace, item, &Editor { selections: vec![(1, 2)], note, ..clean(source, latin()) })?;
    }
    Ok(Active {
        workspace_id: workspace,
        item_id: (!terminal).then_some(item),
        path: (!terminal).then(|| source.path.clone()),
        selected_text: (!terminal && b.generation.has_selections()).then(|| ACTIVE_TEXT.to_owned()),
        roots_in_user_order: roots.iter().map(|&root| root.to_owned()).collect(),
        panes_active: focus,
    })
}

fn big_file(b: &mut Builder<'_>, workspace: i64, pane: &mut Pane, size: usize) -> Result<(), FixtureError> {
    let unit = [latin(), mixed()].concat();
    let text = unit.repeat(size / unit.len() + 1);
    let file = b.file("alpha/big.txt", &text)?;
    let needle = "lazy dog";
    let start = text.rfind(needle).ok_or_else(|| FixtureError::NoSuchText { needle: needle.to_owned(), nth: 0 })?;
    let note = format!("big file, {} bytes", text.len());
    let item = b.put(pane, &Tab::EDITOR)?;
    let selections = vec![(start, start + needle.len())];
    b.editor(workspace, item, &Editor { selections, note: &note, ..clean(&file, &text) })
}

/// A second workspace in the main window, behind the active one.
fn same_window(b: &mut Builder<'_>, options: &Options, active: i64) -> Result<(), FixtureError> {
    let delta = b.path("delta")?;
    let workspace = b.workspace(&Workspace {
        roots: &[&delta],
        window: window(1),
        stamp: Some(b.now - 5),
        ..Workspace::default()
    })?;
    let file = b.file("delta/d.txt", latin())?;
    let note = "other workspace of the same window, not the active one";
    b.single(workspace, &Editor { selections: vec![(0, 4)], note, ..clean(&file, latin()) })?;
    for n in 1..=options.windows {
        let state = json!({
            "active_workspace_id": (n == 1).then_some(active),
            "sidebar_open": false,
            "project_groups": [],
            "sidebar_state": null,
        });
        b.insert(
            "scoped_kv_store",
            &[("namespace", &"multi_workspace_state"), ("key", &window(n).to_string()), ("value", &state.to_string())],
        )?;
    }
    Ok(())
}

fn keys(b: &mut Builder<'_>, options: &Options) -> Result<(), FixtureError> {
    if b.generation >= Generation::G2024 {
        b.insert("kv_store", &[("key", &"session_id"), ("value", &b.session)])?;
        let stack: Vec<i64> = (1..=options.windows.max(1)).map(window).collect();
        b.insert("kv_store", &[("key", &"session_window_stack"), ("value", &serde_json::to_string(&stack)?)])?;
    }
    let installation = b.uuid();
    b.insert("kv_store", &[("key", &"installation_id"), ("value", &installation)])?;
    Ok(())
}
