//! Mentions: `@path#L10-L20`, as pi's own completion writes them.

use crate::escape::escape_name;
use crate::paths::{Host, display_path};
use crate::protocol::snapshot::Snapshot;

/// The mentions of one snapshot, one per range in their order; the file alone where there are none.
///
/// The path is relative to `cwd` when inside it, else absolute, with `/`; in quotes where it has a space, unless it
/// holds a quote itself. Protocol: "at_mentioned"; what the editor sends as `rangeText` is not used.
pub fn mentions(host: &Host, cwd: &str, snapshot: &Snapshot) -> Vec<String> {
    let path = display_path(host, cwd, &snapshot.file_path.0);
    let path = escape_name(&path);
    let at = if path.contains(' ') && !path.contains('"') { format!("@\"{path}\"") } else { format!("@{path}") };
    if snapshot.ranges.is_empty() {
        return vec![at];
    }
    snapshot.ranges.iter().map(|range| format!("{at}#{}", range.selection.line_label())).collect()
}

/// File name and line ranges of a snapshot for the status line, neither cut nor escaped:
/// (`foo.ts`, `#L10-L20`), several ranges as (`foo.ts`, ` 1:#L1 2:#L5-L6`).
pub fn label(host: &Host, snapshot: &Snapshot) -> (String, String) {
    let path = display_path(host, "", &snapshot.file_path.0);
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let ranges = match snapshot.ranges.as_slice() {
        [] => String::new(),
        [range] => format!("#{}", range.selection.line_label()),
        several => {
            let labels = several.iter().enumerate();
            labels.map(|(i, range)| format!(" {}:#{}", i + 1, range.selection.line_label())).collect()
        }
    };
    (name, ranges)
}
