//! A case: bytes that are models and what is done with them.

use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::choices::Choices;
use crate::cluster::Outcome;
use crate::driver::Driver;
use crate::measure::Cost;

/// What a case came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// What every command took.
    pub costs: Vec<Cost>,
    /// What was done.
    pub story: Story,
    /// The promise that was broken, if one was.
    pub failure: Option<Failure>,
}

/// A case in a form to be read.
#[derive(Clone, Debug)]
pub struct Story {
    /// The files that were deployed, with their names.
    pub files: Vec<(String, String)>,
    /// What was done.
    pub steps: Vec<String>,
}

impl fmt::Display for Story {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, content)) in self.files.iter().enumerate() {
            writeln!(formatter, "--- file {number}, {name}\n{content}\n")?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(formatter, "{number}. {step}")?;
        }
        Ok(())
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl Failure {
    /// The reason without numbers: it tells failures apart from each other.
    pub fn kind(&self) -> String {
        let kind: String = self.0.chars().filter(|character| !character.is_ascii_digit()).collect();
        kind.chars().take(120).collect()
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_WATCHED: RefCell<bool> = const { RefCell::new(false) };
}

/// A panic of a case is a finding; it is told with its place when the case ends, not before.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_WATCHED.with(|is_watched| *is_watched.borrow()) {
                PANIC.with(|text| {
                    // The engine catches a panic and goes on with it: the first place is the right one.
                    text.borrow_mut().get_or_insert_with(|| info.to_string());
                });
            } else {
                usual(info);
            }
        }));
    });
}

/// What is wrong after this work.
fn failure_of(work: impl FnOnce() -> Outcome) -> Option<Failure> {
    watch_panics();
    PANIC.with(|text| *text.borrow_mut() = None);
    IS_WATCHED.with(|is_watched| *is_watched.borrow_mut() = true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_WATCHED.with(|is_watched| *is_watched.borrow_mut() = false);
    match outcome {
        Ok(Ok(())) => None,
        Ok(Err(broken)) => Some(Failure(broken.0)),
        Err(_) => {
            let told = PANIC.with(|text| text.borrow_mut().take());
            Some(Failure(told.unwrap_or_else(|| "a panic without a word".to_owned())))
        }
    }
}

/// Runs the case of these bytes to its end, or to the first promise that is broken.
pub fn run(bytes: &[u8]) -> Report {
    let share = usize::from(bytes.first().copied().unwrap_or(0)) + 64;
    let (models, driver) = bytes.split_at((bytes.len() * share / 384).min(bytes.len()));
    let mut models = Choices::new(models.get(1..).unwrap_or(&[]));
    let mut driver = Driver::new(&mut models, Choices::new(driver));
    let failure = failure_of(|| driver.run());
    let (files, steps) = (std::mem::take(&mut driver.files), std::mem::take(&mut driver.steps));
    let costs = std::mem::take(&mut driver.cluster.costs);
    Report { costs, story: Story { files, steps }, failure }
}

#[cfg(test)]
mod tests {
    use super::failure_of;

    #[test]
    fn a_panic_is_told_with_its_place_and_the_first_of_several_counts() {
        let failure = failure_of(|| {
            let _ = std::panic::catch_unwind(|| panic!("planted"));
            panic!("the second one");
        });
        let failure = failure.expect("a failure");
        assert!(failure.0.contains("planted") && failure.0.contains("case.rs"), "{}", failure.0);
        assert_eq!(failure_of(|| Ok(())), None);
        let overflow = failure_of(|| {
            let large = std::hint::black_box(i64::MAX);
            std::hint::black_box(large + std::hint::black_box(1));
            Ok(())
        });
        assert!(overflow.expect("a failure").0.contains("overflow"));
    }
}
