//! The values of records: what commands ask for and what events say. Fields have the names of the record schema, and a
//! comment only where the name does not say it all.

#![allow(missing_docs, reason = "the names are the record schema's own")]

mod ad_hoc_sub_process;
mod compensation;
mod complete;
mod conditional;
mod decision;
mod deployment;
mod event;
mod form;
mod global_listener;
mod infrastructure;
mod job;
mod job_owner;
mod kinds;
mod operation;
mod partition;
mod process_instance;
mod signal;
mod user_task;

pub use ad_hoc_sub_process::*;
pub use compensation::*;
pub(crate) use complete::Complete;
pub use conditional::*;
pub use decision::*;
pub use deployment::*;
pub use event::*;
pub use form::*;
pub use global_listener::*;
pub use infrastructure::*;
pub use job::*;
pub use job_owner::*;
pub use kinds::*;
pub use operation::*;
pub use partition::*;
pub use process_instance::*;
pub use signal::*;
pub use user_task::*;

use serde::Serializer;
use serde_json::value::RawValue;

use crate::Text;

/// JSON text goes into exported records as the JSON that it is.
fn json<S: Serializer>(text: &Text, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::Serialize;
    use serde::ser::Error;
    let text = if text.is_empty() { "{}" } else { text };
    let raw: &RawValue = serde_json::from_str(text).map_err(S::Error::custom)?;
    raw.serialize(serializer)
}

/// Bytes go into exported records as Base64.
fn base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                out.push(ALPHABET[(group >> (18 - 6 * position) & 63) as usize] as char);
            } else {
                out.push('=');
            }
        }
    }
    serializer.serialize_str(&out)
}

/// Shared bytes as a CBOR byte string.
mod shared_bytes {
    use std::sync::Arc;

    use minicbor::decode::{Decoder, Error as DecodeError};
    use minicbor::encode::{Encoder, Error as EncodeError, Write};

    pub fn encode<C, W: Write>(
        bytes: &Arc<[u8]>,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.bytes(bytes)?.ok()
    }

    pub fn decode<C>(decoder: &mut Decoder<'_>, _: &mut C) -> Result<Arc<[u8]>, DecodeError> {
        decoder.bytes().map(Arc::from)
    }
}
