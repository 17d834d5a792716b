//! The text of a buffer as Zed holds it, from the bytes of its file: decoded, without byte order mark, lines ending
//! with line feeds. Pure.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes that tell UTF-16 without a mark: looked at up to here.
const SAMPLE: usize = 1024;

/// A file whose bytes are no text in any encoding that Zed opens.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is no text")]
pub struct NotText;

/// The decoded text of a file, and whether it began with a UTF-8 byte order mark.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// Text without the mark, with every `\r\n` and every lone `\r` as `\n`.
    pub text: Cow<'a, str>,
    /// Whether a UTF-8 mark stood before it, which older versions of Zed kept in the buffer.
    pub had_utf8_mark: bool,
}

/// Decodes as Zed does: by a byte order mark, as UTF-8, by zero bytes as UTF-16, else by a guess.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, NotText> {
    let (text, had_utf8_mark) = match Encoding::for_bom(bytes) {
        Some((encoding, mark)) => (decode_as(encoding, &bytes[mark..])?, encoding == UTF_8),
        None => match simple(bytes) {
            Some(text) => (Cow::Borrowed(text), false),
            None => (decode_as(guess(bytes)?, bytes)?, false),
        },
    };
    Ok(Decoded { text: with_line_feeds(text), had_utf8_mark })
}

/// UTF-8 without anything that could as well mean something else: an escape may switch characters, a zero is no text.
fn simple(bytes: &[u8]) -> Option<&str> {
    let is_plain = !bytes.iter().any(|byte| matches!(byte, 0 | 0x1b));
    std::str::from_utf8(bytes).ok().filter(|_| is_plain)
}

fn guess(bytes: &[u8]) -> Result<&'static Encoding, NotText> {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    if let Some(encoding) = by_zero_bytes(sample) {
        return Ok(encoding);
    }
    if sample.contains(&0) {
        return Err(NotText);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    Ok(detector.guess(None, Utf8Detection::Allow))
}

/// Mostly zeros on one side of each pair are the high halves of Latin letters.
fn by_zero_bytes(sample: &[u8]) -> Option<&'static Encoding> {
    let pairs = sample.len() / 2;
    let zeros = |side: usize| sample.iter().skip(side).step_by(2).filter(|byte| **byte == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    if pairs == 0 || first.max(second) * 2 < pairs || first.min(second) * 10 > pairs {
        None
    } else if second > first {
        Some(UTF_16LE)
    } else {
        Some(UTF_16BE)
    }
}

fn decode_as<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> Result<Cow<'a, str>, NotText> {
    encoding.decode_without_bom_handling_and_without_replacement(bytes).ok_or(NotText)
}

/// Every `\r\n` and every lone `\r` becomes `\n`; nothing else ends a line.
fn with_line_feeds(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.as_bytes().contains(&b'\r') {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('\r');
    out.extend(parts.next());
    for part in parts {
        out.push('\n');
        out.push_str(part.strip_prefix('\n').unwrap_or(part));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        decode(bytes).unwrap().text.into_owned()
    }

    #[test]
    fn line_ends_become_line_feeds() {
        for (disk, buffer) in
            [("", ""), ("a\r\nb\rc\n", "a\nb\nc\n"), ("\r\r\n\r", "\n\n\n"), ("a\u{2028}b", "a\u{2028}b")]
        {
            assert_eq!(text(disk.as_bytes()), buffer, "{disk:?}");
        }
    }

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(text("\u{feff}é".as_bytes()), "é");
        assert!(decode("\u{feff}é".as_bytes()).unwrap().had_utf8_mark);
        let utf16 = |text: &str, order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
        let plain = "plain text without a mark, é and 灵\r\n";
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(text(&utf16(plain, order)), plain.replace('\r', ""));
            assert_eq!(text(&utf16("\u{feff}灵感", order)), "灵感");
        }
        let (latin, _, _) = encoding_rs::WINDOWS_1252.encode("Größe und Maß, café, naïve Änderung für später");
        assert!(text(&latin).contains("Größe und Maß"));
        let (japanese, _, _) = encoding_rs::SHIFT_JIS.encode("日本語のテキストファイルです。これはテストです。");
        assert!(text(&japanese).contains("日本語"));
        let (switched, _, _) = encoding_rs::ISO_2022_JP.encode("これはテストです");
        assert_eq!(text(&switched), "これはテストです");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert_eq!(decode(b"\x7fELF\0\0\x01\0garbage\0\xff\0\0\0"), Err(NotText));
        assert_eq!(decode(b"\xff\xfea"), Err(NotText), "half a unit");
    }
}
