//! The texts of the fixture's files, and how Zed counts in them.

use std::sync::LazyLock;

static LATIN: LazyLock<String> = LazyLock::new(|| {
    (0..400).map(|line| format!("line {line:04}: the quick brown fox jumps over the lazy dog\n")).collect()
});

// Escapes where a character would be invisible or join its neighbours.
static MIXED: LazyLock<String> = LazyLock::new(|| {
    concat!(
        "// Эффективное управление задачами\n",
        "const emoji = '\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466} family, ",
        "\u{1d49c} math, \u{e9} precomposed, e\u{301} combining';\n",
        "const cjk = '灵感菇哈基米';\n",
        "const zwj = '\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}';\n",
        "export function target() { return emoji + cjk + zwj }\n",
    )
    .repeat(40)
});

/// 400 lines of ASCII, 55 bytes each.
pub fn latin() -> &'static str {
    &LATIN
}

/// 200 lines with characters of one to four bytes and joined emoji.
pub fn mixed() -> &'static str {
    &MIXED
}

/// The text that offsets count in: CRLF and a lone CR are LF.
pub fn normalise(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Clamps a range to the text, its start to the left and its end to the right of a split character.
pub fn clip(text: &str, start: usize, end: usize) -> (usize, usize) {
    (text.floor_char_boundary(start), text.ceil_char_boundary(end))
}

/// Line, UTF-8 column and UTF-16 column of a character boundary, all from 0.
pub(crate) fn position(text: &str, offset: usize) -> [u64; 3] {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let column = &before[before.rfind('\n').map_or(0, |newline| newline + 1)..];
    [line as u64, column.len() as u64, column.encode_utf16().count() as u64]
}

pub(crate) fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

pub(crate) fn utf16_le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// bincode 1, as the generations up to 2025a keep lists of paths.
pub(crate) fn bincode_strings(strings: &[&str]) -> Vec<u8> {
    let mut blob = (strings.len() as u64).to_le_bytes().to_vec();
    for string in strings {
        blob.extend((string.len() as u64).to_le_bytes());
        blob.extend(string.as_bytes());
    }
    blob
}

pub(crate) fn bincode_numbers(numbers: &[usize]) -> Vec<u8> {
    let count = std::iter::once(numbers.len());
    count.chain(numbers.iter().copied()).flat_map(|number| (number as u64).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_sizes_that_scenarios_count_on() {
        assert_eq!(latin().len(), 22_000);
        assert_eq!(mixed().len(), 10_960);
    }

    #[test]
    fn normalise_knows_all_line_ends() {
        assert_eq!(normalise("a\r\nb\rc\nd\r\r\n"), "a\nb\nc\nd\n\n");
    }

    #[test]
    fn clip_keeps_whole_characters() {
        assert_eq!(clip("ééé\n", 1, 3), (0, 4));
        assert_eq!(clip("short\n", 4000, 4010), (6, 6));
    }

    #[test]
    fn position_counts_in_both_units() {
        let text = "a\n\u{1d49c}é!";
        assert_eq!(position(text, text.len()), [1, 7, 4]);
        assert_eq!(position(text, 2), [1, 0, 0]);
    }

    #[test]
    fn bincode_is_little_endian_with_counts_first() {
        assert_eq!(bincode_strings(&["ab"]), [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(bincode_numbers(&[3]), [1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    }
}
