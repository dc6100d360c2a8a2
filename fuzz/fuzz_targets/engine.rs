//! Models and what clients, workers and time do with them: no promise of the engine is broken.
#![no_main]

use engine_fuzz::case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let report = case::run(bytes);
    if let Some(failure) = report.failure {
        panic!("{}=> {}", report.story, failure.0);
    }
});
