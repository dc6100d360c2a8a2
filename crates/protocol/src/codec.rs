//! The one encoding of everything durable.

use std::convert::Infallible;

use minicbor::encode::Write;
use minicbor::{Decode, Encode};

/// Bytes that should hold a value of this crate do not.
#[derive(Debug, thiserror::Error)]
#[error("Cannot read a stored {kind}: {reason}")]
pub struct DecodeError {
    /// What was expected.
    pub kind: &'static str,
    /// What is wrong.
    pub reason: String,
}

/// Where encoded values go. Most of what is written is one byte or a short number, so no call is made for it.
struct Appending<'a>(&'a mut Vec<u8>);

impl Write for Appending<'_> {
    type Error = Infallible;

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends the encoding of `value` to `out`.
pub fn encode<T: Encode<()>>(value: &T, out: &mut Vec<u8>) {
    let result: Result<(), minicbor::encode::Error<Infallible>> = minicbor::encode(value, Appending(out));
    // Writing to a vector cannot fail, and none of our types refuses to be encoded.
    result.expect("values of the protocol always encode");
}

/// The encoding of `value`.
pub fn encode_to_vec<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

/// Reads a value back.
///
/// # Errors
/// When the bytes are not the encoding of a `T`.
pub fn decode<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, DecodeError> {
    minicbor::decode(bytes).map_err(|error| DecodeError { kind: std::any::type_name::<T>(), reason: error.to_string() })
}

/// Makes the error about an unknown variant one of the whole value. Read by itself, an optional field with such a variant
/// counts as absent, and what an older version does not know would be lost without a word.
pub(crate) fn whole(error: minicbor::decode::Error) -> minicbor::decode::Error {
    match error.is_unknown_variant() {
        true => minicbor::decode::Error::message(error.to_string()),
        false => error,
    }
}
