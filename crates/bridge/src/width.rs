//! Cutting a line to terminal cells without tearing a character that a person sees as one.
//!
//! A leaf. Cells follow Unicode's East Asian Width and emoji data: narrow and ambiguous characters take one, wide
//! ones two, combining marks none, a whole emoji sequence two.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::escape::escape_controls;

const ELLIPSIS: char = '…';

/// The line as it may be printed in `width` terminal cells: control and bidi characters escaped, cut at a grapheme
/// cluster with `…` when it does not fit. Width 0 gives an empty line.
pub fn truncate_to_width(text: &str, width: usize) -> Cow<'_, str> {
    if width == 0 {
        return Cow::Borrowed("");
    }
    let line = escape_controls(text);
    let Some(cut) = cut_position(&line, width) else {
        return line;
    };
    let mut short = String::with_capacity(cut + ELLIPSIS.len_utf8());
    short.push_str(&line[..cut]);
    short.push(ELLIPSIS);
    Cow::Owned(short)
}

/// Terminal cells that a line takes.
pub fn line_width(line: &str) -> usize {
    line.graphemes(true).map(cluster_width).sum()
}

/// Where to cut so that an ellipsis still fits, or `None` when the whole line fits.
fn cut_position(line: &str, width: usize) -> Option<usize> {
    let room = width.saturating_sub(1);
    let (mut used, mut cut) = (0, 0);
    for (start, cluster) in line.grapheme_indices(true) {
        used += cluster_width(cluster);
        if used <= room {
            cut = start + cluster.len();
        }
        if used > width {
            return Some(cut);
        }
    }
    None
}

/// A terminal never draws one cluster wider than two cells, whatever the sum of its parts.
fn cluster_width(cluster: &str) -> usize {
    cluster.width().min(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_is_respected() {
        for text in ["项目说明文档.md", "👨‍👩‍👧👨‍👩‍👧🇩🇪🇩🇪1️⃣❤️ａｂ", "e\u{301}e\u{301}", "\u{1b}[31mred", ""]
        {
            for width in 0..40 {
                assert!(line_width(&truncate_to_width(text, width)) <= width, "{text:?} at {width}");
            }
        }
    }

    #[test]
    fn leading_zero_width_marks_do_not_panic() {
        assert_eq!(truncate_to_width("\u{301}abc", 2), "\u{301}a…");
        assert_eq!(truncate_to_width("\u{301}", 0), "");
    }
}
