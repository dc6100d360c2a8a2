//! One spelling for each value, and one text for all values that are equal.

use std::borrow::Cow;

use super::reader::{Reader, plain_bytes, unescape};
use super::write_string;

/// Whole numbers with more digits are compared with an exponent.
const WHOLE_DIGITS_MAX: i64 = 20;

/// A JSON document in the spelling in which variables are kept, and which the reference engine writes: without spaces, without
/// escapes that need not be, and `1e0` as `1.0`. Names keep their order, and numbers all their digits. `None` if the text is no
/// JSON document.
pub fn canonical(text: &str) -> Option<Cow<'_, str>> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    let value = reader.canonical_value().ok()?;
    reader.end().is_ok().then_some(value)
}

/// A text that is the same for all values that are equal: `1`, `1.0` and `10e-1` are the same number. The value is JSON in the
/// spelling of [`canonical`].
pub fn comparable(value: &str) -> Cow<'_, str> {
    match value.as_bytes().first() {
        Some(b'{' | b'[' | b'-' | b'0'..=b'9') if !is_short_whole(value.as_bytes()) => {
            Cow::Owned(rewritten(value, write_comparable_number))
        }
        _ => Cow::Borrowed(value),
    }
}

/// The canonical spelling of a value that is valid.
pub(super) fn respelled(value: &str) -> String {
    rewritten(value, write_number)
}

/// Whether a number with a fraction or an exponent, which is valid, is certainly written as it is kept.
pub(super) fn is_canonical_fraction(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let Some(point) = digits.iter().position(|byte| !byte.is_ascii_digit()) else { return false };
    let (whole, fraction) = (&digits[..point], &digits[point + 1..]);
    let has_exponent = digits[point] != b'.' || !fraction.iter().all(u8::is_ascii_digit);
    let is_minimal = fraction == b"0" || fraction.last() != Some(&b'0');
    // From a thousandth on, and below ten millions.
    !has_exponent && is_minimal && whole.len() <= 7 && (whole != b"0" || !fraction.starts_with(b"000"))
}

/// Walks over a valid value without recursion. It gets rid of spaces and escapes, and has `number` write numbers.
fn rewritten(value: &str, number: fn(&str, &mut String)) -> String {
    let bytes = value.as_bytes();
    let mut out = String::with_capacity(value.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => {
                let end = behind_string(bytes, at);
                match value[at..end].contains('\\') {
                    true => write_string(&unescape(&value[at + 1..end - 1]), &mut out),
                    false => out.push_str(&value[at..end]),
                }
                end
            }
            b'-' | b'0'..=b'9' => {
                let is_of_it = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(|byte| is_of_it(byte)).count();
                number(&value[at..end], &mut out);
                end
            }
            b' ' | b'\t' | b'\n' | b'\r' => at + 1,
            other => {
                out.push(char::from(*other));
                at + 1
            }
        };
        at = end;
    }
    out
}

/// Where the string ends whose quote is here.
fn behind_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at += plain_bytes(&bytes[at.min(bytes.len())..]);
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at + 1,
            // Of a valid value, nothing else.
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
}

fn is_short_whole(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    digits.len() as i64 <= WHOLE_DIGITS_MAX && digits.iter().all(u8::is_ascii_digit) && number != b"-0"
}

/// A number as its digits, without zeros at both ends, and where the point is: 0.digits × 10^exponent.
struct Parts {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Parts {
    /// `None` for an exponent that nobody needs.
    fn of(number: &str) -> Option<Parts> {
        let (is_negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let exponent: i64 = exponent.parse::<i32>().ok()?.into();
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let significant = all.trim_start_matches('0');
        let point = whole.len() as i64 - (all.len() - significant.len()) as i64;
        let digits = significant.trim_end_matches('0').to_owned();
        Some(Parts { is_negative, digits, exponent: point + exponent })
    }

    fn is_whole(&self) -> bool {
        self.digits.len() as i64 <= self.exponent
    }

    fn zeros(count: i64, out: &mut String) {
        out.extend((0..count).map(|_| '0'));
    }

    /// As a number with a fraction.
    fn write(&self, out: &mut String) {
        if self.is_negative {
            out.push('-');
        }
        let (digits, exponent) = (&*self.digits, self.exponent);
        match exponent {
            _ if digits.is_empty() => out.push_str("0.0"),
            -2..=0 => {
                out.push_str("0.");
                Self::zeros(-exponent, out);
                out.push_str(digits);
            }
            1..=7 if self.is_whole() => {
                self.write_whole(out);
                out.push_str(".0");
            }
            1..=7 => {
                let (whole, fraction) = digits.split_at(usize::try_from(exponent).unwrap_or_default());
                out.extend([whole, ".", fraction]);
            }
            _ => {
                let (first, others) = digits.split_at(1);
                let others = if others.is_empty() { "0" } else { others };
                out.extend([first, ".", others, "E", &(exponent - 1).to_string()]);
            }
        }
    }

    /// As a whole number, which it is, without its sign.
    fn write_whole(&self, out: &mut String) {
        out.push_str(&self.digits);
        Self::zeros(self.exponent - self.digits.len() as i64, out);
    }
}

fn write_number(number: &str, out: &mut String) {
    let is_whole = !number.contains(['.', 'e', 'E']);
    match Parts::of(number) {
        _ if is_whole => out.push_str(if number == "-0" { "0" } else { number }),
        Some(parts) => parts.write(out),
        None => out.push_str(number),
    }
}

fn write_comparable_number(number: &str, out: &mut String) {
    if is_short_whole(number.as_bytes()) {
        return out.push_str(number);
    }
    match Parts::of(number) {
        Some(parts) if parts.digits.is_empty() => out.push('0'),
        Some(parts) if parts.is_whole() && parts.exponent <= WHOLE_DIGITS_MAX => {
            if parts.is_negative {
                out.push('-');
            }
            parts.write_whole(out);
        }
        Some(parts) => parts.write(out),
        None => out.push_str(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the reference engine 8.8 shows, but for what it cannot hold in a double, or escapes without need.
    #[test]
    fn values_are_spelled_as_the_reference_spells_them() {
        for (given, kept) in [
            (r#""Z\u00fcrich""#, r#""Zürich""#),
            (r#"{"id": 7, "lines": [1, 2]}"#, r#"{"id":7,"lines":[1,2]}"#),
            ("1.0", "1.0"),
            ("1e0", "1.0"),
            ("1E2", "100.0"),
            ("100", "100"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("0e5", "0.0"),
            ("0.10", "0.1"),
            ("1e-7", "1.0E-7"),
            ("0.001", "0.001"),
            ("0.0001", "1.0E-4"),
            ("12345678.9", "1.23456789E7"),
            ("1234567.5", "1234567.5"),
            ("1e7", "1.0E7"),
            ("1e6", "1000000.0"),
            ("2e-3", "0.002"),
            ("1e22", "1.0E22"),
            ("-123456789.125", "-1.23456789125E8"),
            ("18446744073709551615", "18446744073709551615"),
            (r#"{"b":1,"a":2,"b":3}"#, r#"{"b":1,"a":2,"b":3}"#),
            (r#""\/ \" \\ \b \f \n \r \t \u0001 \u2028 é""#, "\"/ \\\" \\\\ \\b \\f \\n \\r \\t \\u0001 \u{2028} é\""),
            (r#""\ud83d\ude00""#, "\"😀\""),
            (" [ ] ", "[]"),
            ("{\n}", "{}"),
            (r#"[1.0, 2.50, 1e3, true , null,"x y" ]"#, r#"[1.0,2.5,1000.0,true,null,"x y"]"#),
            (r#"{"k\u00fc" : "a b" }"#, r#"{"kü":"a b"}"#),
            // With all digits, which the reference cuts.
            ("0.1234567890123456789", "0.1234567890123456789"),
            ("1e99999999999", "1e99999999999"),
        ] {
            let canonical = super::canonical(given).unwrap_or_else(|| panic!("{given} is JSON"));
            assert_eq!(canonical, kept, "{given}");
            assert_eq!(super::canonical(kept).as_deref(), Some(kept), "it stays");
        }
        for broken in ["", "Zürich", "1 2", "{", r#""\x""#, "01"] {
            assert_eq!(super::canonical(broken), None, "{broken}");
        }
    }

    #[test]
    fn what_is_spelled_well_is_not_copied() {
        for kept in [r#""Zürich""#, r#"{"a":[1,-2,0.5,12.25,"x y",true,null]}"#, "7", "-0.0", "1.0", "{}"] {
            assert!(matches!(super::canonical(kept), Some(Cow::Borrowed(_))), "{kept}");
        }
    }

    #[test]
    fn equal_values_are_equal_texts() {
        let equal = |one: &str, other: &str| {
            let of = |text| comparable(&super::canonical(text).expect("JSON")).into_owned();
            of(one) == of(other)
        };
        for (one, other) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("1", "10E-1"),
            ("-0.0", "0"),
            ("100", "1e2"),
            ("0.10", "0.1"),
            ("-5", "-5.00"),
            ("1e30", "1000000000000000000000000000000"),
            ("12345678.9", "1.23456789e7"),
            ("[1.0,{\"a\":2}]", "[1, {\"a\": 2.0}]"),
            (r#""\u0041""#, r#""A""#),
        ] {
            assert!(equal(one, other), "{one} is {other}");
        }
        for (one, other) in [
            ("1", "\"1\""),
            ("12345678901234567890", "12345678901234567891"),
            ("0.1", "0.11"),
            ("0.12345678901234567890", "0.12345678901234567891"),
            ("1", "-1"),
            ("[1,2]", "[12]"),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            ("\"1.0\"", "\"1\""),
        ] {
            assert!(!equal(one, other), "{one} is not {other}");
        }
    }
}
