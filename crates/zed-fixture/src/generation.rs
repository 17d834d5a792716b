use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::FixtureError;

/// A generation of Zed's schema. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Generation {
    /// `workspace_location` as a bincode BLOB; editors have only a path.
    #[serde(rename = "2023")]
    G2023,
    /// `local_paths` and its order as bincode BLOBs, sessions, `ssh_projects`; editors gain contents and mtime.
    #[serde(rename = "2024")]
    G2024,
    /// Adds `local_paths_array` (joined by commas), `editor_selections` and `buffer_path`.
    #[serde(rename = "2025a")]
    G2025a,
    /// `workspaces` rebuilt: `paths` joined by newlines, `ssh_connection_id`.
    #[serde(rename = "2025b")]
    G2025b,
    /// `remote_connections` with a kind.
    #[serde(rename = "2025c")]
    G2025c,
    /// Adds `identity_paths`, `remote_env`, `bookmarks`, `file_folds` and `scoped_kv_store`.
    #[serde(rename = "2026")]
    G2026,
}

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: [Self; 6] = [Self::G2023, Self::G2024, Self::G2025a, Self::G2025b, Self::G2025c, Self::G2026];

    /// The name in `expected.json` and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::G2023 => "2023",
            Self::G2024 => "2024",
            Self::G2025a => "2025a",
            Self::G2025b => "2025b",
            Self::G2025c => "2025c",
            Self::G2026 => "2026",
        }
    }

    /// The generation of that name.
    pub fn parse(name: &str) -> Result<Self, FixtureError> {
        Self::ALL
            .into_iter()
            .find(|generation| generation.name() == name)
            .ok_or_else(|| FixtureError::UnknownGeneration(name.to_owned()))
    }

    /// Whether `editor_selections` exists.
    pub fn has_selections(self) -> bool {
        self >= Self::G2025a
    }

    /// Whether the buffer of a file with a UTF-8 byte order mark is without it, and UTF-16 files open at all.
    pub fn strips_bom(self) -> bool {
        self >= Self::G2026
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Generation {
    type Err = FixtureError;

    fn from_str(name: &str) -> Result<Self, FixtureError> {
        Self::parse(name)
    }
}
