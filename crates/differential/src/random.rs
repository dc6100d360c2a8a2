//! Random block-structured models under a random driver, the same on both sides. A seed gives the same model and, as long
//! as the reference does the same, the same steps.

mod choice;
mod known;
mod model;
mod run;
mod shrink;

pub use model::{FEATURES, Features};
pub use run::{Case, Finding, Outcome, Sides, replay, run};
pub use shrink::shrink;
