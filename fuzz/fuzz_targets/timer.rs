//! The text of a timer: refused, or due at times that do not go back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use bpmn::model::TimerKind;
use bpmn::timer::Timer;

fuzz_target!(|input: (i64, &str)| {
    let (now, text) = input;
    for kind in [TimerKind::Date, TimerKind::Duration, TimerKind::Cycle] {
        let Ok(timer) = Timer::parse(kind, text) else { continue };
        let mut due = timer.first_due(now);
        for _ in 0..5 {
            let Some(last) = due else { break };
            let seen = last.max(now);
            due = timer.next_due(last, seen);
            assert!(due.is_none_or(|next| next >= seen), "{text}: due at {due:?}, seen at {seen}");
        }
    }
});
