//! Compares the behaviour of the engine with that of the reference engine (Zeebe 8.8) on written scenarios and random
//! models.
//!
//! A [`scenario`] is a list of [`steps`](step). A [`session`] carries them out on a [`driver`]: the engine of this
//! workspace in memory, or the reference engine as a child process. Keys and times never appear in a step or a trace: the
//! [`tracker`] gives every element instance a name that is the same on both sides, and the [`trace`] describes in these
//! names what happened, so that two traces can be compared line by line.
//!
//! [`expressions`] compares only the evaluation of random expressions, with the reference's FEEL engine, and [`tables`] that
//! of random decisions, with its decision engine.

pub mod compare;
pub mod driver;
pub mod expressions;
mod grammar;
mod line_by_line;
pub mod model;
pub mod ours;
pub mod random;

pub mod reference;
pub mod scenario;
pub mod session;
pub mod step;
pub mod tables;
pub mod trace;
pub mod tracker;

/// When every run begins, on both sides: 2030-01-01T00:00:00Z.
pub const START_MILLISECONDS: i64 = 1_893_456_000_000;
