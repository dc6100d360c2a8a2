//! A failing case made small.

use crate::case::{self, Failure};

/// Takes away and sets to zero what is not needed for the same kind of failure, with at most so many attempts. Answers the
/// bytes that are left and how they fail.
pub fn minimise(bytes: &[u8], failure: &Failure, attempts_max: usize) -> (Vec<u8>, Failure) {
    let kind = failure.kind();
    let mut best = (bytes.to_vec(), failure.clone());
    let mut attempts = 0;
    let mut try_it = |candidate: Vec<u8>, best: &mut (Vec<u8>, Failure)| {
        attempts += 1;
        match case::run(&candidate).failure {
            Some(failure) if failure.kind() == kind => {
                *best = (candidate, failure);
                true
            }
            _ => false,
        }
    };
    let mut count = 0;
    let mut size = best.0.len() / 2;
    while size > 0 && count < attempts_max {
        let mut at = 0;
        while at < best.0.len() && count < attempts_max {
            let end = (at + size).min(best.0.len());
            let without: Vec<u8> = [&best.0[..at], &best.0[end..]].concat();
            let mut zeroed = best.0.clone();
            zeroed[at..end].fill(0);
            count += 2;
            if try_it(without, &mut best) {
                continue;
            }
            if zeroed != best.0 {
                try_it(zeroed, &mut best);
            }
            at = end;
        }
        size /= 2;
    }
    best
}
