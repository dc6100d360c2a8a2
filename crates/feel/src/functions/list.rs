//! Functions on lists.

use super::Builtin;

pub(super) const FUNCTIONS: &[Builtin] = &[];
