//! Types that the caller defines, for `instance of`.

use std::sync::Arc;

use crate::value::Value;

/// A type with a name that is not one of FEEL's own, for instance an item definition of a DMN file.
pub trait DefinedType: Send + Sync {
    /// Whether the value is of this type. Each step of work is taken from the budget; without budget, nothing is.
    fn contains(&self, value: &Value, budget: &mut usize) -> bool;
}

/// A defined type where an expression names it.
#[derive(Clone)]
pub(crate) struct Defined(pub(crate) Arc<dyn DefinedType>);

impl std::fmt::Debug for Defined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Defined")
    }
}

impl PartialEq for Defined {
    fn eq(&self, other: &Defined) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Defined {}
