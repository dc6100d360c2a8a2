//! Functions on contexts.

use super::Builtin;

pub(super) const FUNCTIONS: &[Builtin] = &[];
