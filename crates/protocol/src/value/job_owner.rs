//! For whom jobs are activated.

use minicbor::decode::{Decoder, Error};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};
use serde::Serialize;

use super::StreamId;
use crate::{Key, Request};

/// For whom a job was activated, and its place among the jobs of this owner. Of jobs that were activated together it is that of the
/// first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOwner {
    /// A stream, and the number of the push: the first job since the stream was opened has 1, each further one the next.
    Stream(StreamId, u64),
    /// A poll, and the place in its answer, from 1.
    Poll(Request, u64),
}

impl JobOwner {
    /// The owner of the job that comes so many places later.
    #[must_use]
    pub fn after(self, jobs: usize) -> JobOwner {
        match self {
            Self::Stream(stream, number) => Self::Stream(stream, number.saturating_add(jobs as u64)),
            Self::Poll(poll, place) => Self::Poll(poll, place.saturating_add(jobs as u64)),
        }
    }

    /// The stream, if it is one.
    pub fn stream(self) -> Option<StreamId> {
        match self {
            Self::Stream(stream, _) => Some(stream),
            Self::Poll(..) => None,
        }
    }
}

/// The kind, the node, the number at that node, and the place. The kind is no variant of the encoding: in an optional field one that
/// is not known would be read as nothing.
type Encoded = (u8, u32, u64, u64);

impl<C> Encode<C> for JobOwner {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, context: &mut C) -> Result<(), encode::Error<W::Error>> {
        let encoded: Encoded = match *self {
            Self::Stream(stream, number) => (0, stream.node, stream.number, number),
            Self::Poll(poll, place) => (1, poll.node, poll.number, place),
        };
        encoded.encode(encoder, context)
    }
}

impl<'b, C> Decode<'b, C> for JobOwner {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, Error> {
        let (kind, node, number, place) = Encoded::decode(decoder, context)?;
        match kind {
            0 => Ok(Self::Stream(StreamId { node, number }, place)),
            1 => Ok(Self::Poll(Request { node, number }, place)),
            unknown => Err(Error::message(format!("the owner of a job is of the unknown kind {unknown}"))),
        }
    }
}

/// What becomes of the answer to a poll, as its gateway or a leader says it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobPollValue {
    /// Node of the gateway.
    #[n(0)]
    pub node: u32,
    /// Number of the poll at this gateway; in ACKNOWLEDGE, of the last of its polls whose answers all are delivered or given back.
    #[n(1)]
    pub number: u64,
    /// Of the answer, the jobs that were not delivered; empty for all.
    #[n(2)]
    pub job_keys: Vec<Key>,
}
