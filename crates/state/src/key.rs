//! Keys and their order-preserving encoding.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::CorruptionError;

/// An encoded key; almost every key fits without an allocation.
pub type SmallKey = SmallVec<[u8; 36]>;

/// The longest encoded key in bytes that the file accepts, without the table's own prefix.
///
/// A write under a longer key is refused (see [`crate::StoreError::KeyTooLong`]), so names that become keys must be
/// limited where they enter the system.
pub const LONGEST_KEY_BYTES: usize = 1_900;

/// A key of a table.
///
/// Invariants that every implementation keeps, and that the property tests check for those in this crate:
/// - the order of the encoded bytes equals `Ord`;
/// - no encoded key is a proper prefix of another one of the same type, so that tuples stay ordered.
pub trait TableKey: Ord + Clone + Debug + Send + Sync + 'static {
    /// The length of every encoded key of this type, or `None` if the length depends on the key.
    const ENCODED_BYTES: Option<usize>;

    /// Appends the encoded key.
    fn encode(&self, out: &mut SmallKey);

    /// Takes one key off the front of `bytes`.
    fn decode(bytes: &mut &[u8]) -> Result<Self, CorruptionError>;

    /// The key that no other key is below.
    fn least() -> Self;

    /// The length of the longest encoded key when each text in it takes at most this many bytes, without its end.
    fn longest_bytes(text_bytes: usize) -> usize;
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], CorruptionError> {
    match bytes.split_at_checked(count) {
        Some((front, rest)) => {
            *bytes = rest;
            Ok(front)
        }
        None => Err(CorruptionError::new(format!("a key needs {count} more bytes and only {} are left", bytes.len()))),
    }
}

macro_rules! unsigned_key {
    ($($integer:ty),*) => {$(
        impl TableKey for $integer {
            const ENCODED_BYTES: Option<usize> = Some(size_of::<$integer>());

            fn encode(&self, out: &mut SmallKey) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, CorruptionError> {
                let front = take(bytes, size_of::<$integer>())?;
                Ok(Self::from_be_bytes(front.try_into().expect("the length was just taken")))
            }

            fn least() -> Self {
                0
            }

            fn longest_bytes(_: usize) -> usize {
                size_of::<Self>()
            }
        }
    )*};
}

unsigned_key!(u8, u16, u32, u64, u128);

/// Signed integers are stored with the sign bit flipped, which puts negative numbers below positive ones.
macro_rules! signed_key {
    ($($integer:ty as $unsigned:ty),*) => {$(
        impl TableKey for $integer {
            const ENCODED_BYTES: Option<usize> = Some(size_of::<$integer>());

            fn encode(&self, out: &mut SmallKey) {
                ((*self as $unsigned) ^ (1 << (<$unsigned>::BITS - 1))).encode(out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, CorruptionError> {
                Ok((<$unsigned>::decode(bytes)? ^ (1 << (<$unsigned>::BITS - 1))) as $integer)
            }

            fn least() -> Self {
                <$integer>::MIN
            }

            fn longest_bytes(_: usize) -> usize {
                size_of::<Self>()
            }
        }
    )*};
}

signed_key!(i32 as u32, i64 as u64);

impl TableKey for bool {
    const ENCODED_BYTES: Option<usize> = Some(1);

    fn encode(&self, out: &mut SmallKey) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, CorruptionError> {
        match u8::decode(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(CorruptionError::new(format!("the byte {other} in a key is neither true nor false"))),
        }
    }

    fn least() -> Self {
        false
    }

    fn longest_bytes(_: usize) -> usize {
        size_of::<Self>()
    }
}

impl TableKey for () {
    const ENCODED_BYTES: Option<usize> = Some(0);

    fn encode(&self, _: &mut SmallKey) {}

    fn decode(_: &mut &[u8]) -> Result<Self, CorruptionError> {
        Ok(())
    }

    fn least() -> Self {}

    fn longest_bytes(_: usize) -> usize {
        0
    }
}

/// Ends a string. It is below every byte of a string, so a string comes before its own continuations.
const TERMINATOR: u8 = 0;
/// Comes before a byte 0 or 1 of the string, which is then stored one higher, so that it cannot be taken for the
/// terminator and the order stays.
const ESCAPE: u8 = 1;

fn encode_text(text: &str, out: &mut SmallKey) {
    let mut rest = text.as_bytes();
    while let Some(position) = rest.iter().position(|byte| *byte <= ESCAPE) {
        out.extend_from_slice(&rest[..position]);
        out.push(ESCAPE);
        out.push(rest[position] + 1);
        rest = &rest[position + 1..];
    }
    out.extend_from_slice(rest);
    out.push(TERMINATOR);
}

fn decode_text<'a>(bytes: &mut &'a [u8]) -> Result<Cow<'a, str>, CorruptionError> {
    let unterminated = || CorruptionError::new("a text in a key has no end");
    let length = bytes.iter().position(|byte| *byte == TERMINATOR).ok_or_else(unterminated)?;
    let encoded = take(bytes, length)?;
    take(bytes, 1)?;
    let wrong = |error| CorruptionError::new(format!("a text in a key is not UTF-8: {error}"));
    if !encoded.contains(&ESCAPE) {
        return std::str::from_utf8(encoded).map(Cow::Borrowed).map_err(wrong);
    }
    let mut text = Vec::with_capacity(length);
    let mut encoded = encoded.iter();
    while let Some(byte) = encoded.next() {
        if *byte != ESCAPE {
            text.push(*byte);
            continue;
        }
        match encoded.next() {
            Some(escaped @ 1..=2) => text.push(escaped - 1),
            _ => {
                return Err(CorruptionError::new("a text in a key holds an unknown escape"));
            }
        }
    }
    String::from_utf8(text).map(Cow::Owned).map_err(|error| wrong(error.utf8_error()))
}

macro_rules! text_key {
    ($($text:ty),*) => {$(
        impl TableKey for $text {
            const ENCODED_BYTES: Option<usize> = None;

            fn encode(&self, out: &mut SmallKey) {
                encode_text(self, out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, CorruptionError> {
                decode_text(bytes).map(|text| text.as_ref().into())
            }

            fn least() -> Self {
                "".into()
            }

            fn longest_bytes(text_bytes: usize) -> usize {
                text_bytes + 1
            }
        }
    )*};
}

text_key!(String, Arc<str>, Box<str>);

/// Adds two lengths, either of which may be unknown.
const fn joined(first: Option<usize>, second: Option<usize>) -> Option<usize> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first + second),
        _ => None,
    }
}

macro_rules! tuple_key {
    ($first:ident $(, $part:ident)+) => {
        #[allow(non_snake_case, reason = "the type parameters name the parts")]
        impl<$first: TableKey $(, $part: TableKey)+> TableKey for ($first, $($part),+) {
            const ENCODED_BYTES: Option<usize> = {
                let length = $first::ENCODED_BYTES;
                $( let length = joined(length, $part::ENCODED_BYTES); )+
                length
            };

            fn encode(&self, out: &mut SmallKey) {
                let ($first, $($part),+) = self;
                $first.encode(out);
                $( $part.encode(out); )+
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, CorruptionError> {
                Ok(($first::decode(bytes)?, $($part::decode(bytes)?),+))
            }

            fn least() -> Self {
                ($first::least(), $($part::least()),+)
            }

            fn longest_bytes(text_bytes: usize) -> usize {
                $first::longest_bytes(text_bytes) $( + $part::longest_bytes(text_bytes) )+
            }
        }
    };
}

tuple_key!(A, B);
tuple_key!(A, B, C);
tuple_key!(A, B, C, D);

/// A key that begins with a part of type `P`: entries with the same part are adjacent.
pub trait PrefixedKey<P: TableKey>: TableKey {
    /// Whether the key begins with this part.
    fn begins_with(&self, prefix: &P) -> bool;

    /// The least key that begins with this part.
    fn least_with(prefix: &P) -> Self;
}

impl<A: TableKey, B: TableKey> PrefixedKey<A> for (A, B) {
    fn begins_with(&self, prefix: &A) -> bool {
        self.0 == *prefix
    }

    fn least_with(prefix: &A) -> Self {
        (prefix.clone(), B::least())
    }
}

impl<A: TableKey, B: TableKey, C: TableKey> PrefixedKey<A> for (A, B, C) {
    fn begins_with(&self, prefix: &A) -> bool {
        self.0 == *prefix
    }

    fn least_with(prefix: &A) -> Self {
        (prefix.clone(), B::least(), C::least())
    }
}

impl<A: TableKey, B: TableKey, C: TableKey> PrefixedKey<(A, B)> for (A, B, C) {
    fn begins_with(&self, prefix: &(A, B)) -> bool {
        self.0 == prefix.0 && self.1 == prefix.1
    }

    fn least_with(prefix: &(A, B)) -> Self {
        (prefix.0.clone(), prefix.1.clone(), C::least())
    }
}

/// The end of the encoded keys that begin with a part: its last byte that is not the greatest, plus one.
pub(crate) fn end_of<P: TableKey>(prefix: &P) -> Bound<SmallKey> {
    let mut end = SmallKey::new();
    prefix.encode(&mut end);
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

/// Makes tuple structs of one field keys: `key_by_wrapping!(TenantId(Arc<str>), JobType(Arc<str>));`.
#[macro_export]
macro_rules! key_by_wrapping {
    ($($name:ident($inner:ty)),* $(,)?) => {$(
        impl $crate::TableKey for $name {
            const ENCODED_BYTES: Option<usize> = <$inner as $crate::TableKey>::ENCODED_BYTES;

            fn encode(&self, out: &mut $crate::SmallKey) {
                $crate::TableKey::encode(&self.0, out);
            }

            fn decode(bytes: &mut &[u8]) -> Result<Self, $crate::CorruptionError> {
                <$inner as $crate::TableKey>::decode(bytes).map($name)
            }

            fn least() -> Self {
                $name(<$inner as $crate::TableKey>::least())
            }

            fn longest_bytes(text_bytes: usize) -> usize {
                <$inner as $crate::TableKey>::longest_bytes(text_bytes)
            }
        }
    )*};
}
