//! Values of variables in a form in which equal values are equal texts.

use std::borrow::Cow;
use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Of a longer text, so much is in the index, and a digest of all of it.
const BEGINNING_CHARACTERS: usize = 100;
/// Of the digest: too many for two values to have the same.
const DIGEST_BYTES: usize = 16;

/// What the index has for a value as records have it.
pub(crate) fn of_kept(value: &str) -> Cow<'_, str> {
    match feel::json::comparable(value) {
        Cow::Borrowed(text) => shortened(text),
        Cow::Owned(text) => Cow::Owned(shortened(&text).into_owned()),
    }
}

/// The same for a value as somebody spells it who asks for it. What is no JSON is no value of a variable.
pub(crate) fn of_asked(value: &str) -> String {
    let canonical = feel::json::canonical(value).unwrap_or(Cow::Borrowed(value));
    of_kept(&canonical).into_owned()
}

fn shortened(text: &str) -> Cow<'_, str> {
    let end = if text.len() <= BEGINNING_CHARACTERS { None } else { text.char_indices().nth(BEGINNING_CHARACTERS) };
    let Some((end, _)) = end else { return Cow::Borrowed(text) };
    let mut short = format!("{}#", &text[..end]);
    for byte in &Sha256::digest(text)[..DIGEST_BYTES] {
        write!(short, "{byte:02x}").expect("writing to a string cannot fail");
    }
    Cow::Owned(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_any_spelling_of_it() {
        let long = format!("{}\u{fc}", "x".repeat(300));
        for (kept, asked) in [
            ("\"Zürich\"".to_owned(), r#" "Z\u00fcrich""#.to_owned()),
            ("1.0".to_owned(), "1".to_owned()),
            (r#"{"id":7,"lines":[1,2]}"#.to_owned(), "{\"id\": 7.0,\n \"lines\": [1, 2e0]}".to_owned()),
            (format!("[\"{long}\",1.0]"), format!("[ \"{}\\u00fc\", 1 ]", "x".repeat(300))),
        ] {
            assert_eq!(of_kept(&kept), of_asked(&asked), "{asked}");
        }
        assert_ne!(of_kept(&format!("\"{long}\"")), of_asked(&format!("\"{long}y\"")));
        assert_ne!(of_kept("1"), of_asked("one"));
    }

    #[test]
    fn long_values_take_little_room_in_the_index() {
        let long = format!("\"{}\"", "ü".repeat(1_000));
        let kept = of_kept(&long);
        assert!(kept.starts_with("\"ü") && kept.chars().count() == BEGINNING_CHARACTERS + 1 + 2 * DIGEST_BYTES);
        assert_eq!(of_kept("\"short\""), "\"short\"");
    }
}
