//! Functions on strings.

use super::Builtin;

pub(super) const FUNCTIONS: &[Builtin] = &[];
