//! FEEL numbers: a 64-bit integer as long as that is exact, else a decimal of 34 digits.

use std::cmp::Ordering;

use crate::decimal::{Decimal, Rounding};

/// A number. Whole numbers without fraction digits are integers as long as they fit; arithmetic on integers is
/// checked and falls back to decimals.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A whole number.
    Integer(i64),
    /// Any other number, or a whole number with a decimal text like `1.0`.
    Decimal(Decimal),
}

impl Number {
    fn decimal(self) -> Decimal {
        match self {
            Number::Integer(value) => Decimal::from_i64(value),
            Number::Decimal(value) => value,
        }
    }

    #[inline(never)]
    fn compare_decimals(self, other: Number) -> Ordering {
        self.decimal().cmp(&other.decimal())
    }

    /// Whole decimals without places that fit become integers, so that further arithmetic is fast.
    fn from_decimal(value: Decimal) -> Number {
        if value.parts().exponent == 0
            && let Some(integer) = value.to_i64()
        {
            return Number::Integer(integer);
        }
        Number::Decimal(value)
    }

    /// Reads a decimal text such as `12`, `-1.50` or `1e3`.
    #[inline]
    pub fn parse(text: &str) -> Option<Number> {
        let bytes = text.as_bytes();
        let (digits, negative) = match bytes.first()? {
            b'-' => (&bytes[1..], true),
            _ => (bytes, false),
        };
        if !digits.is_empty() && digits.len() <= 18 {
            let mut magnitude = 0i64;
            let whole = digits.iter().all(|byte| {
                let digit = byte.wrapping_sub(b'0');
                // What is no digit ends the loop: 18 of them fit.
                magnitude = magnitude * 10 + i64::from(digit.min(9));
                digit <= 9
            });
            if whole {
                return Some(Number::Integer(if negative { -magnitude } else { magnitude }));
            }
        }
        Number::parse_decimal(text)
    }

    #[inline(never)]
    fn parse_decimal(text: &str) -> Option<Number> {
        Decimal::parse(text).map(Number::from_decimal)
    }

    /// The sum; `None` when the result is out of the range of numbers.
    #[inline]
    pub fn plus(self, other: Number) -> Option<Number> {
        if let (Number::Integer(a), Number::Integer(b)) = (self, other)
            && let Some(sum) = a.checked_add(b)
        {
            return Some(Number::Integer(sum));
        }
        self.decimal().add(other.decimal()).map(Number::from_decimal)
    }

    /// The difference; `None` when the result is out of the range of numbers.
    #[inline]
    pub fn minus(self, other: Number) -> Option<Number> {
        if let (Number::Integer(a), Number::Integer(b)) = (self, other)
            && let Some(difference) = a.checked_sub(b)
        {
            return Some(Number::Integer(difference));
        }
        self.decimal().subtract(other.decimal()).map(Number::from_decimal)
    }

    /// The product; `None` when the result is out of the range of numbers.
    #[inline]
    pub fn multiply(self, other: Number) -> Option<Number> {
        if let (Number::Integer(a), Number::Integer(b)) = (self, other)
            && let Some(product) = a.checked_mul(b)
        {
            return Some(Number::Integer(product));
        }
        self.decimal().multiply(other.decimal()).map(Number::from_decimal)
    }

    /// The quotient; `None` for a division by zero or a result out of range.
    pub fn divide(self, other: Number) -> Option<Number> {
        if let (Number::Integer(a), Number::Integer(b)) = (self, other)
            && b != 0
            && a.checked_rem(b) == Some(0)
        {
            return Some(Number::Integer(a / b));
        }
        self.decimal().divide(other.decimal()).map(Number::from_decimal)
    }

    /// The power. Whole exponents are computed in decimals, others in double precision.
    pub fn power(self, exponent: Number) -> Option<Number> {
        let Some(whole) = exponent.to_i64() else {
            return Number::from_f64(libm::pow(self.to_f64(), exponent.to_f64()));
        };
        let whole = i32::try_from(whole).ok().filter(|whole| whole.unsigned_abs() <= 999_999_999)?;
        self.decimal().power(whole).map(Number::from_decimal)
    }

    /// The remainder with the sign of the divisor; `None` for a division by zero.
    pub fn modulo(self, divisor: Number) -> Option<Number> {
        if let (Number::Integer(a), Number::Integer(b)) = (self, divisor)
            && let Some(rest) = a.checked_rem(b)
        {
            let adjust = rest != 0 && (rest < 0) != (b < 0);
            return Some(Number::Integer(if adjust { rest + b } else { rest }));
        }
        let quotient = self.divide(divisor)?.round(0, Rounding::Floor)?;
        self.minus(divisor.multiply(quotient)?)
    }

    pub(crate) fn round(self, places: i32, rounding: Rounding) -> Option<Number> {
        match self {
            Number::Integer(_) if places == 0 => Some(self),
            _ => self.decimal().round(places, rounding).map(|value| {
                // Rounding before the point leaves a positive exponent; as a number of everyday size it is an integer.
                value.to_i64().filter(|_| places <= 0).map_or(Number::Decimal(value), Number::Integer)
            }),
        }
    }

    /// The number with the opposite sign.
    pub fn negate(self) -> Number {
        match self {
            Number::Integer(value) => match value.checked_neg() {
                Some(negated) => Number::Integer(negated),
                None => Number::Decimal(Decimal::from_i64(value).negate()),
            },
            Number::Decimal(value) => Number::Decimal(value.negate()),
        }
    }

    /// Whether the number is below zero.
    pub fn is_negative(self) -> bool {
        match self {
            Number::Integer(value) => value < 0,
            Number::Decimal(value) => value.is_negative(),
        }
    }

    /// Whether the number has no fraction.
    pub fn is_whole(self) -> bool {
        match self {
            Number::Integer(_) => true,
            Number::Decimal(value) => value.is_whole(),
        }
    }

    /// The value as a 64-bit integer if it is whole and fits.
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Number::Integer(value) => Some(value),
            Number::Decimal(value) => value.to_i64(),
        }
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Decimal(value) => value.to_f64(),
        }
    }

    /// The number with the shortest text that reads back as this double; `None` for infinities and NaN.
    pub fn from_f64(value: f64) -> Option<Number> {
        Decimal::from_f64(value).map(|value| Number::from_decimal(value.normalize()))
    }

    /// Appends the text with the places the number has (`1.10`).
    pub(crate) fn write(self, out: &mut String) {
        use std::fmt::Write;
        match self {
            Number::Integer(value) => write!(out, "{value}").expect("writing to a string cannot fail"),
            Number::Decimal(value) => value.write(out),
        }
    }

    /// Appends the text without trailing zeros (`1.1`).
    pub(crate) fn write_json(self, out: &mut String) {
        match self {
            Number::Integer(_) => self.write(out),
            Number::Decimal(value) => value.normalize().write(out),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Integer(value)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    #[inline]
    fn cmp(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(b),
            _ => self.compare_decimals(*other),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        formatter.write_str(&text)
    }
}
