use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::at;
use crate::{Expected, FixtureError, Options, scenarios, schema};

/// A database as a running Zed keeps it: open for writing, with `-wal` and `-shm` beside it.
///
/// Dropping it is like [`close`](Self::close), without a word about a failure.
#[derive(Debug)]
pub struct Made {
    /// The database file.
    pub path: PathBuf,
    /// What a correct reader has to see; [`live`](crate::live()) does not change it.
    pub expected: Expected,
    pub(crate) connection: Connection,
}

impl Made {
    /// The writer's connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Closes as a program does that leaves in order: the last one out checkpoints and removes `-wal` and `-shm`.
    pub fn close(self) -> Result<Expected, FixtureError> {
        self.connection.close().map_err(|(_, error)| error)?;
        Ok(self.expected)
    }

    /// Leaves `-wal` and `-shm` behind as a killed process does, but no open handle in this one.
    pub fn crash(self) -> Result<Expected, FixtureError> {
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        self.close()
    }
}

/// Writes the database, the project files and `expected.json` below `root`. A database already there is replaced.
pub fn make(root: &Path, options: &Options) -> Result<Made, FixtureError> {
    let root = absolute(root).map_err(at(root))?;
    let folder = root.join("zed").join("db").join(format!("0-{}", options.channel));
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    for name in ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm"] {
        remove(&folder.join(name))?;
    }
    let path = folder.join("db.sqlite");
    let mut connection = open_as_zed(&path)?;
    let transaction = connection.transaction()?;
    schema::create(&transaction, options.generation)?;
    let expected = scenarios::build(&transaction, &root, &path, options)?;
    transaction.commit()?;
    write_json(&root.join("expected.json"), &expected)?;
    Ok(Made { path, expected, connection })
}

/// With the pragmas of Zed's write thread.
fn open_as_zed(path: &Path) -> Result<Connection, FixtureError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_millis(500))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

fn remove(path: &Path) -> Result<(), FixtureError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

fn write_json(path: &Path, expected: &Expected) -> Result<(), FixtureError> {
    let mut file = BufWriter::new(File::create(path).map_err(at(path))?);
    serde_json::to_writer_pretty(&mut file, expected)?;
    file.flush().map_err(at(path))
}
