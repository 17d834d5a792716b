//! Opening folders and files that carry a token, without trusting a name: no link in the last component, own user,
//! no group or other write, a size cap. A pipe or device cannot hang a reader.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Why a folder or file is not read. Each one is a sentence about "it".
#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    /// Not there; for a folder that is no fault.
    #[error("does not exist")]
    Missing,
    /// A link, folder, pipe, socket or device.
    #[error("is not a regular {expected}")]
    WrongType {
        /// `file` or `folder`.
        expected: &'static str,
    },
    /// Of another user.
    #[error("belongs to another user")]
    WrongOwner,
    /// Others could put files or words in it.
    #[error("can be written by other users (mode {mode:03o}); remove that with chmod go-w")]
    Writable {
        /// Permission bits.
        mode: u32,
    },
    /// Over the cap.
    #[error("is larger than {cap} bytes")]
    TooLarge {
        /// The cap in bytes.
        cap: u64,
    },
    /// Not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Anything else the operating system says.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for Distrust {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Io(error) }
    }
}

/// Text of a trusted file and which file it was.
#[derive(Debug)]
pub struct TrustedText {
    /// Its content.
    pub text: String,
    /// Last change.
    pub modified: SystemTime,
    id: FileId,
}

/// What the mode bits of a folder and its files are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// They say who may write, unless the file system is known to have none.
    Checked,
    /// They are made up: a Windows drive shows everything as 0777, whoever may write there.
    MadeUp,
}

/// A folder that passed the checks, held open so that it cannot be swapped.
#[derive(Debug)]
pub struct TrustedDir {
    path: PathBuf,
    #[cfg(unix)]
    modes: Modes,
    #[cfg(unix)]
    fd: std::os::fd::OwnedFd,
}

impl TrustedDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of its entries that are UTF-8, in no order.
    pub fn names(&self) -> Result<Vec<String>, Distrust> {
        let entries = std::fs::read_dir(&self.path)?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }

    /// Removes a file if it is still the one that was read.
    pub fn remove_if_unchanged(&self, name: &str, read: &TrustedText) -> io::Result<bool> {
        // Of two at it in one process, one could put an old file back where the other has just taken a new one away.
        static REMOVING: Mutex<()> = Mutex::new(());
        let _alone = REMOVING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_same(name, read)? { self.remove_same(name, read) } else { Ok(false) }
    }

    fn is_same(&self, name: &str, read: &TrustedText) -> io::Result<bool> {
        match self.open(name) {
            Ok((file, id, modified)) => {
                // A new file may get the number of the old one within one tick of the clock.
                let is_same_text = || read_text(file, read.text.len() as u64).is_ok_and(|text| text == read.text);
                Ok(id == read.id && modified == read.modified && is_same_text())
            }
            Err(Distrust::Io(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Reads a file of at most `cap` bytes.
    pub fn read(&self, name: &str, cap: u64) -> Result<TrustedText, Distrust> {
        let (file, id, modified) = self.open(name)?;
        Ok(TrustedText { text: read_text(file, cap)?, modified, id })
    }
}

/// Reads a text file of the user's own, which may be a link (to a dotfiles folder, say), but no pipe or device.
pub(crate) fn read_regular(path: &Path, cap: u64) -> Result<String, Distrust> {
    read_text(open_regular(path)?, cap)
}

/// Like [`read_regular`], and nobody but this user may have written it.
pub(crate) fn read_own(path: &Path, cap: u64) -> Result<String, Distrust> {
    let file = open_regular(path)?;
    platform::check_own(&file)?;
    read_text(file, cap)
}

/// Opens a file, which may be reached by a link, but no pipe or device. Does not wait.
pub(crate) fn open_regular(path: &Path) -> Result<File, Distrust> {
    let file = platform::open_without_waiting(path)?;
    if !file.metadata()?.is_file() {
        return Err(Distrust::WrongType { expected: "file" });
    }
    Ok(file)
}

fn read_text(file: File, cap: u64) -> Result<String, Distrust> {
    let mut bytes = Vec::new();
    // One more than allowed, since a file may grow while it is read.
    file.take(cap + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap {
        return Err(Distrust::TooLarge { cap });
    }
    String::from_utf8(bytes).map_err(|_| Distrust::NotText)
}

#[cfg(unix)]
mod platform {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::SystemTime;

    use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
    use rustix::io::Errno;
    use rustix::process::geteuid;

    use super::{Distrust, Modes, TrustedDir, TrustedText};
    use crate::file_system::has_permission_bits;

    pub(super) type FileId = (u64, u64);

    impl TrustedDir {
        /// Opens a folder of this user that nobody else can write.
        pub fn open_dir(path: &Path, modes: Modes) -> Result<Self, Distrust> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = fs::open(path, flags, Mode::empty()).map_err(|error| refusal(error, "folder"))?;
            let stat = fs::fstat(&fd).map_err(std::io::Error::from)?;
            check_owner(&stat)?;
            check_mode(&stat, &fd, modes)?;
            Ok(Self { path: path.to_owned(), modes, fd })
        }

        /// Takes the file aside before it is looked at again, since a writer may replace it between a look and a
        /// removal; another one is put back, unless there is a newer one by then.
        pub(super) fn remove_same(&self, name: &str, read: &TrustedText) -> std::io::Result<bool> {
            let aside = format!(".{name}.{}.gone", std::process::id());
            match fs::renameat(&self.fd, name, &self.fd, &aside) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            let is_same = self.is_same(&aside, read).unwrap_or(false);
            if !is_same {
                match fs::linkat(&self.fd, &aside, &self.fd, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    // A drive without hard links.
                    Err(_) => return Ok(fs::renameat(&self.fd, &aside, &self.fd, name).map(|()| false)?),
                }
            }
            fs::unlinkat(&self.fd, &aside, AtFlags::empty())?;
            Ok(is_same)
        }

        pub(super) fn open(&self, name: &str) -> Result<(File, FileId, SystemTime), Distrust> {
            // Without O_NONBLOCK the open of a pipe would wait for a writer.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let fd = fs::openat(&self.fd, name, flags, Mode::empty()).map_err(|error| refusal(error, "file"))?;
            let stat = fs::fstat(&fd).map_err(std::io::Error::from)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                return Err(Distrust::WrongType { expected: "file" });
            }
            check_owner(&stat)?;
            check_mode(&stat, &fd, self.modes)?;
            let file = File::from(fd);
            let modified = file.metadata()?.modified()?;
            Ok((file, (stat.st_dev as u64, stat.st_ino as u64), modified))
        }
    }

    pub(super) fn open_without_waiting(path: &Path) -> Result<File, Distrust> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(|error| refusal(error, "file"))?;
        Ok(File::from(fd))
    }

    /// A group of the user's own is common, so only the world must not write.
    pub(super) fn check_own(file: &File) -> Result<(), Distrust> {
        let stat = fs::fstat(file).map_err(std::io::Error::from)?;
        check_owner(&stat)?;
        let mode = stat.st_mode & 0o777;
        if mode & 0o002 != 0 && has_permission_bits(file) { Err(Distrust::Writable { mode }) } else { Ok(()) }
    }

    fn check_owner(stat: &Stat) -> Result<(), Distrust> {
        if stat.st_uid == geteuid().as_raw() { Ok(()) } else { Err(Distrust::WrongOwner) }
    }

    fn check_mode(stat: &Stat, fd: &OwnedFd, modes: Modes) -> Result<(), Distrust> {
        let mode = stat.st_mode & 0o777;
        let others_may_write = mode & 0o022 != 0 && modes == Modes::Checked && has_permission_bits(fd);
        if others_may_write { Err(Distrust::Writable { mode }) } else { Ok(()) }
    }

    fn refusal(error: Errno, expected: &'static str) -> Distrust {
        match error {
            // What O_NOFOLLOW and O_DIRECTORY answer for a link, a file in place of a folder, a socket.
            Errno::LOOP | Errno::MLINK | Errno::NOTDIR | Errno::NXIO => Distrust::WrongType { expected },
            error => std::io::Error::from(error).into(),
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::SystemTime;

    use super::{Distrust, Modes, TrustedDir, TrustedText};

    pub(super) type FileId = u64;

    pub(super) fn open_without_waiting(path: &Path) -> Result<File, Distrust> {
        Ok(File::open(path)?)
    }

    /// Profiles of Windows are private by their access lists.
    pub(super) fn check_own(_: &File) -> Result<(), Distrust> {
        Ok(())
    }

    impl TrustedDir {
        /// Opens a folder. Profiles of Windows are private by their access lists, so only its type is checked.
        pub fn open_dir(path: &Path, _: Modes) -> Result<Self, Distrust> {
            if !fs::symlink_metadata(path)?.is_dir() {
                return Err(Distrust::WrongType { expected: "folder" });
            }
            Ok(Self { path: path.to_owned() })
        }

        pub(super) fn remove_same(&self, name: &str, _: &TrustedText) -> std::io::Result<bool> {
            fs::remove_file(self.path.join(name)).map(|()| true)
        }

        pub(super) fn open(&self, name: &str) -> Result<(File, FileId, SystemTime), Distrust> {
            let path = self.path.join(name);
            if !fs::symlink_metadata(&path)?.is_file() {
                return Err(Distrust::WrongType { expected: "file" });
            }
            let file = File::open(&path)?;
            let metadata = file.metadata()?;
            Ok((file, metadata.len(), metadata.modified()?))
        }
    }
}

use platform::FileId;

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn read(dir: &Path, name: &str) -> Result<TrustedText, Distrust> {
        TrustedDir::open_dir(dir, Modes::Checked)?.read(name, 100)
    }

    #[test]
    fn links_folders_and_pipes_are_no_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real"), "x").unwrap();
        symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        crate::testing::make_pipe(&dir.path().join("pipe"));
        assert_eq!(read(dir.path(), "real").unwrap().text, "x");
        for name in ["link", "folder", "pipe"] {
            assert!(matches!(read(dir.path(), name), Err(Distrust::WrongType { .. })), "{name}");
        }
        assert!(matches!(read(dir.path(), "absent"), Err(Distrust::Missing)));
    }

    #[test]
    fn size_and_encoding_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("big"), [b'x'; 101]).unwrap();
        fs::write(dir.path().join("latin1"), [0xe9]).unwrap();
        assert!(matches!(read(dir.path(), "big"), Err(Distrust::TooLarge { cap: 100 })));
        assert!(matches!(read(dir.path(), "latin1"), Err(Distrust::NotText)));
    }

    #[test]
    fn shared_and_linked_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(TrustedDir::open_dir(&shared, Modes::Checked), Err(Distrust::Writable { mode: 0o777 })));
        fs::write(shared.join("a"), "x").unwrap();
        fs::set_permissions(shared.join("a"), Permissions::from_mode(0o777)).unwrap();
        let windows = TrustedDir::open_dir(&shared, Modes::MadeUp).unwrap();
        assert_eq!(windows.read("a", 100).unwrap().text, "x");
        symlink(&shared, dir.path().join("link")).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for name in ["link", "file"] {
            let opened = TrustedDir::open_dir(&dir.path().join(name), Modes::Checked);
            assert!(matches!(opened, Err(Distrust::WrongType { .. })), "{name}");
        }
    }

    #[test]
    fn files_and_folders_of_another_user_are_refused() {
        if !rustix::process::geteuid().is_root() {
            return; // only root can make a file of another user
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("theirs");
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
        assert!(matches!(read(dir.path(), "theirs"), Err(Distrust::WrongOwner)));
        std::os::unix::fs::chown(dir.path(), Some(12345), None).unwrap();
        assert!(matches!(TrustedDir::open_dir(dir.path(), Modes::Checked), Err(Distrust::WrongOwner)));
    }

    #[test]
    fn only_the_file_that_was_read_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.lock");
        fs::write(&file, "old").unwrap();
        let trusted = TrustedDir::open_dir(dir.path(), Modes::Checked).unwrap();
        let old = trusted.read("a.lock", 100).unwrap();
        fs::write(dir.path().join("new"), "new").unwrap();
        fs::rename(dir.path().join("new"), &file).unwrap();
        assert!(!trusted.remove_if_unchanged("a.lock", &old).unwrap());
        let new = trusted.read("a.lock", 100).unwrap();
        assert!(trusted.remove_if_unchanged("a.lock", &new).unwrap());
        assert!(!file.exists());
    }

    #[test]
    fn a_file_that_replaces_a_dead_one_is_never_lost() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.lock");
        let (path, at) = (dir.path().to_owned(), file.clone());
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let clean = || {
            let trusted = TrustedDir::open_dir(dir.path(), Modes::Checked).unwrap();
            let stop = std::sync::Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    if let Ok(read) = trusted.read("a.lock", 100)
                        && read.text == "dead"
                    {
                        let _ = trusted.remove_if_unchanged("a.lock", &read);
                    }
                }
            })
        };
        let cleaners = [clean(), clean()];
        for round in 0..3000 {
            for text in ["dead", "live"] {
                fs::write(path.join("new"), text).unwrap();
                fs::rename(path.join("new"), &at).unwrap();
            }
            // Out of the way for a moment at most.
            let is_there = (0..200).any(|_| {
                let found = fs::read_to_string(&at).is_ok_and(|text| text == "live");
                if !found {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                found
            });
            assert!(is_there, "round {round}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        cleaners.into_iter().for_each(|cleaner| cleaner.join().unwrap());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing is left aside");
    }
}
