//! Asks again and again, for `--watch`.

use std::thread::sleep;
use std::time::Duration;

use crate::client::Outcome;

/// Between two questions.
const PAUSE: Duration = Duration::from_secs(1);

/// Shows what there is now, and again whenever it is something else, until the command is interrupted.
pub(super) fn watch<T: PartialEq>(ask: impl Fn() -> Outcome<T>, show: impl Fn(&T) -> Outcome) -> Outcome {
    let mut shown = None;
    loop {
        let now = ask()?;
        if shown.as_ref() != Some(&now) {
            show(&now)?;
            shown = Some(now);
        }
        sleep(PAUSE);
    }
}
