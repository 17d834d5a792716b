//! From the rows to what the editor shows: reads when something changed, maps offsets, brings paths into pi's spelling.
//! Blocks.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::choice::{Workspace, shown_editor};
use super::copy::Copy;
use super::database::{Access, Database, EditorRow, Rows, Written, log_of};
use super::error::ZedError;
use super::folders::{FolderColumns, folders};
use super::locate::Place;
use super::offsets::{Offsets, ranges};
use super::text::decode;
use crate::discovery::{best_folder, respellings};
use crate::env::Env;
use crate::paths::{Match, PathMapping, contains, folders_above, respell};
use crate::protocol::lenient::Text;
use crate::protocol::snapshot::{Range, Snapshot};
use crate::trusted::open_regular;

/// Folders may come and go, and what they are is looked at anew after this time.
const MATCHES_FOR: Duration = Duration::from_secs(30);

/// Larger files are named without their selection.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A byte order mark in UTF-8.
const MARK: i64 = 3;

/// Which workspaces count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that contain pi's folder.
    Containing,
    /// These first, else the one used last: the user picked Zed by hand.
    Any,
}

/// What Zed shows, for pi's folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The workspace that is meant; `None` where none fits.
    pub workspace: Option<OpenWorkspace>,
    /// Its shown editor; `None` where no file is open.
    pub snapshot: Option<Snapshot>,
    /// What makes it less than certain, as a sentence.
    pub caveat: Option<String>,
}

/// A workspace by its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWorkspace {
    /// Its folders in this host's form.
    pub folders: Vec<String>,
    /// How they fit pi's folder.
    pub found: Match,
}

/// Reads one database for one folder of pi.
pub(super) struct Reader {
    env: Arc<Env>,
    cwd: String,
    place: Place,
    scope: Scope,
    open: Option<Open>,
    matches: Matches,
    /// The last editor shown, with what its selection was.
    last: Option<(i64, Snapshot)>,
    mapped: Option<Mapped>,
}

/// An open database and which file it is.
struct Open {
    database: Database,
    id: FileId,
    version: i64,
    /// Removed after the connection is closed.
    _copy: Option<Copy>,
}

/// The ranges of a file that has not changed since.
struct Mapped {
    key: (PathBuf, FileId, SystemTime, u64, Vec<Offsets>, bool),
    ranges: Vec<Range>,
}

/// The rows that one answer is made of.
struct Chosen {
    workspace: Known,
    editor: Option<ChosenEditor>,
}

struct ChosenEditor {
    id: i64,
    row: EditorRow,
    /// `None` where nothing is known of its selection.
    offsets: Option<Vec<Offsets>>,
    keeps_mark: bool,
}

impl Reader {
    pub(super) fn new(env: Arc<Env>, cwd: String, place: Place, scope: Scope) -> Self {
        let matches = Matches { known: HashMap::new(), since: Instant::now() };
        Self { env, cwd, place, scope, open: None, matches, last: None, mapped: None }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether somebody committed since the last [`Reader::read`]; true where that cannot be told.
    pub(super) fn has_changed(&mut self) -> bool {
        let Some(open) = self.open.as_ref().filter(|open| !open.database.is_frozen() && open._copy.is_none()) else {
            return true;
        };
        let is_same = file_id(&self.place.path).is_ok_and(|id| id == open.id);
        !is_same || open.database.data_version().ok() != Some(open.version)
    }

    /// What Zed shows now.
    pub(super) fn read(&mut self) -> Result<Reading, ZedError> {
        self.reopen_if_replaced()?;
        let Self { env, cwd, scope, open, matches, .. } = self;
        let open = open.as_mut().ok_or(ZedError::Busy)?;
        // Before the rows: a commit in between is then seen as a change, at worst once too often.
        open.version = open.database.data_version()?;
        matches.forget_old();
        let chosen = open.database.read(|rows| choose(rows, &mut |columns| matches.of(env, cwd, columns), *scope));
        match chosen {
            Ok(Some(chosen)) => Ok(self.reading(chosen)),
            Ok(None) => Ok(Reading::default()),
            Err(error) => {
                // Whatever is wrong with this connection is not carried on; a busy database is only asked again.
                if error != ZedError::Busy {
                    self.open = None;
                }
                Err(error)
            }
        }
    }

    /// Zed may move its database aside and start a new one under the old name; a copy and a database without a log do
    /// not change at all.
    fn reopen_if_replaced(&mut self) -> Result<(), ZedError> {
        let path = &self.place.path;
        let id = file_id(path).map_err(|error| ZedError::of_io(path, &error))?;
        let is_live = |open: &Open| open.id == id && open._copy.is_none() && !open.database.is_frozen();
        if self.open.as_ref().is_some_and(is_live) {
            return Ok(());
        }
        self.open = None;
        let copy = self.place.is_on_windows.then(|| Copy::make(path)).transpose()?;
        let database = match &copy {
            Some(copy) => Database::open(&copy.path(), Access::Copied)?,
            None => Database::open(path, Access::InPlace)?,
        };
        self.open = Some(Open { database, id, version: 0, _copy: copy });
        Ok(())
    }

    fn reading(&mut self, chosen: Chosen) -> Reading {
        let Chosen { workspace, editor } = chosen;
        let open = OpenWorkspace { folders: workspace.folders.clone(), found: workspace.found.clone() };
        let mut reading = Reading { workspace: Some(open), ..Reading::default() };
        let Some(editor) = editor else {
            self.last = None;
            return reading;
        };
        let Some(path) = self.path_of(&editor.row) else {
            // An empty buffer without a name.
            self.last = None;
            return reading;
        };
        let shown = path.to_string_lossy();
        let shown = self.env.localise(&shown).into_owned();
        let file_path = respell(&self.env.host, &workspace.respellings, &shown).unwrap_or_else(|| shown.clone());
        let ranges = match &editor.offsets {
            Some(offsets) => match self.ranges(&editor, offsets, &path) {
                Ok((ranges, caveat)) => {
                    reading.caveat = caveat;
                    ranges
                }
                Err(reason) => {
                    reading.caveat = Some(reason);
                    Vec::new()
                }
            },
            None => self.last_ranges(editor.id, &file_path),
        };
        let ignore_case = self.env.host.ignores_case();
        let holds = |folder: &&String| contains(&self.env.host, folder, &shown, ignore_case);
        let folder = workspace.folders.iter().find(holds).or(workspace.found.folder.as_ref());
        let folder = folder.map(|folder| {
            Text(respell(&self.env.host, &workspace.respellings, folder).unwrap_or_else(|| folder.clone()))
        });
        let snapshot = Snapshot {
            source: "zed".into(),
            file_path: Text(file_path),
            workspace_folder: folder,
            ranges,
            received_at: None,
        };
        self.last = Some((editor.id, snapshot.clone()));
        reading.snapshot = Some(snapshot);
        reading
    }

    /// What is not known stays as it was.
    fn last_ranges(&self, editor: i64, file_path: &str) -> Vec<Range> {
        let last = self.last.as_ref().filter(|(id, last)| *id == editor && last.file_path.0 == file_path);
        last.map(|(_, last)| last.ranges.clone()).unwrap_or_default()
    }

    fn path_of(&self, row: &EditorRow) -> Option<PathBuf> {
        match &row.path {
            Some(path) => Some(path_from(path)),
            None => row.contents.is_some().then(|| PathBuf::from("untitled:untitled")),
        }
    }

    /// The selected ranges, and a caveat.
    fn ranges(
        &mut self,
        editor: &ChosenEditor,
        offsets: &[Offsets],
        path: &Path,
    ) -> Result<(Vec<Range>, Option<String>), String> {
        if offsets.iter().all(|offsets| offsets.start == offsets.end) {
            // Carets, which need no text.
            return Ok((Vec::new(), None));
        }
        if let Some(contents) = &editor.row.contents {
            let text = std::str::from_utf8(contents).map_err(|_| "Zed's text is not UTF-8".to_owned())?;
            return Ok((ranges(text, offsets), None));
        }
        let shown = path.display();
        let local = path.to_str().map_or_else(|| path.to_owned(), |path| self.env.localise(path).into_owned().into());
        let cannot =
            |error: &dyn std::fmt::Display| format!("the selection in {shown} cannot be mapped: the file {error}");
        let file = open_regular(&local).map_err(|error| cannot(&error))?;
        let metadata = file.metadata().map_err(|error| cannot(&format!("cannot be read: {error}")))?;
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let is_other = editor.row.modified.is_some_and(|read| nanos(modified) != read);
        let caveat = is_other.then(|| format!("{shown} changed since Zed read it: the lines may be off"));
        let key = (local, id_of(&metadata), modified, metadata.len(), offsets.to_vec(), editor.keeps_mark);
        if let Some(mapped) = self.mapped.as_ref().filter(|mapped| mapped.key == key) {
            return Ok((mapped.ranges.clone(), caveat));
        }
        if metadata.len() > MOST_BYTES {
            return Err(cannot(&format!("is larger than {MOST_BYTES} bytes")));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        // One that grows meanwhile is cut, and read again when Zed has it.
        file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|error| cannot(&format!("cannot be read: {error}")))?;
        let ranges = ranges_in_file(&bytes, offsets, editor.keeps_mark).map_err(|error| cannot(&error))?;
        self.mapped = Some(Mapped { key, ranges: ranges.clone() });
        Ok((ranges, caveat))
    }
}

/// The ranges of a file as Zed holds it. Versions that `keeps_mark` tells of counted a byte order mark as three bytes;
/// in between there were some of either kind, so that where only one reading fits that one counts.
pub fn ranges_in_file(bytes: &[u8], offsets: &[Offsets], keeps_mark: bool) -> Result<Vec<Range>, super::text::NotText> {
    let decoded = decode(bytes)?;
    let after_mark = || -> Vec<Offsets> {
        let after = |Offsets { start, end }: &Offsets| Offsets { start: start - MARK, end: end - MARK };
        offsets.iter().map(after).collect()
    };
    if !decoded.had_utf8_mark {
        return Ok(ranges(&decoded.text, offsets));
    }
    let fit = |offsets: &[Offsets]| offsets.iter().all(|offsets| offsets.fits(&decoded.text));
    let (with, without) = (after_mark(), offsets);
    let counts_mark = match (fit(&with), fit(without)) {
        (true, false) => true,
        (false, true) => false,
        _ => keeps_mark,
    };
    Ok(ranges(&decoded.text, if counts_mark { &with } else { without }))
}

/// The workspace and its editor, from the rows of one transaction.
fn choose(
    rows: &Rows<'_>,
    known: &mut dyn FnMut(&FolderColumns) -> Known,
    scope: Scope,
) -> rusqlite::Result<Option<Chosen>> {
    let windows = rows.windows()?;
    let open: Vec<(Workspace, Known)> = rows
        .workspaces()?
        .into_iter()
        .filter(|workspace| !workspace.folders.is_remote && windows.may_be_open(workspace))
        .map(|workspace| {
            let known = known(&workspace.folders);
            (workspace, known)
        })
        .collect();
    let longest = open.iter().filter(|(_, known)| known.found.direct).map(|(_, known)| known.found.length).max();
    let fits = |known: &Known| match longest {
        Some(longest) => known.found.direct && known.found.length == longest,
        None => scope == Scope::Any,
    };
    let fitting: Vec<_> = open.iter().filter(|(_, known)| fits(known)).collect();
    let mut selections = HashMap::new();
    for (workspace, _) in &fitting {
        selections.insert(workspace.id, rows.selections(workspace.id)?);
    }
    let last_written = |workspace: &Workspace| selections[&workspace.id].values().map(|written| written.last_row).max();
    let Some(workspace) = windows.foremost(fitting.iter().map(|(workspace, _)| workspace), last_written) else {
        return Ok(None);
    };
    let Some((_, known)) = fitting.iter().find(|(other, _)| other.id == workspace.id) else {
        return Ok(None);
    };
    let written: &HashMap<i64, Written> = &selections[&workspace.id];
    let items = rows.items(workspace.id)?;
    let shown = shown_editor(&items, |editor| written.get(&editor).map(|written| written.last_row));
    let editor = match shown {
        None => None,
        Some(id) => rows.editor(workspace.id, id)?.map(|row| ChosenEditor {
            id,
            row,
            offsets: written.get(&id).map(|written| written.offsets.clone()),
            keeps_mark: rows.keeps_mark(),
        }),
    };
    Ok(Some(Chosen { workspace: (*known).clone(), editor }))
}

/// How the folders of each workspace relate to pi's folder.
struct Matches {
    known: HashMap<FolderColumns, Known>,
    since: Instant,
}

#[derive(Debug, Clone)]
struct Known {
    folders: Vec<String>,
    found: Match,
    respellings: Vec<PathMapping>,
}

impl Matches {
    fn of(&mut self, env: &Env, cwd: &str, columns: &FolderColumns) -> Known {
        if let Some(known) = self.known.get(columns) {
            return known.clone();
        }
        let folders: Vec<_> = folders(columns)
            .iter()
            .map(|folder| env.localise(folder).into_owned())
            .map(|folder| folder_of_file_root(env, cwd, &folder).unwrap_or(folder))
            .collect();
        let known =
            Known { found: best_folder(env, cwd, &folders), respellings: respellings(env, cwd, &folders), folders };
        self.known.insert(columns.clone(), known.clone());
        known
    }

    fn forget_old(&mut self) {
        if self.since.elapsed() > MATCHES_FOR {
            self.known.clear();
            self.since = Instant::now();
        }
    }
}

/// The folder of a root that is a single file, where pi's folder lies in it: only there it matters.
fn folder_of_file_root(env: &Env, cwd: &str, root: &str) -> Option<String> {
    let folder = folders_above(&env.host, root).nth(1)?;
    let matters = contains(&env.host, &folder, cwd, env.host.ignores_case());
    (matters && Path::new(root).is_file()).then_some(folder)
}

/// Device and number of a file; zeros where there are none.
type FileId = (u64, u64);

fn file_id(path: &Path) -> std::io::Result<FileId> {
    Ok(id_of(&path.metadata()?))
}

#[cfg(unix)]
fn id_of(metadata: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;

    (metadata.dev(), metadata.ino())
}

/// Windows does not let a file be replaced while it is open.
#[cfg(not(unix))]
fn id_of(_: &std::fs::Metadata) -> FileId {
    (0, 0)
}

/// What the log, or the database where there is none, looks like: equal looks mean that nothing was committed.
pub(super) fn look(path: &Path) -> Option<(FileId, SystemTime, u64)> {
    let log = log_of(path).metadata().ok().filter(|log| log.len() > 0);
    let metadata = log.or_else(|| path.metadata().ok())?;
    Some((id_of(&metadata), metadata.modified().ok()?, metadata.len()))
}

fn nanos(time: SystemTime) -> i128 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(unix)]
fn path_from(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;

    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

#[cfg(not(unix))]
fn path_from(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
