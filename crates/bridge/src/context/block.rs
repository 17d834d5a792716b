//! The text that the model gets for a WebSocket or Zed snapshot: metadata, never the selected text.

use crate::escape::{code_span, escape_name};
use crate::paths::{Host, display_path};
use crate::protocol::snapshot::Snapshot;

const HEADING: &str = "### IDE Context";

/// The metadata block for one snapshot, lines joined with LF. `server_name` stands in for a source that is `unknown`.
///
/// Shape: heading, `- **IDE**: vscode`, ``- **File**: `src/foo.ts` ``, and with ranges `- **Selection**: L10-L20`.
pub fn metadata_block(host: &Host, cwd: &str, snapshot: &Snapshot, server_name: Option<&str>) -> String {
    let ide = match (snapshot.source.as_str(), server_name) {
        ("unknown", Some(name)) => name,
        (source, _) => source,
    };
    let file = code_span(&display_path(host, cwd, &snapshot.file_path.0));
    let mut block = format!("{HEADING}\n- **IDE**: {}\n- **File**: {file}", escape_name(ide));
    if !snapshot.ranges.is_empty() {
        let labels: Vec<_> = snapshot.ranges.iter().map(|range| range.selection.line_label()).collect();
        block.push_str("\n- **Selection**: ");
        block.push_str(&labels.join(", "));
    }
    block
}
