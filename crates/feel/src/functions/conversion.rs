//! Functions on conversions.

use super::Builtin;

pub(super) const FUNCTIONS: &[Builtin] = &[];
