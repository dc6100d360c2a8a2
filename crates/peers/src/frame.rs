//! Frames: length, checksum, kind and payload.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of kind and payload, little-endian |
//! | 4 | CRC-32 of kind and payload |
//! | 1 | kind |
//! | … | payload |

use bytes::{Bytes, BytesMut};

/// Kinds below this one belong to the transport.
pub const KIND_MIN: u8 = 16;
/// The bytes before the kind.
const HEADER_BYTES: usize = 8;
/// How much memory a reader takes ahead of the bytes of a frame. A length that a stranger claims costs nothing before
/// the bytes come.
const RESERVE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are no frame. The connection cannot be read further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame is longer than its lane allows.
    #[error("a frame of {bytes} bytes, where at most {bytes_max} are allowed")]
    TooLong {
        /// What the frame says.
        bytes: usize,
        /// What is allowed.
        bytes_max: usize,
    },
    /// A frame without a kind.
    #[error("a frame without a kind")]
    Empty,
    /// The checksum does not fit.
    #[error("a damaged frame: its checksum does not fit")]
    Damaged,
}

/// Appends a frame.
pub(crate) fn write(kind: u8, payload: &[&[u8]], out: &mut Vec<u8>) {
    let length = 1 + payload.iter().map(|part| part.len()).sum::<usize>();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&[kind]);
    payload.iter().for_each(|part| checksum.update(part));
    out.reserve(HEADER_BYTES + length);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&checksum.finalize().to_le_bytes());
    out.push(kind);
    payload.iter().for_each(|part| out.extend_from_slice(part));
}

/// Reads frames from bytes as they come.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: BytesMut,
}

impl FrameReader {
    /// Takes bytes of the connection.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether no part of a frame waits for its rest.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next whole frame: its kind and payload.
    ///
    /// # Errors
    /// When the bytes are no frame of at most `bytes_max` bytes of payload.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<(u8, Bytes)>, FrameError> {
        let Some((length, checksum)) = self.header() else { return Ok(None) };
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length - 1 > bytes_max {
            return Err(FrameError::TooLong { bytes: length - 1, bytes_max });
        }
        let missing = (HEADER_BYTES + length).saturating_sub(self.bytes.len());
        if missing > 0 {
            self.bytes.reserve(missing.min(RESERVE_BYTES_MAX));
            return Ok(None);
        }
        let mut frame = self.bytes.split_to(HEADER_BYTES + length).freeze().split_off(HEADER_BYTES);
        if crc32fast::hash(&frame) != checksum {
            return Err(FrameError::Damaged);
        }
        let payload = frame.split_off(1);
        Ok(Some((frame[0], payload)))
    }

    fn header(&self) -> Option<(usize, u32)> {
        let (length, rest) = self.bytes.split_first_chunk::<4>()?;
        let checksum = rest.first_chunk::<4>()?;
        Some((usize::try_from(u32::from_le_bytes(*length)).ok()?, u32::from_le_bytes(*checksum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(kind, &[payload], &mut out);
        out
    }

    #[test]
    fn frames_come_whole_however_the_bytes_are_cut() {
        let bytes = [frame(16, b"one"), frame(17, b""), frame(18, &[7; 1000])].concat();
        for step in [1, 2, 7, 64, bytes.len()] {
            let (mut reader, mut found) = (FrameReader::default(), Vec::new());
            for part in bytes.chunks(step) {
                reader.extend(part);
                while let Some((kind, payload)) = reader.next(1000).expect("frames") {
                    found.push((kind, payload.len()));
                }
            }
            assert_eq!(found, [(16, 3), (17, 0), (18, 1000)], "in steps of {step} bytes");
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_giant_length_is_refused_before_its_bytes_come() {
        let mut reader = FrameReader::default();
        reader.extend(&u32::MAX.to_le_bytes());
        reader.extend(&[0; 4]);
        assert!(matches!(reader.next(1024), Err(FrameError::TooLong { bytes_max: 1024, .. })));
        assert!(reader.bytes.capacity() < RESERVE_BYTES_MAX, "it costs no memory");
    }

    #[test]
    fn each_flipped_bit_is_seen() {
        let whole = frame(16, b"entries");
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let mut reader = FrameReader::default();
            reader.extend(&bytes);
            // A length that grew by the flip waits for bytes that never come.
            assert!(!matches!(reader.next(1024), Ok(Some(_))), "bit {bit}");
        }
    }
}
