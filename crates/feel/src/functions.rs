//! The built-in functions: one table, one file per family.

mod boolean;
pub(crate) mod builtin;
mod context;
mod conversion;
mod list;
mod number;
mod random;
mod range;
mod string;
mod temporal;

use builtin::Builtin;

pub(crate) use temporal::{property, temporal_literal};

const FAMILIES: [&[Builtin]; 11] = [
    boolean::FUNCTIONS,
    context::FUNCTIONS,
    conversion::FUNCTIONS,
    list::FUNCTIONS,
    list::AGGREGATES,
    list::ORDERS,
    number::FUNCTIONS,
    random::FUNCTIONS,
    range::FUNCTIONS,
    string::FUNCTIONS,
    temporal::FUNCTIONS,
];

/// The built-in function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    FAMILIES.iter().flat_map(|family| family.iter()).find(|builtin| builtin.name == name)
}
