//! Order of candidates, and the one that connects by itself. Pure.

use std::cmp::Ordering;

/// What the order depends on, with whatever identifies the candidate.
#[derive(Debug, Clone)]
pub struct Ranked<Id> {
    /// Whose rank this is.
    pub id: Id,
    /// Path of the lock file.
    pub path: String,
    /// See `paths::Match::length`.
    pub match_length: u32,
    /// Whether a workspace folder contains pi's folder.
    pub direct: bool,
    /// Last focus in milliseconds since the epoch.
    pub focused_at: Option<f64>,
    /// Last change of the file in milliseconds since the epoch.
    pub mtime: f64,
    /// Whether it may be dialled without the user asking.
    pub connectable: bool,
}

/// Best first: match, then last focus (one that tells before one that does not), then last change, then path.
pub fn sort<Id>(candidates: &mut [Ranked<Id>]) {
    candidates.sort_by(compare);
}

fn compare<Id>(a: &Ranked<Id>, b: &Ranked<Id>) -> Ordering {
    let focus = |c: &Ranked<Id>| c.focused_at.unwrap_or(f64::NEG_INFINITY);
    b.match_length
        .cmp(&a.match_length)
        .then_with(|| focus(b).total_cmp(&focus(a)))
        .then_with(|| b.mtime.total_cmp(&a.mtime))
        .then_with(|| a.path.cmp(&b.path))
}

/// The candidate that connects by itself: the first direct one that may be dialled and has not failed in this round;
/// when all have failed, the first of them again. Expects the order of [`sort`].
pub fn auto_connect<'a, Id: PartialEq>(candidates: &'a [Ranked<Id>], failed: &[Id]) -> Option<&'a Ranked<Id>> {
    let mut usable = candidates.iter().filter(|c| c.direct && c.connectable);
    let first = usable.clone().next();
    usable.find(|c| !failed.contains(&c.id)).or(first)
}
