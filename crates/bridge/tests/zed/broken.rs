//! Databases that cannot be read: a typed state, no panic, nothing written.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use pi_x_ide_bridge::zed::{self, ZedError};
use pi_x_ide_zed_fixture::{Generation, Options};

use crate::support::{Machine, contents, env_of};

/// Reads a database that something was done to, and checks that the reading changed nothing.
async fn state_after(breaking: impl FnOnce(&Machine)) -> Result<(), ZedError> {
    let machine = Machine::of(Generation::G2026);
    machine.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    breaking(&machine);
    let folder = machine.made.path.parent().unwrap().to_owned();
    let before = folder.exists().then(|| contents(&folder));
    let read = machine.read().await;
    assert_eq!(folder.exists().then(|| contents(&folder)), before);
    read.map(drop)
}

#[tokio::test]
async fn each_kind_of_damage_has_its_state() {
    let write = |bytes: &'static [u8]| move |machine: &Machine| fs::write(&machine.made.path, bytes).unwrap();
    let empty = state_after(write(b"")).await;
    assert!(matches!(empty, Err(ZedError::UnknownSchema(_))), "{empty:?}");
    let random: &'static [u8] =
        Vec::leak((0..40_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect());
    let random = state_after(write(random)).await;
    assert!(matches!(random, Err(ZedError::Damaged(_))), "{random:?}");
    let torn = state_after(|machine| {
        let bytes = fs::read(&machine.made.path).unwrap();
        let mut bytes = bytes[..bytes.len() / 2].to_vec();
        bytes[8192..16384].fill(0xa5);
        fs::write(&machine.made.path, bytes).unwrap();
    })
    .await;
    assert!(matches!(torn, Err(ZedError::Damaged(_) | ZedError::UnknownSchema(_)) | Ok(())), "{torn:?}");
    let gone = state_after(|machine| fs::remove_dir_all(machine.made.path.parent().unwrap()).unwrap()).await;
    assert!(matches!(gone, Err(ZedError::Missing(_))), "{gone:?}");
}

#[tokio::test]
async fn a_log_of_another_database_is_survived() {
    let other = Machine::new(&Options { history_workspaces: 3, history_editors: 5, seed: 99, ..Options::default() });
    let Machine { root, made } = Machine::of(Generation::G2026);
    let path = made.path.clone();
    // Nobody may have the index open while it is replaced.
    made.close().unwrap();
    for name in ["db.sqlite-wal", "db.sqlite-shm"] {
        fs::copy(other.made.path.with_file_name(name), path.with_file_name(name)).unwrap();
    }
    let before = contents(path.parent().unwrap());
    let (env, cwd) = env_of(&root);
    // SQLite cannot tell whose log it is: whatever comes of it is a state, and the files stay.
    let _ = zed::read(&env, &cwd, Some(path.to_str().unwrap().into())).await;
    assert_eq!(contents(path.parent().unwrap()), before);
}

#[tokio::test]
async fn other_forms_of_the_tables_are_named() {
    for (sql, told) in [
        ("PRAGMA foreign_keys = OFF; DROP TABLE editors", "there is no table editors"),
        ("PRAGMA foreign_keys = OFF; DROP TABLE items", "there is no table items"),
        ("ALTER TABLE workspaces RENAME COLUMN paths TO somewhere", "no column of workspaces tells folders"),
        ("ALTER TABLE items RENAME COLUMN active TO shown", "there is no column items.active"),
    ] {
        let machine = Machine::of(Generation::G2026);
        machine.execute("DROP INDEX IF EXISTS ix_workspaces_location");
        machine.execute(sql);
        let error = machine.read().await.unwrap_err();
        assert!(matches!(&error, ZedError::UnknownSchema(reason) if reason.contains(told)), "{error}");
        assert_eq!(error.code(), "PIX_ZED_SCHEMA");
    }
}

#[tokio::test]
async fn paths_as_bytes_as_text_and_as_text_alone_are_read() {
    for sql in [
        "ALTER TABLE editors DROP COLUMN buffer_path",
        "UPDATE editors SET path = path",
        "ALTER TABLE editors DROP COLUMN path",
    ] {
        let machine = Machine::of(Generation::G2026);
        machine.execute(sql);
        let shown = machine.read().await.unwrap().unwrap();
        assert_eq!(shown.file_path.0, machine.folder("alpha/src/main.py"), "{sql}");
    }
}

#[tokio::test]
async fn what_may_not_be_read_is_said() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let machine = Machine::of(Generation::G2026);
    fs::set_permissions(&machine.made.path, fs::Permissions::from_mode(0o000)).unwrap();
    assert!(matches!(machine.read().await, Err(ZedError::Denied(_))));
}

#[tokio::test]
async fn a_table_that_never_ends_is_left() {
    let machine = Machine::of(Generation::G2026);
    machine.execute(
        "PRAGMA foreign_keys = OFF; DROP TABLE workspaces;
         CREATE VIEW workspaces AS WITH RECURSIVE n(workspace_id) AS (SELECT 1 UNION ALL SELECT workspace_id + 1 FROM n)
            SELECT workspace_id, '' AS paths, '' AS timestamp FROM n WHERE workspace_id < 0;",
    );
    let error = machine.read().await.unwrap_err();
    assert_eq!(error, ZedError::Slow);
}
