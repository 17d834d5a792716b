use std::fmt;
use std::str::FromStr;

use crate::{FixtureError, Generation};

/// What [`make`](crate::make) puts into the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which schema.
    pub generation: Generation,
    /// The release channel in the folder name: `stable`, `preview`, `nightly`, `dev`.
    pub channel: String,
    /// What to include; a scenario that the generation cannot have is left out.
    pub scenarios: Vec<Scenario>,
    /// Windows of the current session.
    pub windows: usize,
    /// Old workspaces, written before the others.
    pub history_workspaces: usize,
    /// Editors in each old workspace.
    pub history_editors: usize,
    /// Total size of the unsaved texts in the old editors, MiB.
    pub history_mb: usize,
    /// Adds an editor on a file of at least this size, MiB; 0 adds none.
    pub big_file_mb: usize,
    /// Writes the main workspace's `paths` as a JSON array, a short-lived nightly form (2025b and later).
    pub json_paths: bool,
    /// Equal seeds give equal ids.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            generation: Generation::G2026,
            channel: "stable".to_owned(),
            scenarios: Scenario::DEFAULT.to_vec(),
            windows: 2,
            history_workspaces: 0,
            history_editors: 0,
            history_mb: 0,
            big_file_mb: 0,
            json_paths: false,
            seed: 7,
        }
    }
}

impl Options {
    /// The default scenarios in one generation.
    pub fn of(generation: Generation) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Whether the scenario is asked for.
    pub fn has(&self, scenario: Scenario) -> bool {
        self.scenarios.contains(&scenario)
    }
}

/// One situation that a reader has to get right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// An older workspace whose root is the parent of the active one's.
    ParentWorkspace,
    /// A workspace on an SSH host.
    Ssh,
    /// A workspace in a WSL distribution.
    Wsl,
    /// A workspace in a dev container.
    Docker,
    /// A workspace on another host whose root has the active one's path.
    RemoteSamePath,
    /// A window without folders, with an unsaved untitled buffer.
    Untitled,
    /// The active workspace has a second root, given first by the user.
    MultiRoot,
    /// CRLF on disk.
    Crlf,
    /// A UTF-8 byte order mark and CRLF on disk.
    Bom,
    /// UTF-16LE with a byte order mark on disk.
    Utf16,
    /// CRLF, CR and LF in one file.
    MixedEol,
    /// Unsaved text in the database.
    Dirty,
    /// Unsaved text that the database does not have.
    DirtyHidden,
    /// The file is newer than the row's mtime.
    ChangedOnDisk,
    /// Many cursors.
    Multi,
    /// A row whose start is behind its end.
    Reversed,
    /// Offsets behind the end of the text.
    OutOfRange,
    /// Offsets inside a character.
    MidChar,
    /// An editor without a selection row.
    NoSelectionRow,
    /// An `Editor` item without an `editors` row.
    Multibuffer,
    /// An empty selection.
    Caret,
    /// A terminal tab is the active item of the focused pane.
    TerminalActive,
    /// No pane of the active workspace has the focus.
    NoFocus,
}

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 23] = [
        Self::ParentWorkspace,
        Self::Ssh,
        Self::Wsl,
        Self::Docker,
        Self::RemoteSamePath,
        Self::Untitled,
        Self::MultiRoot,
        Self::Crlf,
        Self::Bom,
        Self::Utf16,
        Self::MixedEol,
        Self::Dirty,
        Self::DirtyHidden,
        Self::ChangedOnDisk,
        Self::Multi,
        Self::Reversed,
        Self::OutOfRange,
        Self::MidChar,
        Self::NoSelectionRow,
        Self::Multibuffer,
        Self::Caret,
        Self::TerminalActive,
        Self::NoFocus,
    ];

    /// All but [`TerminalActive`](Self::TerminalActive) and [`NoFocus`](Self::NoFocus), which change what is active.
    pub const DEFAULT: &'static [Self] = Self::ALL.split_at(21).0;

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ParentWorkspace => "parent-workspace",
            Self::Ssh => "ssh",
            Self::Wsl => "wsl",
            Self::Docker => "docker",
            Self::RemoteSamePath => "remote-same-path",
            Self::Untitled => "untitled",
            Self::MultiRoot => "multi-root",
            Self::Crlf => "crlf",
            Self::Bom => "bom",
            Self::Utf16 => "utf16",
            Self::MixedEol => "mixed-eol",
            Self::Dirty => "dirty",
            Self::DirtyHidden => "dirty-hidden",
            Self::ChangedOnDisk => "changed-on-disk",
            Self::Multi => "multi",
            Self::Reversed => "reversed",
            Self::OutOfRange => "out-of-range",
            Self::MidChar => "mid-char",
            Self::NoSelectionRow => "no-selection-row",
            Self::Multibuffer => "multibuffer",
            Self::Caret => "caret",
            Self::TerminalActive => "terminal-active",
            Self::NoFocus => "no-focus",
        }
    }

    /// The scenario of that name.
    pub fn parse(name: &str) -> Result<Self, FixtureError> {
        Self::ALL
            .into_iter()
            .find(|scenario| scenario.name() == name)
            .ok_or_else(|| FixtureError::UnknownScenario(name.to_owned()))
    }

    /// A comma list. With any `+name` or `-name` in it the list changes the default instead of replacing it.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, FixtureError> {
        let names: Vec<&str> = list.split(',').filter(|name| !name.is_empty()).collect();
        let relative = names.iter().any(|name| name.starts_with(['+', '-']));
        let mut chosen = if relative { Self::DEFAULT.to_vec() } else { Vec::new() };
        for name in names {
            let scenario = Self::parse(name.strip_prefix(['+', '-']).unwrap_or(name))?;
            chosen.retain(|&other| other != scenario);
            if !name.starts_with('-') {
                chosen.push(scenario);
            }
        }
        Ok(chosen)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scenario {
    type Err = FixtureError;

    fn from_str(name: &str) -> Result<Self, FixtureError> {
        Self::parse(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for scenario in Scenario::ALL {
            assert_eq!(Scenario::parse(scenario.name()).unwrap(), scenario);
        }
        for generation in Generation::ALL {
            assert_eq!(Generation::parse(generation.name()).unwrap(), generation);
        }
    }

    #[test]
    fn a_list_replaces_the_default_or_changes_it() {
        assert_eq!(Scenario::parse_list("crlf,bom").unwrap(), [Scenario::Crlf, Scenario::Bom]);
        assert_eq!(Scenario::parse_list("").unwrap(), []);
        let changed = Scenario::parse_list("-crlf,+no-focus").unwrap();
        assert_eq!(changed.len(), Scenario::DEFAULT.len());
        assert!(!changed.contains(&Scenario::Crlf) && changed.contains(&Scenario::NoFocus));
        assert!(!Scenario::DEFAULT.contains(&Scenario::TerminalActive));
    }
}
