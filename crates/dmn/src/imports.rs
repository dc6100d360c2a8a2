//! The imports of a file: which of the given models they mean, and under which names.

use std::collections::BTreeMap;
use std::sync::Arc;

use roxmltree::Node;

use crate::model::Graph;
use crate::types::Types;
use crate::xml::{children, present};

/// The imports of a file for which a model is given, by its namespace.
pub(crate) struct Imports<'a> {
    found: BTreeMap<&'a str, Import<'a>>,
    /// Whether any model is given at all.
    any_given: bool,
}

/// The name under which the elements of a model are known. If it is empty, they are known by their own names.
pub(crate) struct Import<'a> {
    text: &'a str,
    pub(crate) name: Arc<str>,
    pub(crate) graph: &'a Arc<Graph>,
}

impl<'a> Imports<'a> {
    /// Of several models or imports with the same namespace the first counts.
    pub(crate) fn read(root: Node<'a, '_>, given: &'a [Arc<Graph>]) -> Imports<'a> {
        let mut names: BTreeMap<&str, &'a str> = BTreeMap::new();
        for import in children(root, "import") {
            if let Some(namespace) = present(import, "namespace") {
                names.entry(namespace).or_insert_with(|| present(import, "name").unwrap_or_default());
            }
        }
        let mut found = BTreeMap::new();
        for graph in given {
            if let Some(text) = names.get(&*graph.namespace) {
                let import = || Import { text, name: Arc::from(*text), graph };
                found.entry(&*graph.namespace).or_insert_with(import);
            }
        }
        Imports { found, any_given: !given.is_empty() }
    }

    /// The error completes a sentence after "but".
    pub(crate) fn of_namespace(&self, namespace: &str) -> Result<&Import<'a>, &'static str> {
        match self.found.get(namespace) {
            Some(import) => Ok(import),
            None if self.any_given => {
                Err("no such model is both imported and given. Add an import, give the model, or copy what it needs \
                     into this file")
            }
            None => Err("imports are not supported. Copy what it needs into this file"),
        }
    }

    /// The names that expressions recognise because of the imports.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.found.values().flat_map(|import| std::iter::once(import.text).chain(import.graph.names.iter()))
    }

    /// The types of the models, by the names of the imports.
    pub(crate) fn types(&self) -> impl Iterator<Item = (&Arc<str>, &'a Arc<Types>)> {
        self.found.values().map(|import| (&import.name, &import.graph.types))
    }
}
