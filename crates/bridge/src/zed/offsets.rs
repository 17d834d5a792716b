//! Zed's selection offsets, UTF-8 bytes of the buffer text, as lines and characters. Pure.

use std::ops::Range;

use crate::protocol::lenient::Text;
use crate::protocol::snapshot::{self, Position, Selection};

/// `start` and `end` of one selection as Zed stores them: byte offsets into the buffer text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// First byte.
    pub start: i64,
    /// Byte after the last one.
    pub end: i64,
}

/// The ranges of all selections of one text, in their order; carets and what lies beyond the text give none.
///
/// Reversed offsets are swapped, offsets beyond the end are clamped, and an offset inside a character moves outward to
/// its border. One pass over the bytes, however many selections there are.
pub fn ranges(text: &str, selections: &[Offsets]) -> Vec<snapshot::Range> {
    let spans: Vec<_> = selections.iter().filter_map(|offsets| offsets.span(text)).collect();
    let mut borders: Vec<usize> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
    borders.sort_unstable();
    borders.dedup();
    let positions = positions(text.as_bytes(), &borders);
    let at = |offset| borders.binary_search(&offset).map_or(Position { line: 0, character: 0 }, |n| positions[n]);
    let range = |span: &Range<usize>| snapshot::Range {
        text: Text(text[span.clone()].to_owned()),
        selection: Selection { start: at(span.start), end: at(span.end) },
    };
    spans.iter().map(range).collect()
}

impl Offsets {
    /// The bytes of the selected characters; `None` for a caret or where nothing is left.
    fn span(self, text: &str) -> Option<Range<usize>> {
        if self.start == self.end {
            return None;
        }
        let clamped = |offset: i64| usize::try_from(offset).unwrap_or(0).min(text.len());
        let (mut start, mut end) = (clamped(self.start.min(self.end)), clamped(self.start.max(self.end)));
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        (start < end).then_some(start..end)
    }

    /// Whether both ends lie between characters of the text.
    pub(super) fn fits(self, text: &str) -> bool {
        [self.start, self.end].iter().all(|offset| usize::try_from(*offset).is_ok_and(|at| text.is_char_boundary(at)))
    }
}

/// The position of each of the ascending offsets, which lie at borders of characters.
fn positions(text: &[u8], offsets: &[usize]) -> Vec<Position> {
    let (mut line, mut character, mut passed) = (0, 0, 0);
    let mut position = |offset: usize| {
        let between = &text[passed..offset];
        passed = offset;
        match between.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => {
                line += 1 + count(&between[..last], |byte| byte == b'\n');
                character = utf16_len(&between[last + 1..]);
            }
            None => character += utf16_len(between),
        }
        Position { line, character }
    };
    offsets.iter().map(|offset| position(*offset)).collect()
}

/// UTF-16 units of UTF-8 bytes: one per character, and one more for each of four bytes.
fn utf16_len(bytes: &[u8]) -> u32 {
    count(bytes, |byte| byte & 0xc0 != 0x80) + count(bytes, |byte| byte >= 0xf0)
}

/// Counted in short runs, which the compiler turns into vector code.
fn count(bytes: &[u8], counts: impl Fn(u8) -> bool) -> u32 {
    let run = |run: &[u8]| u32::from(run.iter().map(|byte| u8::from(counts(*byte))).sum::<u8>());
    bytes.chunks(usize::from(u8::MAX)).map(run).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_and_any_offsets_give_what_a_walk_gives(
            text in "[a-c\u{e9}\u{20ac}\u{1f389}\n]{0,40}",
            pairs in proptest::collection::vec((-3_i64..160, -3_i64..160), 0..6),
        ) {
            let selections: Vec<_> = pairs.into_iter().map(|(start, end)| Offsets { start, end }).collect();
            let expected: Vec<_> = selections.iter().filter_map(|one| walked(&text, *one)).collect();
            prop_assert_eq!(ranges(&text, &selections), expected);
        }
    }

    /// Character by character, as the rule is told.
    fn walked(text: &str, Offsets { start, end }: Offsets) -> Option<snapshot::Range> {
        let (low, high) = (start.min(end), start.max(end));
        let (mut at, mut here) = (0_i64, Position { line: 0, character: 0 });
        let (mut picked, mut first) = (String::new(), None);
        let mut last = here;
        for c in text.chars() {
            let next = at + c.len_utf8() as i64;
            let inside = low < high && next > low && at < high;
            if inside {
                first.get_or_insert(here);
                picked.push(c);
            }
            here = if c == '\n' {
                Position { line: here.line + 1, character: 0 }
            } else {
                Position { line: here.line, character: here.character + c.len_utf16() as u32 }
            };
            if inside {
                last = here;
            }
            at = next;
        }
        Some(snapshot::Range { text: Text(picked), selection: Selection { start: first?, end: last } })
    }

    #[test]
    fn long_runs_are_counted_whole() {
        let text = format!("{}\n{}x", "ab\n".repeat(1000), "\u{1f389}".repeat(700));
        let end = text.len() as i64;
        let found = ranges(&text, &[Offsets { start: end - 1, end }]);
        assert_eq!(found[0].selection.start, Position { line: 1001, character: 1400 });
    }
}
