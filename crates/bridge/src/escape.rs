//! Making text from files and editors harmless to show: on a terminal, in a mention, in a prompt.
//!
//! A leaf: pure functions over strings. Names keep every visible character; what could hide, reorder or break a
//! line becomes `\u{hex}` (lower case, no padding).

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes what a terminal or a one-line block must not receive: control characters, line and paragraph
/// separators, bidirectional controls. Joiners and variation selectors stay.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Like [`escape_controls`], and also escapes zero-width format characters, which would let two different names
/// look the same. The joiners U+200C and U+200D stay, since names in several scripts need them.
pub fn escape_name(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_control(c) || is_zero_width_format(c))
}

/// Puts a name in a Markdown code span that its own backticks cannot end.
pub fn code_span(name: &str) -> String {
    let name = escape_name(name);
    let fence = "`".repeat(longest_backtick_run(&name) + 1);
    let touches_fence = name.starts_with('`') || name.ends_with('`');
    let would_be_stripped = name.starts_with(' ') && name.ends_with(' ');
    let pad = if touches_fence || would_be_stripped { " " } else { "" };
    format!("{fence}{pad}{name}{pad}{fence}")
}

fn escape(text: &str, needs_escape: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if needs_escape(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn is_control(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_zero_width_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_borrowed() {
        assert!(matches!(escape_name("src/项目🎉.ts"), Cow::Borrowed(_)));
    }

    #[test]
    fn controls_bidi_and_zero_width_are_escaped() {
        assert_eq!(escape_name("a\nb\u{202e}c\u{200b}d"), "a\\u{a}b\\u{202e}c\\u{200b}d");
        assert_eq!(escape_controls("a\u{200b}b"), "a\u{200b}b");
        assert_eq!(escape_name("क्\u{200d}ष"), "क्\u{200d}ष");
    }

    #[test]
    fn code_spans_cannot_be_left() {
        assert_eq!(code_span("a.ts"), "`a.ts`");
        assert_eq!(code_span("a`b"), "``a`b``");
        assert_eq!(code_span("`a"), "`` `a ``");
        assert_eq!(code_span(" a "), "`  a  `");
        assert_eq!(code_span(" a"), "` a`");
    }
}
