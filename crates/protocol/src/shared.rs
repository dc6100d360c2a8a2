//! Shared values are written like owned ones: `#[cbor(with = "protocol::shared")]`.

use std::sync::Arc;

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

/// Writes the value.
///
/// # Errors
/// Those of the value.
pub fn encode<C, T: Encode<C>, W: Write>(
    value: &Arc<T>,
    encoder: &mut Encoder<W>,
    context: &mut C,
) -> Result<(), EncodeError<W::Error>> {
    value.as_ref().encode(encoder, context)
}

/// Reads a value into an `Arc` of its own.
///
/// # Errors
/// Those of the value.
pub fn decode<'b, C, T: Decode<'b, C>>(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Arc<T>, DecodeError> {
    T::decode(decoder, context).map(Arc::new)
}
