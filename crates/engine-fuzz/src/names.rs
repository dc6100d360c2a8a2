//! The names that models and drivers have in common, so that they meet.

use crate::choices::Choices;

/// Processes that call each other.
pub const PROCESSES: &[&str] = &["p0", "p1", "p2"];
/// Decisions, each of which may require those before it.
pub const DECISIONS: &[&str] = &["d0", "d1", "d2", "d3"];
/// Messages.
pub const MESSAGES: &[&str] = &["m0", "m1", "m2"];
/// Signals.
pub const SIGNALS: &[&str] = &["s0", "s1"];
/// Codes of errors.
pub const ERRORS: &[&str] = &["E0", "E1", "E2"];
/// Codes of escalations.
pub const ESCALATIONS: &[&str] = &["X0", "X1"];
/// Types of jobs.
pub const JOB_TYPES: &[&str] = &["j0", "j1", "j2"];
/// Correlation keys.
pub const KEYS: &[&str] = &["k0", "k1", ""];
/// Version tags.
pub const TAGS: &[&str] = &["t0", "t1"];
/// Variables that expressions read and mappings write.
pub const VARIABLES: &[&str] =
    &["n", "items", "key", "text", "item", "choice", "document", "results", "table", "s", "i", "a.b", "document.a.b.c"];

/// One of these names, or now and then one that is long or strange.
pub fn name(choices: &mut Choices<'_>, among: &[&str]) -> String {
    let name = choices.pick(among);
    match choices.byte() {
        251..=252 => format!("{name}{}", "x".repeat(choices.below(560))),
        253 => format!("{name}{}", "\u{10FFFD}".repeat(choices.below(140))),
        254 => format!("{name} 😀\t{name}"),
        255 => match choices.below(4) {
            0 => String::new(),
            _ => "\\u0001\"'{}".repeat(1 + choices.below(70)),
        },
        _ => name.to_owned(),
    }
}
