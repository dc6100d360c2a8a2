//! What a later version wrote must not be read as something else, or as nothing: wherever a number in a command or record is one
//! that this version does not know, it is an error. Otherwise the number stays what it is.

use std::collections::BTreeSet;
use std::sync::Mutex;

use minicbor::{Decode, Encode};
use protocol::{CommandBatch, Record, decode, encode_to_vec};

/// Of each kind of command and record, so many are looked at that differ in their length.
const OF_EACH_KIND: usize = 12;

/// What was looked at in this process: whether it is a command, its type, its intent, and the length of its encoding.
static SEEN: Mutex<BTreeSet<(bool, u32, &'static str, usize)>> = Mutex::new(BTreeSet::new());

/// Looks at some commands and records of each kind.
pub fn check_some(batches: &[CommandBatch], records: &[Record]) {
    for command in batches.iter().flat_map(|batch| &batch.commands) {
        if is_new(true, command.payload.value_type() as u32, command.payload.intent_name(), command) {
            check(command);
        }
    }
    for record in records {
        if is_new(false, record.payload.value_type() as u32, record.payload.intent_name(), record) {
            check(record);
        }
    }
}

fn is_new<T: Encode<()>>(is_command: bool, value_type: u32, intent: &'static str, value: &T) -> bool {
    let mut seen = SEEN.lock().expect("no test failed in it");
    let of_kind = (is_command, value_type, intent, 0)..=(is_command, value_type, intent, usize::MAX);
    seen.range(of_kind).count() < OF_EACH_KIND
        && seen.insert((is_command, value_type, intent, encode_to_vec(value).len()))
}

/// Where the integers of an encoded value are, with the lengths of their encodings.
fn integers(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (major, additional) = (bytes[at] >> 5, bytes[at] & 31);
        let extra = match additional {
            0..=23 => 0,
            24..=27 => 1 << (additional - 24),
            other => panic!("no definite length: {other}"),
        };
        let argument =
            bytes[at + 1..at + 1 + extra].iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let argument = if extra == 0 { usize::from(additional) } else { argument };
        match major {
            0 | 1 => found.push((at, 1 + extra)),
            2 | 3 => at += argument,
            _ => {}
        }
        at += 1 + extra;
    }
    found
}

/// Numbers that are no variant of anything, in the shortest encoding of each length.
const UNKNOWN: [&[u8]; 3] = [&[0x18, 119], &[0x19, 0x7f, 0xf1], &[0x1a, 0x7f, 0xff, 0xff, 0xf1]];

/// Puts each of the numbers in the place of each integer, and answers how often that was an error.
pub fn check<T: Encode<()> + for<'b> Decode<'b, ()> + std::fmt::Debug>(value: &T) -> usize {
    let bytes = encode_to_vec(value);
    let mut errors = 0;
    for (at, length) in integers(&bytes) {
        for unknown in UNKNOWN {
            let changed = [&bytes[..at], unknown, &bytes[at + length..]].concat();
            match decode::<T>(&changed) {
                Ok(read) => assert!(
                    encode_to_vec(&read) == changed,
                    "the number at {at} of {value:?} is read as something else or as nothing: {read:?}"
                ),
                Err(_) => errors += 1,
            }
        }
    }
    errors
}
