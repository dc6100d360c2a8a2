//! Decimal floating point with 34 significant digits, rounded half to even: the numbers of IEEE 754
//! decimal128, which are also the numbers of the reference dialect.
//!
//! Why our own and not `fastnum`: its `D128` has a coefficient of 128 bits, so 1/3 has 38 or 39 digits and
//! rounding happens at a binary boundary, not after 34 digits; rounding its wider types to 34 digits afterwards
//! would round twice. With 34 digits every intermediate step fits two 128-bit integers, so the arithmetic is
//! small, exact in its rounding, and a value takes 16 bytes.
//!
//! A decimal remembers its trailing zeros (`1.10` has two places), because the text of a number shows them.

use std::cmp::Ordering;

/// The number of significant digits of a stored decimal.
pub(crate) const DIGITS: u32 = 34;
/// The number of digits that intermediate results carry.
const WORKING_DIGITS: u32 = 38;
const LARGEST_COEFFICIENT: u128 = POWERS[DIGITS as usize] - 1;
const SMALLEST_EXPONENT: i32 = -6176;
const LARGEST_EXPONENT: i32 = 6111;
const COEFFICIENT_BITS: u32 = 113;
const HALF: u128 = 10_000_000_000_000_000_000;

const POWERS: [u128; 39] = {
    let mut powers = [1u128; 39];
    let mut index = 1;
    while index < 39 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// A decimal of at most 34 significant digits, packed into 16 bytes: sign, exponent (14 bits), coefficient (113 bits).
#[derive(Clone, Copy)]
pub struct Decimal {
    words: [u64; 2],
}

/// A decimal taken apart. `inexact` says that digits other than zero were dropped below the coefficient.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) negative: bool,
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
    pub(crate) inexact: bool,
}

/// How a number is rounded to a number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    HalfEven,
    HalfUp,
    HalfDown,
    Up,
    Down,
    Floor,
    Ceiling,
}

fn digits_of(coefficient: u128) -> u32 {
    if coefficient == 0 { 1 } else { coefficient.ilog10() + 1 }
}

impl Parts {
    fn new(negative: bool, coefficient: u128, exponent: i32) -> Parts {
        Parts { negative, coefficient, exponent, inexact: false }
    }

    /// Rounds half to even to at most `digits` digits.
    fn round(self, digits: u32) -> Parts {
        // Mostly there is nothing to round, which is known without counting digits.
        if self.exponent >= SMALLEST_EXPONENT && self.coefficient < POWERS[digits as usize] {
            return self;
        }
        self.round_surplus(digits)
    }

    fn round_surplus(mut self, digits: u32) -> Parts {
        let mut surplus = digits_of(self.coefficient).saturating_sub(digits);
        if self.coefficient != 0 && self.exponent < SMALLEST_EXPONENT {
            let below = SMALLEST_EXPONENT.abs_diff(self.exponent);
            surplus = surplus.max(below);
        }
        if surplus == 0 {
            return self;
        }
        if surplus > WORKING_DIGITS {
            return Parts::new(self.negative, 0, SMALLEST_EXPONENT);
        }
        let power = POWERS[surplus as usize];
        let (mut quotient, rest) = (self.coefficient / power, self.coefficient % power);
        let up = match rest.cmp(&(power / 2)) {
            Ordering::Greater => true,
            Ordering::Equal => self.inexact || quotient % 2 == 1,
            Ordering::Less => false,
        };
        if up {
            quotient += 1;
        }
        self.coefficient = quotient;
        self.exponent += surplus as i32;
        self.inexact = false;
        // 99…9 rounded up has one digit more; that digit is a zero, so this rounding is exact.
        if digits_of(self.coefficient) > digits {
            self.coefficient /= 10;
            self.exponent += 1;
        }
        self
    }

    /// The stored form, `None` when the number is too large.
    fn pack(self) -> Option<Decimal> {
        let mut parts = self.round(DIGITS);
        if parts.coefficient == 0 {
            parts.exponent = parts.exponent.clamp(SMALLEST_EXPONENT, 0);
            parts.negative = false;
        }
        while parts.exponent > LARGEST_EXPONENT && parts.coefficient <= LARGEST_COEFFICIENT / 10 {
            parts.coefficient *= 10;
            parts.exponent -= 1;
        }
        if parts.exponent > LARGEST_EXPONENT {
            return None;
        }
        debug_assert!(parts.coefficient <= LARGEST_COEFFICIENT && parts.exponent >= SMALLEST_EXPONENT);
        let biased = (parts.exponent - SMALLEST_EXPONENT) as u128;
        let bits = u128::from(parts.negative) << 127 | biased << COEFFICIENT_BITS | parts.coefficient;
        Some(Decimal { words: [(bits >> 64) as u64, bits as u64] })
    }

    #[inline]
    fn add(self, other: Parts) -> Parts {
        // Whole numbers and amounts of money have no more than a few digits: all of them are kept.
        let distance = self.exponent.abs_diff(other.exponent);
        if (self.coefficient | other.coefficient) >> 64 != 0 || distance > 17 {
            return self.add_wide(other);
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let (aligned, added) = (large.coefficient * POWERS[distance as usize], small.coefficient);
        let (negative, coefficient) = if large.negative == small.negative {
            (large.negative, aligned + added)
        } else if aligned >= added {
            (large.negative && aligned != added, aligned - added)
        } else {
            (small.negative, added - aligned)
        };
        Parts { negative, coefficient, exponent: small.exponent, inexact: self.inexact || other.inexact }
    }

    /// The sum of numbers of any length.
    fn add_wide(self, other: Parts) -> Parts {
        let (mut large, mut small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if large.coefficient == 0 {
            // Zero has no digits to align; only its number of places counts, and `small` has more of them.
            return small;
        }
        let distance = large.exponent.abs_diff(small.exponent);
        // 37 digits leave room for the sum's carry and keep three digits below the last one that is stored.
        let shift = distance.min((WORKING_DIGITS - 1).saturating_sub(digits_of(large.coefficient)));
        large.coefficient *= POWERS[shift as usize];
        large.exponent -= shift as i32;
        let rest = distance - shift;
        if rest > 0 {
            let power = POWERS.get(rest as usize).copied();
            small.inexact = power.map_or(small.coefficient != 0, |power| small.coefficient % power != 0);
            small.coefficient = power.map_or(0, |power| small.coefficient / power);
            small.exponent = large.exponent;
        }
        let inexact = small.inexact || large.inexact;
        if large.negative == small.negative {
            let coefficient = large.coefficient + small.coefficient;
            return Parts { coefficient, inexact, ..large };
        }
        let borrow = u128::from(small.inexact);
        let small_up = small.coefficient + borrow;
        match large.coefficient.cmp(&small.coefficient) {
            Ordering::Equal => Parts::new(false, 0, large.exponent),
            Ordering::Greater => Parts { coefficient: large.coefficient - small_up, inexact, ..large },
            Ordering::Less => Parts {
                negative: small.negative,
                coefficient: small.coefficient - large.coefficient,
                exponent: large.exponent,
                inexact,
            },
        }
    }

    /// The product with up to 38 digits; the rest is remembered in `inexact`.
    #[inline]
    fn multiply(self, other: Parts) -> Parts {
        if (self.coefficient | other.coefficient) >> 63 != 0 {
            return self.multiply_wide(other);
        }
        Parts {
            negative: self.negative != other.negative,
            coefficient: self.coefficient * other.coefficient,
            exponent: self.exponent + other.exponent,
            inexact: self.inexact || other.inexact,
        }
    }

    /// The product of numbers of any length.
    fn multiply_wide(self, other: Parts) -> Parts {
        let (a1, a0) = (self.coefficient / HALF, self.coefficient % HALF);
        let (b1, b0) = (other.coefficient / HALF, other.coefficient % HALF);
        let lowest = a0 * b0;
        let middle = a1 * b0 + a0 * b1 + lowest / HALF;
        let low = (middle % HALF) * HALF + lowest % HALF;
        let high = a1 * b1 + middle / HALF;
        let negative = self.negative != other.negative;
        let exponent = self.exponent + other.exponent;
        let inexact = self.inexact || other.inexact;
        if high == 0 {
            return Parts { negative, coefficient: low, exponent, inexact };
        }
        let kept = digits_of(high).min(WORKING_DIGITS);
        let power = POWERS[kept as usize];
        Parts {
            negative,
            coefficient: high * POWERS[(WORKING_DIGITS - kept) as usize] + low / power,
            exponent: exponent + kept as i32,
            inexact: inexact || !low.is_multiple_of(power),
        }
    }

    fn divide(self, other: Parts) -> Parts {
        debug_assert!(other.coefficient != 0 && other.coefficient <= LARGEST_COEFFICIENT);
        let preferred = self.exponent - other.exponent;
        let mut exponent = preferred;
        let mut quotient = self.coefficient / other.coefficient;
        let mut rest = self.coefficient % other.coefficient;
        while rest != 0 && quotient < POWERS[DIGITS as usize] {
            // The rest is below 10^34, so four more digits stay below 10^38.
            let scaled = rest * 10_000;
            quotient = quotient * 10_000 + scaled / other.coefficient;
            rest = scaled % other.coefficient;
            exponent -= 4;
        }
        while rest == 0 && exponent < preferred && quotient.is_multiple_of(10) && quotient != 0 {
            quotient /= 10;
            exponent += 1;
        }
        Parts { negative: self.negative != other.negative, coefficient: quotient, exponent, inexact: rest != 0 }
    }
}

impl Decimal {
    /// The decimal of an integer.
    pub fn from_i64(value: i64) -> Decimal {
        let parts = Parts::new(value < 0, u128::from(value.unsigned_abs()), 0);
        parts.pack().expect("a 64-bit integer has fewer than 34 digits")
    }

    pub(crate) fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Option<Decimal> {
        Parts::new(negative, coefficient, exponent).pack()
    }

    pub(crate) fn parts(self) -> Parts {
        let bits = u128::from(self.words[0]) << 64 | u128::from(self.words[1]);
        let exponent = ((bits >> COEFFICIENT_BITS) & 0x3fff) as i32 + SMALLEST_EXPONENT;
        Parts::new(bits >> 127 == 1, bits & ((1 << COEFFICIENT_BITS) - 1), exponent)
    }

    /// Reads `12`, `-1.50`, `.5`, `1e3`; further digits than 34 are rounded. `None` for other text or a number out of range.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], unsigned[at + 1..].parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let mut parts = Parts::new(negative, 0, power.clamp(-100_000, 100_000));
        let (mut seen_point, mut seen_digit) = (false, false);
        for byte in mantissa.bytes() {
            match byte {
                b'0'..=b'9' => {
                    seen_digit = true;
                    let digit = u128::from(byte - b'0');
                    if parts.coefficient < POWERS[37] {
                        parts.coefficient = parts.coefficient * 10 + digit;
                        parts.exponent = parts.exponent.checked_sub(i32::from(seen_point))?;
                    } else {
                        parts.inexact |= digit != 0;
                        parts.exponent = parts.exponent.checked_add(i32::from(!seen_point))?;
                    }
                }
                b'.' if !seen_point => seen_point = true,
                _ => return None,
            }
        }
        if seen_digit { parts.pack() } else { None }
    }

    pub(crate) fn add(self, other: Decimal) -> Option<Decimal> {
        self.parts().add(other.parts()).pack()
    }

    pub(crate) fn subtract(self, other: Decimal) -> Option<Decimal> {
        self.add(other.negate())
    }

    pub(crate) fn multiply(self, other: Decimal) -> Option<Decimal> {
        self.parts().multiply(other.parts()).pack()
    }

    /// `None` for a division by zero.
    pub(crate) fn divide(self, other: Decimal) -> Option<Decimal> {
        if other.is_zero() { None } else { self.parts().divide(other.parts()).pack() }
    }

    /// A whole power, computed with 38 digits and rounded once at the end.
    pub(crate) fn power(self, exponent: i32) -> Option<Decimal> {
        let mut result = Parts::new(false, 1, 0);
        let mut base = self.parts();
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.multiply(base).round(WORKING_DIGITS);
            }
            rest >>= 1;
            if rest > 0 {
                base = base.multiply(base).round(WORKING_DIGITS);
            }
            if base.exponent.unsigned_abs() > 100_000 || result.exponent.unsigned_abs() > 100_000 {
                return if (base.exponent > 0) == (exponent > 0) { None } else { Decimal::from_parts(false, 0, 0) };
            }
        }
        if exponent < 0 {
            let whole = result.pack().filter(|value| !value.is_zero())?.parts();
            let quotient = Parts::new(false, 1, 0).divide(whole);
            let lacking = result.add(Parts { negative: !whole.negative, ..whole });
            if lacking.coefficient == 0 {
                return quotient.pack();
            }
            // The digits that `whole` lacks of the result: 1 / (w + d) is 1 / w - d / w² in all digits that count.
            let square = quotient.multiply(quotient).round(WORKING_DIGITS);
            let correction = square.multiply(lacking).round(WORKING_DIGITS);
            return quotient.add(Parts { negative: !correction.negative, ..correction }).pack();
        }
        result.pack()
    }

    pub(crate) fn negate(self) -> Decimal {
        let parts = self.parts();
        Parts { negative: !parts.negative, ..parts }.pack().expect("the sign does not change the range")
    }

    pub(crate) fn is_zero(self) -> bool {
        self.parts().coefficient == 0
    }

    pub(crate) fn is_negative(self) -> bool {
        self.parts().negative
    }

    /// Rounds to `places` digits behind the point (negative: before it). `None` when the result is out of range.
    pub(crate) fn round(self, places: i32, rounding: Rounding) -> Option<Decimal> {
        let parts = self.parts();
        let surplus = (-i64::from(places)) - i64::from(parts.exponent);
        if surplus <= 0 {
            // More places than there are digits: zeros are appended as far as 34 digits allow.
            let room = DIGITS - digits_of(parts.coefficient);
            let zeros = surplus.unsigned_abs().min(u64::from(room)) as u32;
            return Decimal::from_parts(
                parts.negative,
                parts.coefficient * POWERS[zeros as usize],
                parts.exponent - zeros as i32,
            );
        }
        let power = POWERS.get(surplus as usize).copied();
        let (quotient, rest) = match power {
            Some(power) => (parts.coefficient / power, parts.coefficient % power),
            None => (0, parts.coefficient),
        };
        let to_half = power.map_or(Ordering::Less, |power| rest.cmp(&(power / 2)));
        let up = rest != 0
            && match rounding {
                Rounding::HalfEven => to_half == Ordering::Greater || to_half == Ordering::Equal && quotient % 2 == 1,
                Rounding::HalfUp => to_half != Ordering::Less,
                Rounding::HalfDown => to_half == Ordering::Greater,
                Rounding::Up => true,
                Rounding::Down => false,
                Rounding::Floor => parts.negative,
                Rounding::Ceiling => !parts.negative,
            };
        Decimal::from_parts(parts.negative, quotient + u128::from(up), -places)
    }

    /// The value as a 64-bit integer if it is whole and fits.
    pub(crate) fn to_i64(self) -> Option<i64> {
        let parts = self.parts();
        let magnitude = if parts.exponent >= 0 {
            parts.coefficient.checked_mul(*POWERS.get(parts.exponent as usize)?)?
        } else {
            let power = *POWERS.get(parts.exponent.unsigned_abs() as usize).unwrap_or(&POWERS[38]);
            if !parts.coefficient.is_multiple_of(power) {
                return None;
            }
            parts.coefficient / power
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        i64::try_from(if parts.negative { -magnitude } else { magnitude }).ok()
    }

    pub(crate) fn is_whole(self) -> bool {
        let parts = self.parts();
        parts.exponent >= 0 || self.normalize().parts().exponent >= 0
    }

    pub(crate) fn to_f64(self) -> f64 {
        let parts = self.parts();
        let text = format!("{}{}e{}", if parts.negative { "-" } else { "" }, parts.coefficient, parts.exponent);
        text.parse().expect("a decimal's text is a valid floating point text")
    }

    /// The decimal with the shortest text that reads back as this floating point number; `None` for infinities and NaN.
    pub(crate) fn from_f64(value: f64) -> Option<Decimal> {
        if value.is_finite() { Decimal::parse(&format!("{value:e}")) } else { None }
    }

    /// Without trailing zeros behind the point.
    pub(crate) fn normalize(self) -> Decimal {
        let mut parts = self.parts();
        while parts.exponent < 0 && parts.coefficient.is_multiple_of(10) {
            parts.coefficient /= 10;
            parts.exponent += 1;
        }
        parts.pack().expect("fewer digits stay in range")
    }

    /// Appends the plain text; numbers of more than about 60 digits are written with an exponent.
    pub(crate) fn write(self, out: &mut String) {
        let parts = self.parts();
        let digits = parts.coefficient.to_string();
        if parts.negative {
            out.push('-');
        }
        let places = parts.exponent.unsigned_abs() as usize;
        if parts.exponent == 0 {
            out.push_str(&digits);
        } else if parts.exponent > 0 && places <= 30 {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', places));
        } else if parts.exponent < 0 && places < digits.len() {
            let (whole, fraction) = digits.split_at(digits.len() - places);
            out.push_str(whole);
            out.push('.');
            out.push_str(fraction);
        } else if parts.exponent < 0 && places <= 60 {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', places - digits.len()));
            out.push_str(&digits);
        } else {
            out.push_str(&digits);
            out.push('E');
            out.push_str(&parts.exponent.to_string());
        }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let (a, b) = (self.parts(), other.parts());
        let magnitudes = || match (a.coefficient, b.coefficient) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            (a_digits, b_digits) if a.exponent == b.exponent => a_digits.cmp(&b_digits),
            _ => {
                let top = |parts: &Parts| digits_of(parts.coefficient) as i32 + parts.exponent;
                top(&a).cmp(&top(&b)).then_with(|| {
                    // The same topmost digit: aligning appends at most 33 zeros.
                    let distance = POWERS[a.exponent.abs_diff(b.exponent) as usize];
                    if a.exponent >= b.exponent {
                        (a.coefficient * distance).cmp(&b.coefficient)
                    } else {
                        a.coefficient.cmp(&(b.coefficient * distance))
                    }
                })
            }
        };
        match (a.negative, b.negative) {
            (false, false) => magnitudes(),
            (true, true) => magnitudes().reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        formatter.write_str(&text)
    }
}

impl std::fmt::Debug for Decimal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a decimal"))
    }

    #[test]
    fn thirty_four_digits_half_even() {
        assert_eq!(decimal("1").divide(decimal("3")).unwrap().to_string(), "0.3333333333333333333333333333333333");
        assert_eq!(decimal("2").divide(decimal("3")).unwrap().to_string(), "0.6666666666666666666666666666666667");
        assert_eq!(decimal("0.1").add(decimal("0.2")).unwrap().to_string(), "0.3");
        assert_eq!(decimal("2").power(100).unwrap().to_string(), "1267650600228229401496703205376");
        assert_eq!(decimal("10").divide(decimal("4")).unwrap().to_string(), "2.5");
        assert_eq!(decimal("100").divide(decimal("5")).unwrap().to_string(), "20");
        assert_eq!(decimal("1.10").multiply(decimal("2")).unwrap().to_string(), "2.20");
        let nines = decimal("9999999999999999999999999999999999");
        assert_eq!(nines.add(decimal("1")).unwrap().cmp(&decimal("1e34")), Ordering::Equal);
        assert_eq!(nines.multiply(nines).unwrap().to_string(), "9999999999999999999999999999999998E34");
        assert_eq!(
            decimal("1e34").subtract(decimal("1e-30")).unwrap().to_string(),
            "10000000000000000000000000000000000"
        );
        assert_eq!(decimal("12345678901234567890123456789012345").to_string(), "12345678901234567890123456789012340");
        assert_eq!(decimal("12345678901234567890123456789012355").to_string(), "12345678901234567890123456789012360");
    }

    #[test]
    fn range_and_order() {
        assert!(decimal("9e6144").multiply(decimal("10")).is_none());
        assert!(decimal("1e-6170").multiply(decimal("1e-30")).unwrap().is_zero());
        assert!(decimal("1e-40") < decimal("1e-39") && decimal("-1e40") < decimal("1e-40"));
        assert_eq!(decimal("1.0"), decimal("1"));
        assert_eq!(decimal("-7.50").round(0, Rounding::HalfEven).unwrap().to_string(), "-8");
        assert_eq!(decimal("2.5").round(0, Rounding::HalfEven).unwrap().to_string(), "2");
        assert_eq!(decimal("1234").round(-2, Rounding::HalfUp).unwrap().to_i64(), Some(1200));
        assert_eq!(decimal("1.5").round(0, Rounding::Floor).unwrap().to_i64(), Some(1));
    }

    #[test]
    fn short_numbers_are_added_and_multiplied_as_long_ones() {
        let coefficients = [0, 1, 5, 99, 100, 12_345, 999_999_999_999, (1 << 63) - 1, 1 << 63, u128::from(u64::MAX)];
        let exponents = [-20, -17, -3, -2, 0, 1, 3, 18];
        let signs = [false, true];
        let numbers: Vec<Parts> = coefficients
            .iter()
            .flat_map(|coefficient| exponents.map(|exponent| (*coefficient, exponent)))
            .flat_map(|(coefficient, exponent)| signs.map(|negative| Parts::new(negative, coefficient, exponent)))
            .collect();
        let text = |parts: Parts| parts.pack().map(|decimal| decimal.to_string());
        for a in &numbers {
            for b in &numbers {
                assert_eq!(text(a.add(*b)), text(a.add_wide(*b)), "{a:?} + {b:?}");
                assert_eq!(text(a.multiply(*b)), text(a.multiply_wide(*b)), "{a:?} * {b:?}");
            }
        }
    }
}
