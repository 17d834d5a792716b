//! Workspace folders against pi's folder: as they are spelt, else by the real paths of both.

use std::collections::HashMap;

use crate::paths::{Host, Match, best_match, normalise, real_path};

/// Remembers real paths, so that a thousand locks of one folder resolve it once.
pub(super) struct Matcher<'a> {
    host: &'a Host,
    cwd: &'a str,
    real_cwd: Option<String>,
    real_paths: HashMap<String, Option<String>>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(host: &'a Host, cwd: &'a str) -> Self {
        let real_cwd = real_path(&normalise(host, cwd)).ok();
        Self { host, cwd, real_cwd, real_paths: HashMap::new() }
    }

    pub(super) fn normalised(&self, folders: &[String]) -> Vec<String> {
        folders.iter().map(|folder| normalise(self.host, folder).into_owned()).collect()
    }

    /// The better of the match as spelt and the match of real paths; the winning folder keeps its spelling.
    pub(super) fn best(&mut self, folders: &[String]) -> Match {
        let literal = best_match(self.host, folders, self.cwd, self.host.ignores_case());
        if literal.direct {
            return literal;
        }
        self.best_real(folders).filter(|real| real.length > literal.length).unwrap_or(literal)
    }

    fn best_real(&mut self, folders: &[String]) -> Option<Match> {
        let cwd = self.real_cwd.clone()?;
        let mut best = Match::default();
        for folder in folders {
            // Judged alone first: a folder that is relative or a root as spelt must not become one by its real path.
            let spelt = best_match(self.host, &[folder], folder, false).folder;
            let Some((spelt, real)) = spelt.zip(self.real(folder)) else {
                continue;
            };
            let found = best_match(self.host, &[real], &cwd, self.host.ignores_case());
            if found.length > best.length {
                best = Match { folder: Some(spelt), ..found };
            }
        }
        Some(best)
    }

    fn real(&mut self, folder: &str) -> Option<String> {
        let folder = normalise(self.host, folder).into_owned();
        self.real_paths.entry(folder).or_insert_with_key(|folder| real_path(folder).ok()).clone()
    }
}
