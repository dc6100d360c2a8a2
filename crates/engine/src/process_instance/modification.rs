//! What a modification asks for, and whether it can be done.

pub(super) mod check;
pub(super) mod instructions;
