//! Functions on numbers.

use super::Builtin;

pub(super) const FUNCTIONS: &[Builtin] = &[];
