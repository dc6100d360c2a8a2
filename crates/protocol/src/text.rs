//! Shared immutable text.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer};

/// Immutable text that is cheap to clone: ids, names and JSON documents are copied from record to record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(Arc<str>);

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shared text itself.
    pub fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

/// Short texts that were decoded last on this thread, each in the slot of its hash.
type Recent = [Option<Arc<str>>; RECENT_SLOTS];

const RECENT_SLOTS: usize = 64;
/// Longer texts are seldom the same.
const RECENT_BYTES: usize = 32;

thread_local! {
    static RECENT: RefCell<Recent> = const { RefCell::new([const { None }; RECENT_SLOTS]) };
}

impl Text {
    /// What is decoded names the same processes, elements, job types and tenants again and again: those share their text instead
    /// of allocating it.
    pub(crate) fn of_decoded(text: &str) -> Text {
        match text.len() {
            0 => Text::default(),
            1..=RECENT_BYTES => {
                RECENT.try_with(|recent| Text(shared(&mut recent.borrow_mut(), text))).unwrap_or_else(|_| text.into())
            }
            _ => text.into(),
        }
    }
}

fn shared(recent: &mut Recent, text: &str) -> Arc<str> {
    let slot = &mut recent[slot_of(text.as_bytes())];
    match slot {
        Some(known) if **known == *text => known.clone(),
        _ => slot.insert(text.into()).clone(),
    }
}

/// By the length, the beginning and the end.
fn slot_of(text: &[u8]) -> usize {
    let ends = match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(17),
        _ => text.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    };
    let hash = (ends ^ text.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> (u64::BITS - RECENT_SLOTS.ilog2())) as usize
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(text.into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(text.into())
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Text(text)
    }
}

impl From<&Arc<str>> for Text {
    fn from(text: &Arc<str>) -> Self {
        Text(text.clone())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<C> Encode<C> for Text {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        encoder.str(self)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Text {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        decoder.str().map(Text::of_decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_again_shares_its_text_if_it_is_short() {
        let text = |length: usize, letter: u8| String::from_utf8(vec![letter; length]).expect("ASCII");
        for length in 0..=RECENT_BYTES + 1 {
            // Others come in between, and may have the same slot.
            let texts: Vec<String> = (b'a'..=b'z').map(|letter| text(length, letter)).collect();
            let decode = |text: &String| -> Text { crate::decode(&crate::encode_to_vec(text)).expect("a text") };
            for _ in 0..2 {
                assert!(texts.iter().all(|text| *decode(text) == **text), "{length}");
            }
            let pair = [decode(&texts[0]), decode(&texts[0])];
            assert_eq!(Arc::ptr_eq(&pair[0].0, &pair[1].0), length <= RECENT_BYTES, "{length}");
        }
    }

    #[test]
    fn texts_that_differ_a_little_have_different_slots_mostly() {
        let slots: std::collections::BTreeSet<usize> =
            (0..RECENT_SLOTS).map(|number| slot_of(format!("Activity_{number:x}").as_bytes())).collect();
        assert!(slots.len() > RECENT_SLOTS / 3, "{}", slots.len());
    }
}
