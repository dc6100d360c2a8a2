//! Where a page ends, for whoever asks for the next one.

use super::condition::Value;
use super::entity::Kind;

/// No cursor is longer: of long texts, only the beginning is sorted by.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Which way from a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What comes behind it.
    After,
    /// What comes before it.
    Before,
}

/// The place of a row in an order: what was sorted by, its key, and its partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(super) values: Vec<Value>,
    pub(super) key: i64,
    pub(super) partition: u16,
}

impl Cursor {
    /// The place of a group: what its members have in common.
    pub(super) fn of_group(value: Value) -> Cursor {
        Cursor { values: vec![value], key: 0, partition: 0 }
    }

    /// What the members of the group have in common.
    pub(super) fn group(&self) -> Value {
        self.values.first().cloned().unwrap_or(Value::Null)
    }

    /// A text that clients hand back: the base64 of a list.
    pub fn encode(&self) -> String {
        let mut list: Vec<serde_json::Value> = self.values.iter().map(Value::to_json).collect();
        list.extend([self.key.into(), self.partition.into()]);
        base64(serde_json::Value::Array(list).to_string().as_bytes())
    }

    /// A cursor as it was handed out for what is sorted by fields of these kinds.
    pub fn decode(text: &str, kinds: impl IntoIterator<Item = Kind>) -> Option<Cursor> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let list: Vec<serde_json::Value> = serde_json::from_slice(&from_base64(text)?).ok()?;
        let value = |value: &serde_json::Value| match value {
            serde_json::Value::Null => Some(Value::Null),
            serde_json::Value::Number(number) => number.as_i64().map(Value::Integer),
            serde_json::Value::String(text) => Some(Value::Text(text.clone())),
            _ => None,
        };
        let [sorted @ .., key, partition] = list.as_slice() else { return None };
        let cursor = Cursor {
            values: sorted.iter().map(value).collect::<Option<_>>()?,
            key: key.as_i64()?,
            partition: u16::try_from(partition.as_u64()?).ok()?,
        };
        // Databases do not compare numbers with texts, or each in its own way.
        let is_of = |(value, kind): (&Value, Kind)| match value {
            Value::Null => true,
            Value::Integer(_) => is_number(kind),
            Value::Text(_) => !is_number(kind),
        };
        let kinds: Vec<Kind> = kinds.into_iter().collect();
        (cursor.values.len() == kinds.len() && cursor.values.iter().zip(kinds).all(is_of)).then_some(cursor)
    }
}

fn is_number(kind: Kind) -> bool {
    match kind {
        Kind::Key | Kind::KeyOrMinusOne | Kind::Integer | Kind::Boolean | Kind::Instant | Kind::Enumeration(_) => true,
        Kind::Text | Kind::Value | Kind::IsTruncated | Kind::Object | Kind::List | Kind::Null | Kind::Constant(_) => {
            false
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let block = chunk.iter().fold(0_u32, |block, byte| block << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sextet = (block >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut block, mut bits) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let sextet = ALPHABET.iter().position(|known| *known == byte)?;
        block = (block << 6 | u32::try_from(sextet).ok()?) & 0x3_FFFF;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((block >> bits & 0xFF) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_handed_out_is_understood(text in ".{0,40}", number: i64, key: i64, partition: u16) {
            let values = vec![Value::Text(text), Value::Null, Value::Integer(number)];
            let cursor = Cursor { values, key, partition };
            let text = cursor.encode();
            prop_assert_eq!(Cursor::decode(&text, [Kind::Text, Kind::Instant, Kind::Key]), Some(cursor));
            prop_assert_eq!(Cursor::decode(&text, [Kind::Text, Kind::Instant]), None, "another number of them");
            prop_assert_eq!(Cursor::decode(&text, [Kind::Instant, Kind::Instant, Kind::Key]), None, "another kind");
        }

        #[test]
        fn what_is_not_a_cursor_is_refused(text in ".{0,60}") {
            let decoded = Cursor::decode(&text, [Kind::Text]);
            prop_assert!(decoded.is_none_or(|cursor| cursor.values.len() == 1));
        }
    }
}
