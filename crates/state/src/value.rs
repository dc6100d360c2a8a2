//! Values and their encoding.

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::CorruptionError;

/// A value of a table. It is encoded only when a checkpoint writes it, and decoded only when it is read from the file.
///
/// Invariant: decoding what was encoded gives an equal value, and equal values encode to equal bytes on every replica.
pub trait TableValue: Debug + Send + Sync + Sized + 'static {
    /// Appends the encoded value.
    fn encode(&self, out: &mut Vec<u8>);

    /// Decodes a value from exactly these bytes.
    fn decode(bytes: &[u8]) -> Result<Self, CorruptionError>;

    /// About how many bytes the value holds besides its own size (texts, lists), so that the overlay's size is known.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl TableValue for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Result<Self, CorruptionError> {
        match bytes.len() {
            0 => Ok(()),
            length => Err(CorruptionError::new(format!("an empty value has {length} bytes"))),
        }
    }
}

macro_rules! integer_value {
    ($($integer:ty),*) => {$(
        impl TableValue for $integer {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn decode(bytes: &[u8]) -> Result<Self, CorruptionError> {
                let length = bytes.len();
                let wrong = |_| CorruptionError::new(format!("an integer of {} bytes has {length}", size_of::<$integer>()));
                bytes.try_into().map(<$integer>::from_le_bytes).map_err(wrong)
            }
        }
    )*};
}

integer_value!(u8, u16, u32, u64, i64);

macro_rules! text_value {
    ($($text:ty),*) => {$(
        impl TableValue for $text {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_bytes());
            }

            fn decode(bytes: &[u8]) -> Result<Self, CorruptionError> {
                let wrong = |error| CorruptionError::new(format!("a text is not UTF-8: {error}"));
                std::str::from_utf8(bytes).map(Into::into).map_err(wrong)
            }

            fn heap_bytes(&self) -> usize {
                self.len()
            }
        }
    )*};
}

text_value!(String, Arc<str>, Box<str>);

impl TableValue for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Result<Self, CorruptionError> {
        Ok(bytes.to_vec())
    }

    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

/// Appends a value that `minicbor` can encode. Used by [`cbor_values!`](crate::cbor_values).
pub fn encode_cbor<V: minicbor::Encode<()>>(value: &V, out: &mut Vec<u8>) {
    minicbor::encode(value, out).expect("invariant: encoding into memory fails for no value of the state");
}

/// Decodes a value that `minicbor` can decode, and refuses bytes after it. Used by [`cbor_values!`](crate::cbor_values).
pub fn decode_cbor<'b, V: minicbor::Decode<'b, ()>>(bytes: &'b [u8]) -> Result<V, CorruptionError> {
    let mut decoder = minicbor::Decoder::new(bytes);
    let value =
        decoder.decode().map_err(|error| CorruptionError::new(format!("the value is not readable: {error}")))?;
    match bytes.len() - decoder.position() {
        0 => Ok(value),
        left => Err(CorruptionError::new(format!("{left} bytes follow the end of the value"))),
    }
}

/// Makes types that derive `minicbor::Encode` and `minicbor::Decode` table values. A type that holds texts or lists says
/// about how many bytes they take: `cbor_values!(Timer, Variable => |variable| variable.json.len());`.
#[macro_export]
macro_rules! cbor_values {
    ($($name:ty $(=> $heap_bytes:expr)?),* $(,)?) => {$(
        impl $crate::TableValue for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $crate::encode_cbor(self, out);
            }

            fn decode(bytes: &[u8]) -> Result<Self, $crate::CorruptionError> {
                $crate::decode_cbor(bytes)
            }

            $(
                fn heap_bytes(&self) -> usize {
                    let heap_bytes: fn(&$name) -> usize = $heap_bytes;
                    heap_bytes(self)
                }
            )?
        }
    )*};
}
