//! Reads fields of encoded records one after the other. Every record of a stream is looked at and few are read, so this makes no values,
//! and no errors that say where something is wrong: of what is to be read as a whole, [`decode`](crate::decode) says that.

use minicbor::{Decode, Decoder};

use crate::{Key, Text};

// What kinds there are, as the encoding numbers them: whole numbers, bytes, and what holds others.
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
/// The byte that stands where there is nothing.
const NULL: u8 = 0xF6;

/// What is left of an encoded record. Whatever is asked for is none when something else comes, or too little.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// From the beginning.
    pub fn of(encoded: &'a [u8]) -> Fields<'a> {
        Fields(encoded)
    }

    /// The kind of what comes, and its number: itself, its length, or how many it holds.
    #[inline]
    fn kind(&mut self) -> Option<(u8, u64)> {
        let (first, rest) = self.0.split_first()?;
        let (number, rest) = match first & 0x1F {
            short @ 0..24 => (short.into(), rest),
            24 => rest.split_first().map(|(byte, rest)| (u64::from(*byte), rest))?,
            25 => rest.split_first_chunk().map(|(bytes, rest)| (u16::from_be_bytes(*bytes).into(), rest))?,
            26 => rest.split_first_chunk().map(|(bytes, rest)| (u32::from_be_bytes(*bytes).into(), rest))?,
            27 => rest.split_first_chunk().map(|(bytes, rest)| (u64::from_be_bytes(*bytes), rest))?,
            // Nothing is written without saying first how long it is.
            _ => return None,
        };
        self.0 = rest;
        Some((first >> 5, number))
    }

    #[inline]
    fn number_of(&mut self, kind: u8) -> Option<u64> {
        self.kind().filter(|(of, _)| *of == kind).map(|(_, number)| number)
    }

    /// A number that is not negative.
    #[inline]
    pub fn unsigned(&mut self) -> Option<u64> {
        self.number_of(UNSIGNED)
    }

    /// A number.
    #[inline]
    pub fn signed(&mut self) -> Option<i64> {
        let (kind, number) = self.kind()?;
        let number = i64::try_from(number).ok()?;
        match kind {
            UNSIGNED => Some(number),
            NEGATIVE => Some(-1 - number),
            _ => None,
        }
    }

    /// A number of 32 bits.
    #[inline]
    pub fn small(&mut self) -> Option<i32> {
        self.signed()?.try_into().ok()
    }

    #[inline]
    pub fn key(&mut self) -> Option<Key> {
        self.signed().map(Key::from_raw)
    }

    /// The beginning of what holds others; how many.
    #[inline]
    pub fn array(&mut self) -> Option<u64> {
        self.number_of(ARRAY)
    }

    #[inline]
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.number_of(TEXT)?;
        str::from_utf8(self.bytes(length)?).ok()
    }

    /// A text to keep.
    #[inline]
    pub fn kept(&mut self) -> Option<Text> {
        self.text().map(Text::of_decoded)
    }

    /// As many of something as are there.
    #[inline]
    pub fn all<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.array()?;
        (0..count).map(|_| read(self)).collect()
    }

    /// Something, or a sign that there is nothing.
    #[inline]
    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.0.split_first()? {
            (&NULL, rest) => {
                self.0 = rest;
                Some(None)
            }
            _ => read(self).map(Some),
        }
    }

    #[inline]
    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A value of some type.
    pub fn value<T: Decode<'a, ()>>(&mut self) -> Option<T> {
        let mut decoder = Decoder::new(self.0);
        let value = decoder.decode().ok()?;
        self.0 = &self.0[decoder.position()..];
        Some(value)
    }

    /// Passes whatever comes, with all that it holds.
    #[inline]
    pub fn pass(&mut self) -> Option<()> {
        let mut left: u64 = 1;
        while left > 0 {
            left -= 1;
            match self.kind()? {
                (BYTES | TEXT, length) => {
                    self.bytes(length)?;
                }
                (ARRAY, count) => left = left.checked_add(count)?,
                (MAP, count) => left = left.checked_add(count.checked_mul(2)?)?,
                (TAG, _) => left = left.checked_add(1)?,
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode_to_vec;

    #[test]
    fn numbers_of_all_lengths_are_read() {
        for number in [0, 23, 24, 255, 256, 65_535, 65_536, u32::MAX.into(), 1 << 32, i64::MAX] {
            for number in [number, -1 - number] {
                let encoded = encode_to_vec(&number);
                assert_eq!(Fields::of(&encoded).signed(), Some(number));
                assert_eq!(Fields::of(&encoded).unsigned(), u64::try_from(number).ok());
                assert_eq!(Fields::of(&encoded).value(), Some(number));
                for length in 0..encoded.len() {
                    assert_eq!(Fields::of(&encoded[..length]).signed(), None, "{number}, {length} bytes");
                }
            }
        }
        let largest = encode_to_vec(&u64::MAX);
        assert_eq!((Fields::of(&largest).unsigned(), Fields::of(&largest).signed()), (Some(u64::MAX), None));
    }

    #[test]
    fn whatever_comes_is_passed_as_a_whole() {
        let mut encoded = Vec::new();
        let mut encoder = minicbor::Encoder::new(&mut encoded);
        encoder.array(4).and_then(|all| all.str("wäge")).and_then(|all| all.bytes(&[1; 300])).expect("memory");
        encoder.map(1).and_then(|all| all.u8(1)).and_then(|all| all.array(1)).expect("memory");
        encoder
            .tag(minicbor::data::Tag::new(9))
            .and_then(|all| all.null())
            .and_then(|all| all.f64(0.5))
            .expect("memory");
        let length = encoded.len();
        encoded.push(7);
        let mut fields = Fields::of(&encoded);
        assert_eq!((fields.pass(), fields.unsigned()), (Some(()), Some(7)));
        for length in 0..length {
            assert_eq!(Fields::of(&encoded[..length]).pass(), None, "{length} bytes");
        }
        // More than there can be, and of unknown length.
        for wrong in [
            &[0x9B, 255, 255, 255, 255, 255, 255, 255, 255][..],
            &[0xBB, 255, 0, 0, 0, 0, 0, 0, 0],
            &[0x9F, 0xFF],
            &[0x1C],
        ] {
            assert_eq!(Fields::of(wrong).pass(), None, "{wrong:x?}");
        }
    }

    #[test]
    fn what_comes_is_not_taken_for_something_else() {
        let (text, number) = (encode_to_vec(&"a"), encode_to_vec(&1_u8));
        assert_eq!((Fields::of(&text).text(), Fields::of(&number).text()), (Some("a"), None));
        assert_eq!((Fields::of(&text).signed(), Fields::of(&text).array()), (None, None));
        assert_eq!(Fields::of(&[0x61, 0xFF]).text(), None, "it is no text");
        assert_eq!(Fields::of(&text).value::<u64>(), None);
    }
}
