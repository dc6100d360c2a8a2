//! The first frame of a connection, and its answer.

use std::num::NonZeroU64;

use crate::identity::{DirectoryId, Identity, NodeNumber};
use crate::lane::Lane;

/// The versions of the protocol that this program speaks, oldest and newest.
pub(crate) const VERSIONS: (u16, u16) = (1, 1);
/// A hello begins with this.
const MAGIC: &[u8; 8] = b"osmianet";
/// The largest first frame: a stranger may make a node keep no more.
pub(crate) const HELLO_BYTES_MAX: usize = 1024;
/// The longest text in a hello.
const TEXT_BYTES_MAX: usize = 128;
/// The longest sentence of a refusal.
pub(crate) const REFUSAL_BYTES_MAX: usize = 900;

/// Who dials, whom, and on which lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Who dials.
    pub identity: Identity,
    /// Whom the dialing node takes the other one for.
    pub to: NodeNumber,
    /// What the connection is for.
    pub lane: Lane,
    /// The versions of the protocol that the dialing node speaks, oldest and newest.
    pub versions: (u16, u16),
}

/// Why bytes are no hello.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The first bytes are those of something else.
    #[error("the first bytes are not those of a node of Osmia")]
    Foreign,
    /// The hello ends early, or a part of it is out of range.
    #[error("the hello is malformed: {0}")]
    Malformed(&'static str),
}

/// Why a node does not take a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No version of the protocol is known to both.
    #[error(
        "node {from} speaks the versions {theirs:?} of the protocol between nodes, and node {to} speaks {ours:?}; \
         upgrade the older one"
    )]
    Versions {
        /// Who dials.
        from: NodeNumber,
        /// Who refuses.
        to: NodeNumber,
        /// The versions of who dials.
        theirs: (u16, u16),
        /// The versions of who refuses.
        ours: (u16, u16),
    },
    /// The address leads to another node.
    #[error(
        "node {from} looks for node {wanted} here, and this is node {to}; correct the list of members of node {from}"
    )]
    WrongNode {
        /// Who dials.
        from: NodeNumber,
        /// Whom it looks for.
        wanted: NodeNumber,
        /// Who refuses.
        to: NodeNumber,
    },
    /// The two nodes belong to different clusters.
    #[error(
        "node {from} belongs to cluster '{theirs}', and node {to} to '{ours}'; start node {from} with the data directory of \
         this cluster, or correct its list of members"
    )]
    WrongCluster {
        /// Who dials.
        from: NodeNumber,
        /// Who refuses.
        to: NodeNumber,
        /// The cluster of who dials.
        theirs: String,
        /// The cluster of who refuses.
        ours: String,
    },
    /// The list of members has no such node.
    #[error("node {from} is not in the list of members of node {to}; give all nodes the same list")]
    Unknown {
        /// Who dials.
        from: NodeNumber,
        /// Who refuses.
        to: NodeNumber,
    },
    /// The directory is not the one that the cluster knows under this node number.
    #[error(
        "node {from} has the data directory {theirs}, and the cluster knows it with {known}; if its disk was lost, run \
         'osmia cluster replace {from}'"
    )]
    OtherDirectory {
        /// Who dials.
        from: NodeNumber,
        /// Its directory.
        theirs: DirectoryId,
        /// The directory of the member.
        known: DirectoryId,
    },
    /// The directory was started more often than this copy of it.
    #[error(
        "node {from} was started {theirs} times, and start {seen} of its data directory was seen before: this is an old copy; \
         put the newest directory back, or empty it and run 'osmia cluster replace {from}'"
    )]
    OldCopy {
        /// Who dials.
        from: NodeNumber,
        /// Its number of starts.
        theirs: u64,
        /// The highest one that was seen.
        seen: u64,
    },
    /// Two processes run on copies of one directory.
    #[error("another process is running as node {from} on a copy of the same data directory; stop one of them")]
    Twin {
        /// Who dials.
        from: NodeNumber,
    },
}

impl Hello {
    /// The bytes of the payload.
    pub fn encode(&self) -> Vec<u8> {
        let identity = &self.identity;
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.versions.0.to_le_bytes());
        out.extend_from_slice(&self.versions.1.to_le_bytes());
        out.push(self.lane.number());
        out.extend_from_slice(&identity.node.0.to_le_bytes());
        out.extend_from_slice(&self.to.0.to_le_bytes());
        out.extend_from_slice(&identity.directory.0.get().to_le_bytes());
        out.extend_from_slice(&identity.boot.to_le_bytes());
        out.extend_from_slice(&identity.process.to_le_bytes());
        out.extend_from_slice(&identity.newest_level.to_le_bytes());
        for text in [&identity.cluster, &identity.build] {
            let text = cut(text, TEXT_BYTES_MAX);
            out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    /// Reads a payload. Bytes after the known parts belong to newer versions and are skipped.
    ///
    /// # Errors
    /// When it is not a hello.
    pub fn decode(mut bytes: &[u8]) -> Result<Hello, HelloError> {
        if take::<8>(&mut bytes) != Some(*MAGIC) {
            return Err(HelloError::Foreign);
        }
        let short = HelloError::Malformed("it ends early");
        let mut read = || -> Option<Result<Hello, HelloError>> {
            let versions = (u16::from_le_bytes(take(&mut bytes)?), u16::from_le_bytes(take(&mut bytes)?));
            let lane = Lane::of_number(take::<1>(&mut bytes)?[0]);
            let node = NodeNumber(u32::from_le_bytes(take(&mut bytes)?));
            let to = NodeNumber(u32::from_le_bytes(take(&mut bytes)?));
            let directory = NonZeroU64::new(u64::from_le_bytes(take(&mut bytes)?));
            let boot = u64::from_le_bytes(take(&mut bytes)?);
            let process = u64::from_le_bytes(take(&mut bytes)?);
            let newest_level = u32::from_le_bytes(take(&mut bytes)?);
            let (cluster, build) = (text(&mut bytes)?, text(&mut bytes)?);
            Some(match (lane, directory, cluster, build) {
                (Some(lane), Some(directory), Ok(cluster), Ok(build)) => {
                    let directory = DirectoryId(directory);
                    let identity = Identity { node, directory, boot, process, cluster, build, newest_level };
                    Ok(Hello { identity, to, lane, versions })
                }
                (None, ..) => Err(HelloError::Malformed("its lane is unknown")),
                (_, None, ..) => Err(HelloError::Malformed("its directory has the number 0")),
                _ => Err(HelloError::Malformed("a text is too long or not UTF-8")),
            })
        };
        read().unwrap_or(Err(short))
    }
}

/// At most so many bytes of a text, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn text(bytes: &mut &[u8]) -> Option<Result<String, HelloError>> {
    let length = usize::from(take::<1>(bytes)?[0]);
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let text = (length <= TEXT_BYTES_MAX).then(|| str::from_utf8(text).ok()).flatten();
    Some(text.map(str::to_owned).ok_or(HelloError::Malformed("a text")))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn identity(node: u32) -> Identity {
        Identity {
            node: NodeNumber(node),
            directory: DirectoryId(NonZeroU64::new(u64::from(node) + 100).expect("not 0")),
            boot: 1,
            process: 7,
            cluster: "c1".to_owned(),
            build: "0.1.0".to_owned(),
            newest_level: 1,
        }
    }

    pub(crate) fn hello(from: u32, to: u32) -> Hello {
        Hello { identity: identity(from), to: NodeNumber(to), lane: Lane::Consensus, versions: VERSIONS }
    }

    #[test]
    fn a_hello_is_read_back_and_may_grow_at_its_end() {
        let hello = hello(2, 0);
        let mut bytes = hello.encode();
        assert!(bytes.len() < HELLO_BYTES_MAX);
        assert_eq!(Hello::decode(&bytes).as_ref(), Ok(&hello));
        bytes.extend_from_slice(b"what a newer version says");
        assert_eq!(Hello::decode(&bytes).as_ref(), Ok(&hello));
    }

    #[test]
    fn each_cut_of_a_hello_is_refused() {
        let bytes = hello(2, 0).encode();
        for length in 0..bytes.len() {
            assert!(Hello::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\n\r\n"), Err(HelloError::Foreign));
    }
}
