//! Events that would compete for the same message, error or escalation.

use crate::compile::Draft;
use crate::report::Problems;

/// Reports events of one scope of which more than one would catch the same.
pub(crate) fn check(_draft: &Draft, _problems: &mut Problems) {}
