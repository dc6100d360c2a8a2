//! Who wants something of the engine.

use std::sync::Arc;

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

use crate::Text;

/// Bytes of the id of a user or client.
pub const ACTOR_ID_BYTES_MAX: usize = 256;

/// SHA-256 over the claims with which somebody was authenticated.
pub type ClaimsDigest = [u8; 32];

/// Who sent a command. The usual one takes no byte in commands and records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A client that nobody authenticated.
    #[default]
    Anonymous,
    /// The cluster itself: something was due, or a partition tells another one.
    System,
    /// A person.
    User(Arc<Identity>),
    /// A program with credentials of its own.
    Client(Arc<Identity>),
}

/// An authenticated user or client. Shared, because every record that follows from a command names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    id: Text,
    claims: Option<ClaimsDigest>,
}

/// An id that is too long.
#[derive(Debug, thiserror::Error)]
#[error("The id of a user or client has {bytes} bytes, and it may have {ACTOR_ID_BYTES_MAX} at most.")]
pub struct ActorIdError {
    bytes: usize,
}

impl Identity {
    /// The identity with an id, and the digest of its claims where there are some.
    ///
    /// # Errors
    /// When the id is longer than [`ACTOR_ID_BYTES_MAX`].
    pub fn new(id: impl Into<Text>, claims: Option<ClaimsDigest>) -> Result<Arc<Identity>, ActorIdError> {
        let id = id.into();
        match id.len() {
            0..=ACTOR_ID_BYTES_MAX => Ok(Arc::new(Identity { id, claims })),
            bytes => Err(ActorIdError { bytes }),
        }
    }

    /// The name of the user, or the id of the client.
    pub fn id(&self) -> &Text {
        &self.id
    }

    /// The digest of its claims, where there are some.
    pub fn claims(&self) -> Option<&ClaimsDigest> {
        self.claims.as_ref()
    }
}

const SYSTEM: u8 = 1;
const USER: u8 = 2;
const CLIENT: u8 = 3;

/// Written as an array of the kind and, where there is one, the identity's id and claims; anonymous ones as nothing.
impl<C> Encode<C> for Actor {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        let (kind, identity) = match self {
            Actor::Anonymous => return encoder.null()?.ok(),
            Actor::System => return encoder.array(1)?.u8(SYSTEM)?.ok(),
            Actor::User(identity) => (USER, identity),
            Actor::Client(identity) => (CLIENT, identity),
        };
        encoder.array(3)?.u8(kind)?.str(&identity.id)?;
        match &identity.claims {
            Some(claims) => encoder.bytes(claims)?.ok(),
            None => encoder.null()?.ok(),
        }
    }

    fn is_nil(&self) -> bool {
        *self == Actor::Anonymous
    }
}

/// A kind that this version does not know is an error, although the field may be absent.
impl<'b, C> Decode<'b, C> for Actor {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        if decoder.datatype()? == minicbor::data::Type::Null {
            decoder.null()?;
            return Ok(Actor::Anonymous);
        }
        let at = decoder.position();
        let length = decoder.array()?;
        match (decoder.u8()?, length) {
            (SYSTEM, Some(1)) => Ok(Actor::System),
            (USER, Some(3)) => decode_identity(decoder).map(Actor::User),
            (CLIENT, Some(3)) => decode_identity(decoder).map(Actor::Client),
            (kind, _) => Err(DecodeError::message(format!("an actor of kind {kind} is not known")).at(at)),
        }
    }

    fn nil() -> Option<Self> {
        Some(Actor::Anonymous)
    }
}

fn decode_identity(decoder: &mut Decoder<'_>) -> Result<Arc<Identity>, DecodeError> {
    let at = decoder.position();
    let id = decoder.str()?;
    let claims = match decoder.datatype()? {
        minicbor::data::Type::Null => {
            decoder.null()?;
            None
        }
        _ => {
            let bytes = decoder.bytes()?;
            let claims = ClaimsDigest::try_from(bytes);
            Some(
                claims
                    .map_err(|_| DecodeError::message("the digest of an actor's claims has another length").at(at))?,
            )
        }
    };
    Identity::new(id, claims).map_err(|error| DecodeError::message(error.to_string()).at(at))
}
