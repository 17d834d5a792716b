//! Which workspace and which editor is meant.

use pi_x_ide_zed_fixture::{Options, Scenario};

use crate::support::{Machine, texts};

#[tokio::test]
async fn each_folder_has_its_own_workspace() {
    let machine = Machine::new(&Options { windows: 2, ..Options::default() });
    let file = |folder: &'static str| {
        let machine = &machine;
        async move { machine.read_for(folder).await.unwrap().map(|shown| shown.file_path.0) }
    };
    assert_eq!(file("beta").await, Some(machine.folder("beta/lib.rs")));
    assert_eq!(file("beta/deep/inside").await, Some(machine.folder("beta/lib.rs")), "pi runs below the folder");
    assert_eq!(file("delta").await, Some(machine.folder("delta/d.txt")));
    assert_eq!(file("nowhere").await, Some(machine.folder("alpha/src/main.py")), "of the older parent workspace");
    let home = machine.root.path().parent().unwrap().to_str().unwrap();
    let env = machine.env();
    let above = pi_x_ide_bridge::zed::read(&env, home, Some(machine.database())).await.unwrap();
    assert_eq!(above, None, "a workspace below pi's folder is not meant");
}

#[tokio::test]
async fn with_a_terminal_in_front_the_last_selection_is_held() {
    let mut options = Options::default();
    options.scenarios.push(Scenario::TerminalActive);
    let machine = Machine::new(&options);
    let shown = machine.read().await.unwrap().unwrap();
    assert_eq!(shown.file_path.0, machine.folder("alpha/src/main.py"));
    assert_eq!(texts(&shown), ["line 0042"]);
    let mut options = Options::default();
    options.scenarios.push(Scenario::NoFocus);
    let machine = Machine::new(&options);
    assert_eq!(texts(&machine.read().await.unwrap().unwrap()), ["line 0042"], "a dock has the focus");
}

#[tokio::test]
async fn of_two_windows_on_one_folder_the_present_session_is_meant() {
    let machine = Machine::of(pi_x_ide_zed_fixture::Generation::G2025c);
    let workspace = machine.made.expected.active.workspace_id;
    machine.execute(&format!(
        "INSERT INTO workspaces(paths, paths_order, timestamp, session_id, window_id)
            SELECT paths, paths_order, '2099-01-01 00:00:00', 'of-last-week', window_id FROM workspaces
            WHERE workspace_id = {workspace};
         INSERT INTO panes(workspace_id, active) SELECT max(workspace_id), 1 FROM workspaces;
         INSERT INTO items(item_id, workspace_id, pane_id, kind, position, active)
            SELECT 7, max(workspace_id), (SELECT max(pane_id) FROM panes), 'Editor', 0, 1 FROM workspaces;
         INSERT INTO editors(item_id, workspace_id, path)
            SELECT 7, max(workspace_id), CAST('/other' AS BLOB) FROM workspaces;
         INSERT INTO editor_selections(editor_id, workspace_id, start, end)
            SELECT 7, max(workspace_id), 1, 2 FROM workspaces;"
    ));
    let file = || async { machine.read().await.unwrap().unwrap().file_path.0 };
    assert_eq!(file().await, machine.folder("alpha/src/main.py"));
    machine.execute("UPDATE kv_store SET value = 'of-last-week' WHERE key = 'session_id'");
    assert_eq!(file().await, "/other");
    machine.execute("UPDATE workspaces SET session_id = NULL WHERE session_id = 'of-last-week'");
    assert_eq!(file().await, machine.folder("alpha/src/main.py"), "its window was closed");
}

#[tokio::test]
async fn a_root_that_is_a_file_counts_as_its_folder() {
    let machine = Machine::of(pi_x_ide_zed_fixture::Generation::G2026);
    let file = machine.folder("alpha/src/main.py");
    let workspace = machine.made.expected.active.workspace_id;
    machine.execute(&format!("UPDATE workspaces SET paths = '{file}' WHERE workspace_id = {workspace}"));
    let shown = machine.read_for("alpha/src").await.unwrap().unwrap();
    assert_eq!((shown.file_path.0, shown.workspace_folder.unwrap().0), (file, machine.folder("alpha/src")));
}

#[tokio::test]
async fn a_linked_project_is_shown_by_the_name_that_pi_uses() {
    let machine = Machine::of(pi_x_ide_zed_fixture::Generation::G2026);
    std::os::unix::fs::symlink(machine.folder("alpha"), machine.folder("link")).unwrap();
    let shown = machine.read_for("link").await.unwrap().unwrap();
    assert_eq!(shown.file_path.0, machine.folder("link/src/main.py"));
    assert_eq!(shown.workspace_folder.unwrap().0, machine.folder("link"));
    assert_eq!(texts(&machine.read_for("link").await.unwrap().unwrap()), ["line 0042"]);
}

#[tokio::test]
async fn an_untitled_buffer_has_its_text_and_an_empty_one_shows_nothing() {
    let machine = Machine::of(pi_x_ide_zed_fixture::Generation::G2026);
    let active = &machine.made.expected.active;
    let (workspace, item) = (active.workspace_id, active.item_id.unwrap());
    machine.execute(&format!(
        "UPDATE editors SET path = NULL, buffer_path = NULL, contents = 'secret draft' WHERE item_id = {item};
         DELETE FROM editor_selections WHERE editor_id = {item};
         INSERT INTO editor_selections(editor_id, workspace_id, start, end) VALUES ({item}, {workspace}, 0, 6);"
    ));
    let shown = machine.read().await.unwrap().unwrap();
    assert_eq!((shown.file_path.0.as_str(), texts(&shown)), ("untitled:untitled", vec!["secret"]));
    machine.execute(&format!("UPDATE editors SET contents = NULL WHERE item_id = {item}"));
    assert_eq!(machine.read().await.unwrap(), None);
}
