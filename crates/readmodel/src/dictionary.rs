//! The elements of definitions by number: rows name an element by a small number instead of by three texts.

use std::collections::HashMap;

use crate::database::{Bound, Database, Result};
use crate::enumerations::PROCESS;

/// The number of an element in the tables of its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ElementId(pub i64);

/// What has no type in records that only name an element.
pub(crate) const UNSPECIFIED: u8 = 0;
/// An element with a loop is two: its body, and what is repeated.
const LOOP_BODY: u8 = 19;
/// The names of so many definitions are kept.
const NAMED_DEFINITIONS_MAX: usize = 64;

/// The elements of a definition, with their types: some are two with one id.
type ElementsById = HashMap<Box<str>, Vec<(u8, ElementId)>>;

/// All elements that records have named so far.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    elements: HashMap<i64, ElementsById>,
    /// Of each definition, the process itself.
    processes: HashMap<i64, ElementId>,
    names: HashMap<i64, HashMap<String, String>>,
}

impl Dictionary {
    /// Those that were written.
    pub fn read(database: &Database) -> Result<Dictionary> {
        let mut dictionary = Dictionary::default();
        database.query("SELECT id, process_definition_key, element_id, type FROM element", &[], |row| {
            let element_id: String = row.get(2)?;
            dictionary.insert(row.get(1)?, &element_id, row.get(3)?, ElementId(row.get(0)?));
            Ok(())
        })?;
        Ok(dictionary)
    }

    fn insert(&mut self, definition: i64, element_id: &str, element_type: u8, id: ElementId) {
        if element_type == PROCESS {
            self.processes.insert(definition, id);
        }
        self.elements.entry(definition).or_default().entry(element_id.into()).or_default().push((element_type, id));
    }

    /// The process of a definition, if an instance of it was seen.
    pub fn process(&self, definition: i64) -> Option<ElementId> {
        self.processes.get(&definition).copied()
    }

    /// The number of an element that a record has named before.
    pub fn known(&self, definition: i64, element_id: &str, element_type: u8) -> Option<ElementId> {
        let known = self.elements.get(&definition)?.get(element_id)?;
        let found = if element_type == UNSPECIFIED {
            known.iter().find(|(known, _)| *known != LOOP_BODY).or(known.first())
        } else {
            known.iter().find(|(known, _)| *known == element_type)
        };
        found.map(|(_, id)| *id)
    }

    /// The number of an element; `true` when it is new.
    pub fn element(
        &mut self,
        database: &Database,
        definition: i64,
        element_id: &str,
        element_type: u8,
    ) -> Result<(ElementId, bool)> {
        if let Some(id) = self.known(definition, element_id, element_type) {
            return Ok((id, false));
        }
        let name = self.name(database, definition, element_id)?;
        let insert = "INSERT INTO element(process_definition_key, element_id, name, type, active, completed, canceled, \
                      incidents) VALUES (?, ?, ?, ?, 0, 0, 0, 0)";
        let values: [Bound<'_>; 4] =
            [definition.into(), element_id.into(), name.as_deref().into(), element_type.into()];
        let id = ElementId(database.insert(insert, "id", &values)?);
        self.insert(definition, element_id, element_type, id);
        Ok((id, true))
    }

    /// What the model calls it.
    fn name(&mut self, database: &Database, definition: i64, element_id: &str) -> Result<Option<String>> {
        if !self.names.contains_key(&definition) {
            if self.names.len() >= NAMED_DEFINITIONS_MAX {
                self.names.clear();
            }
            let select = "SELECT xml FROM process_definition WHERE key = ?";
            let xml: Option<Option<Vec<u8>>> = database.first(select, &[definition.into()], |row| row.get(0))?;
            let names = xml.flatten().map(|xml| names_of(&xml)).unwrap_or_default();
            self.names.insert(definition, names);
        }
        Ok(self.names.get(&definition).and_then(|names| names.get(element_id)).cloned())
    }
}

/// The names of everything in a model that has an id and a name.
pub(crate) fn names_of(model: &[u8]) -> HashMap<String, String> {
    const NO_ADVICE: model_file::Advice = model_file::Advice { too_large: "", too_deep: "" };
    // It was deployed, so it can be read; a name is not worth a failure.
    let Ok(text) = model_file::decode(model, &NO_ADVICE) else { return HashMap::new() };
    let Ok(document) = model_file::parse(&text, &NO_ADVICE) else { return HashMap::new() };
    let named = document.descendants().filter_map(|node| {
        let (id, name) = (node.attribute("id")?, node.attribute("name")?);
        Some((id.to_owned(), name.to_owned()))
    });
    named.filter(|(_, name)| !name.is_empty()).collect()
}
