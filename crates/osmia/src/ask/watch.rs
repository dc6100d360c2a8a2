//! Asks again and again, for `--watch`.

use std::thread::sleep;
use std::time::Duration;

use super::rest::RestError;
use crate::client::{ClientError, Outcome};

/// Between two questions.
const PAUSE: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(1) };

/// Shows what there is now, and again whenever it is something else, until the command is interrupted. A node that does not answer
/// for a while ends it only if it did not answer the first question.
pub(super) fn watch<T: PartialEq>(
    ask: impl Fn() -> Outcome<T>,
    show: impl Fn(&T) -> Outcome,
    away: impl Fn(&ClientError),
) -> Outcome {
    let (mut shown, mut is_away) = (None, false);
    loop {
        let now = match ask() {
            Err(error) if shown.is_some() && may_pass(&error) => {
                if !is_away {
                    away(&error);
                }
                is_away = true;
                sleep(PAUSE);
                continue;
            }
            answer => answer?,
        };
        is_away = false;
        if shown.as_ref() != Some(&now) {
            show(&now)?;
            shown = Some(now);
        }
        sleep(PAUSE);
    }
}

/// Whether the same question may have an answer later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Rest(RestError::Unreachable { .. }) => true,
        ClientError::Rest(RestError::Refused { status, .. }) => *status >= 500,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn a_node_that_is_away_for_a_while_does_not_end_it() {
        let unreachable = || {
            let [url, reason] = ["http://127.0.0.1:1", "refused"].map(str::to_owned);
            Err(RestError::Unreachable { url, reason, hint: "" }.into())
        };
        let refused = |status| {
            let [title, detail] = ["T", "D"].map(str::to_owned);
            Err(RestError::Refused { status, title, detail }.into())
        };
        let watched = |answers: Vec<Outcome<u32>>| {
            let answers = RefCell::new(VecDeque::from(answers));
            let (shown, told) = (RefCell::new(Vec::new()), RefCell::new(0));
            let ask = || answers.borrow_mut().pop_front().unwrap_or_else(|| refused(404));
            let show = |now: &u32| {
                shown.borrow_mut().push(*now);
                Ok(())
            };
            let ended = watch(ask, show, |_| *told.borrow_mut() += 1).expect_err("it ends with an error");
            (shown.take(), told.take(), ended.to_string())
        };
        let answers = vec![Ok(1), unreachable(), refused(503), Ok(1), Ok(2), unreachable(), Ok(3)];
        assert_eq!(watched(answers), (vec![1, 2, 3], 2, "Refused (T): D".to_owned()));
        let (shown, told, ended) = watched(vec![unreachable(), Ok(1)]);
        assert_eq!((shown, told), (Vec::new(), 0));
        assert!(ended.starts_with("Cannot reach"), "{ended}");
    }
}
