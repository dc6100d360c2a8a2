//! A failing case made small.

use crate::case;

/// Takes away and sets to zero what is not needed for a failure of this kind, with at most so many attempts.
pub fn minimise(bytes: &[u8], kind: &str, attempts_max: usize) -> Vec<u8> {
    let fails = |candidate: &[u8]| case::run(candidate).failure.is_some_and(|failure| failure.kind() == kind);
    let mut best = bytes.to_vec();
    let mut attempts = 0;
    let mut size = best.len() / 2;
    while size > 0 && attempts < attempts_max {
        let mut at = 0;
        while at < best.len() && attempts < attempts_max {
            let end = (at + size).min(best.len());
            attempts += 1;
            let without = [&best[..at], &best[end..]].concat();
            if fails(&without) {
                best = without;
                continue;
            }
            let mut zeroed = best.clone();
            zeroed[at..end].fill(0);
            attempts += 1;
            if zeroed != best && fails(&zeroed) {
                best = zeroed;
            }
            at = end;
        }
        size /= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn what_does_not_fail_in_this_way_stays_as_it_is() {
        assert_eq!(minimise(&[1, 2, 3, 4], "never", 100), [1, 2, 3, 4]);
    }
}
