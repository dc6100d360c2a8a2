//! A node of the cluster, as far as feature levels need to know it.

use engine::FeatureLevel;

/// A node of the cluster, as it announced itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub node: u32,
    /// The newest feature level that its build knows.
    pub newest_level: u32,
}

impl Member {
    /// What a node of this build announces.
    pub(crate) const fn of(node: u32, newest_level: FeatureLevel) -> Member {
        Member { node, newest_level: newest_level.number() }
    }
}
