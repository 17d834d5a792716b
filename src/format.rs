//! Pure computations: mentions, the metadata block, cutting a line.

use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::context::{mentions, metadata_block};
use pi_x_ide_bridge::width;

use crate::failure::Failure;
use crate::host::host;
use crate::snapshot::SnapshotInput;

/// The mentions of a snapshot, one per range: `@src/foo.ts#L10-L20`, relative to `cwd` where the file is inside it.
///
/// Throws `PIX_INVALID_ARGUMENT`. Protocol: "at_mentioned".
#[napi(catch_unwind)]
pub fn format_mention(env: &Env, snapshot: SnapshotInput, cwd: String) -> Result<Vec<String>> {
    let snapshot = snapshot.into_wire("unknown").map_err(|failure| failure.into_error(env))?;
    Ok(mentions(host(), &cwd, &snapshot))
}

/// The block that the model gets for a snapshot: editor, file, line ranges, never the text. Null for no snapshot.
///
/// Throws `PIX_INVALID_ARGUMENT`.
#[napi(catch_unwind)]
pub fn format_context(env: &Env, snapshot: Option<SnapshotInput>, cwd: String) -> Result<Option<String>> {
    let Some(snapshot) = snapshot else { return Ok(None) };
    let snapshot = snapshot.into_wire("unknown").map_err(|failure| failure.into_error(env))?;
    Ok(Some(metadata_block(host(), &cwd, &snapshot, None)))
}

/// The line as it may be printed in `width` terminal cells: control and bidi characters escaped, cut with `…` at a
/// character as people see it. Width 0 gives an empty line. Throws `PIX_INVALID_ARGUMENT` for a negative width or NaN.
#[napi(catch_unwind)]
pub fn truncate_to_width(env: &Env, text: String, width: f64) -> Result<String> {
    if width.is_nan() || width < 0.0 {
        return Err(Failure::invalid(format!("width must not be negative, nor {width}")).into_error(env));
    }
    // Saturates: wider than any text is as good as unlimited.
    Ok(width::truncate_to_width(&text, width as usize).into_owned())
}
