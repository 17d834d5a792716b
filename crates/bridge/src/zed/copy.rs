//! A private copy of a database on a drive of Windows: SQLite cannot be used in place across that border. Blocks.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::database::log_of;
use super::error::ZedError;
use crate::process::may_be_alive;

/// Names of our folders begin so, then comes the pid.
const PREFIX: &str = "pi-x-ide-zed-";

/// A log that was begun anew while it was copied does not fit the copy of its database.
const TRIES: u32 = 3;

/// The head of a log, which holds the salts that change when it is begun anew.
const HEAD: usize = 32;

/// Database and log as they were at one time, in a folder (0700) that is removed when this is dropped.
pub(super) struct Copy {
    folder: TempDir,
}

impl Copy {
    /// Copies both files, database first: whatever is written into it meanwhile still stands in the log as well.
    pub(super) fn make(path: &Path) -> Result<Self, ZedError> {
        let of_io = |error| ZedError::of_io(path, &error);
        for _ in 0..TRIES {
            let copy = Self { folder: new_folder().map_err(|error| ZedError::Unreadable(error.to_string()))? };
            let before = head_of_log(path).map_err(of_io)?;
            copy_file(path, &copy.path()).map_err(of_io)?;
            match copy_file(&log_of(path), &log_of(&copy.path())) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(of_io(error)),
            }
            if head_of_log(path).map_err(of_io)? == before {
                return Ok(copy);
            }
        }
        Err(ZedError::Busy)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("db.sqlite")
    }
}

/// Without attributes: a file that is read-only there need not be so here.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut File::create_new(to)?).map(drop)
}

fn head_of_log(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match File::open(log_of(path)) {
        Ok(log) => log.take(HEAD as u64).read_to_end(&mut head).map(|_| head),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(head),
        Err(error) => Err(error),
    }
}

fn new_folder() -> io::Result<TempDir> {
    remove_left_over(&std::env::temp_dir());
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

/// Removes the folders of processes that crashed. Exactly our own names, and only files that we make.
fn remove_left_over(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && pid.is_some_and(|pid: u64| !may_be_alive(pid)) {
            for file in ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm"] {
                // Of another user, or gone already.
                let _ = fs::remove_file(entry.path().join(file));
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_copy_is_private_and_goes_with_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("db.sqlite");
        fs::write(&path, "database").unwrap();
        fs::write(log_of(&path), "log").unwrap();
        fs::write(home.path().join("db.sqlite-shm"), "index").unwrap();
        let copy = Copy::make(&path).unwrap();
        let folder = copy.path().parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(copy.path()).unwrap(), "database");
        assert_eq!(fs::read_to_string(log_of(&copy.path())).unwrap(), "log");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        drop(copy);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_crash_left_is_removed_and_nothing_else() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
            folder
        };
        let dead = make("pi-x-ide-zed-2147483647-abc", "db.sqlite-wal");
        let kept = [
            make(&format!("pi-x-ide-zed-{}-abc", std::process::id()), "db.sqlite"),
            make("pi-x-ide-zed-2147483647-other", "something.else"),
            make("pi-x-ide-zed-x-1", "db.sqlite"),
            make("zed-2147483647-1", "db.sqlite"),
        ];
        remove_left_over(temporary.path());
        assert!(!dead.exists());
        assert!(kept.iter().all(|folder| folder.exists()));
    }
}
