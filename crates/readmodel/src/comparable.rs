//! Values of variables in a form in which equal values are equal texts.

use std::borrow::Cow;

/// Of a value, so much is in the index. Longer values are compared as a whole besides.
const PREFIX_CHARACTERS: usize = 100;
/// Whole numbers up to here are exact as numbers with a fraction.
// tidy: a property of numbers
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A value that can be compared with others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comparable<'a>(Cow<'a, str>);

impl Comparable<'_> {
    /// What stands in the index.
    pub fn prefix(&self) -> &str {
        if self.0.len() <= PREFIX_CHARACTERS {
            return &self.0;
        }
        let end = self.0.char_indices().nth(PREFIX_CHARACTERS).map_or(self.0.len(), |(end, _)| end);
        &self.0[..end]
    }

    /// Whether the index has all of it.
    pub fn is_whole(&self) -> bool {
        self.prefix().len() == self.0.len()
    }
}

/// `1`, `1.0` and `1e0` are the same number. All other values are compared as they are written.
pub(crate) fn comparable(json: &str) -> Comparable<'_> {
    // Mostly there is nothing around it.
    let is_bare = |end: Option<&u8>| end.is_some_and(u8::is_ascii_graphic);
    let trimmed = if is_bare(json.as_bytes().first()) && is_bare(json.as_bytes().last()) { json } else { json.trim() };
    let is_number = trimmed.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if !is_number || trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        return Comparable(Cow::Borrowed(trimmed));
    }
    match trimmed.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < EXACT_MAX => {
            // Without a sign before zero.
            Comparable(Cow::Owned(format!("{}", if number == 0.0 { 0.0 } else { number })))
        }
        // A whole number that is too large to be exact.
        Ok(_) if trimmed.bytes().skip(1).all(|byte| byte.is_ascii_digit()) => Comparable(Cow::Borrowed(trimmed)),
        Ok(number) if number.is_finite() => Comparable(Cow::Owned(format!("{number}"))),
        _ => Comparable(Cow::Borrowed(trimmed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_equal_texts() {
        for equal in [["1", "1.0"], ["-0.0", "0"], ["1e2", "100"], ["0.10", "0.1"], ["-5", "-5.00"]] {
            assert_eq!(comparable(equal[0]), comparable(equal[1]), "{equal:?}");
        }
        for other in [["1", "\"1\""], ["12345678901234567890", "12345678901234567891"], ["0.1", "0.11"]] {
            assert_ne!(comparable(other[0]), comparable(other[1]), "{other:?}");
        }
    }

    #[test]
    fn long_values_have_a_part_in_the_index() {
        let long = format!("\"{}\"", "ü".repeat(200));
        assert_eq!(comparable(&long).prefix().chars().count(), PREFIX_CHARACTERS);
        assert!(!comparable(&long).is_whole());
        assert!(comparable("\"short\"").is_whole());
    }
}
