//! What stands in an entry of the log, in the state and in a record segment once its checksum is right: read or refused, and
//! written again the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::{Command, Record, decode, decode_batch, encode_to_vec};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(batch) = decode_batch(bytes) {
        for command in &batch.commands {
            let again: Command = decode(&encode_to_vec(command)).expect("what was written can be read");
            assert_eq!(encode_to_vec(&again), encode_to_vec(command));
        }
    }
    if let Ok(record) = decode::<Record>(bytes) {
        let written = encode_to_vec(&record);
        let again: Record = decode(&written).expect("what was written can be read");
        assert_eq!(encode_to_vec(&again), written);
    }
});
