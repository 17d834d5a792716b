//! Reading what real editors send: text that may hold half a surrogate pair, numbers that may be fractions.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A string whose lone surrogates (an editor may cut a pair in two) have become U+FFFD instead of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(pub String);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes, since serde_json then hands over lone surrogates instead of refusing the whole message.
        deserializer.deserialize_bytes(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(replace_surrogates(bytes))
    }
}

/// WTF-8 to UTF-8: each lone surrogate (`ED A0..BF xx`) becomes one U+FFFD.
fn replace_surrogates(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(tail) => {
                out.push_str(tail);
                return out;
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                out.push_str(&String::from_utf8_lossy(good));
                out.push(char::REPLACEMENT_CHARACTER);
                let is_surrogate = matches!(bad, [0xED, 0xA0..=0xBF, _, ..]);
                let skip = if is_surrogate { 3 } else { error.error_len().unwrap_or(bad.len()) };
                rest = &bad[skip..];
            }
        }
    }
}

/// A line or character: any number >= 0, cut to a whole one and to `u32`.
pub(crate) fn index<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number < 0.0 {
        return Err(de::Error::custom("a line or character must not be negative"));
    }
    // Saturates; JSON has no NaN.
    Ok(number as u32)
}

/// An optional member that may be absent but not `null`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_one_replacement_each() {
        let text: Text = serde_json::from_str(r#""a\ud83db\ude00\ud83d\ude00""#).unwrap();
        assert_eq!(text.0, "a\u{fffd}b\u{fffd}😀");
    }

    #[test]
    fn other_types_are_refused() {
        for json in ["1", "null", "[97]", "{}"] {
            assert!(serde_json::from_str::<Text>(json).is_err(), "{json}");
        }
    }
}
