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

/// So many elements are found again without a look at the tables.
const RECENT_SLOTS: usize = 256;

/// An element that was looked for before.
#[derive(Debug)]
struct Recent {
    definition: i64,
    element_id: Box<str>,
    element_type: u8,
    id: ElementId,
}

/// The elements of a definition, with their types: some are two with one id.
type ElementsById = HashMap<Box<str>, Vec<(u8, ElementId)>>;

/// All elements that records have named so far.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    elements: HashMap<i64, ElementsById>,
    /// Of each definition, the process itself.
    processes: HashMap<i64, ElementId>,
    names: HashMap<i64, HashMap<String, String>>,
    /// What was looked for last, each in the slot of its hash: records name the same elements again and again.
    recent: Vec<Option<Recent>>,
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
        // What has no type may mean another one now.
        self.recent.clear();
    }

    /// The process of a definition, if an instance of it was seen.
    pub fn process(&self, definition: i64) -> Option<ElementId> {
        self.processes.get(&definition).copied()
    }

    /// Whether an element is a process. That takes a look at all of them.
    pub fn is_process(&self, element: ElementId) -> bool {
        self.processes.values().any(|process| *process == element)
    }

    /// The number of an element that a record has named before.
    pub fn known(&mut self, definition: i64, element_id: &str, element_type: u8) -> Option<ElementId> {
        let slot = slot_of(definition, element_id, element_type);
        if let Some(Some(recent)) = self.recent.get(slot)
            && (recent.definition, recent.element_type, &*recent.element_id) == (definition, element_type, element_id)
        {
            return Some(recent.id);
        }
        let id = self.look_up(definition, element_id, element_type)?;
        self.recent.resize_with(RECENT_SLOTS, || None);
        self.recent[slot] = Some(Recent { definition, element_id: element_id.into(), element_type, id });
        Some(id)
    }

    fn look_up(&self, definition: i64, element_id: &str, element_type: u8) -> Option<ElementId> {
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

/// By the definition and the type, and by length, beginning and end of the id.
fn slot_of(definition: i64, element_id: &str, element_type: u8) -> usize {
    let id = element_id.as_bytes();
    let ends = match (id.first_chunk(), id.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(17),
        _ => id.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    };
    let rest = definition.cast_unsigned() ^ (id.len() as u64) << 32 ^ u64::from(element_type) << 56;
    let hash = (ends ^ rest.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> (u64::BITS - RECENT_SLOTS.ilog2())) as usize
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn an_element_is_the_same_however_often_it_is_looked_for() {
        for opened in testing::both() {
            let database = &opened.store.database;
            let mut dictionary = Dictionary::default();
            let mut element = |id: &str, of: u8| dictionary.element(database, 7, id, of).expect("it is written");
            let (body, is_new) = element("loop", LOOP_BODY);
            assert!(is_new);
            assert_eq!([element("loop", UNSPECIFIED), element("loop", UNSPECIFIED)], [(body, false); 2]);
            let (inner, is_new) = element("loop", 9);
            assert!(is_new && inner != body);
            assert_eq!(element("loop", UNSPECIFIED), (inner, false), "what is repeated has come to be known");
            // More than are kept at hand.
            let ids: Vec<String> = (0..2 * RECENT_SLOTS).map(|number| format!("element-{number}")).collect();
            let known: Vec<ElementId> = ids.iter().map(|id| element(id, 9).0).collect();
            for (id, known) in ids.iter().zip(&known) {
                assert_eq!([element(id, 9), element(id, 9)], [(*known, false); 2]);
            }
            let mut again = Dictionary::read(database).expect("they are read");
            assert_eq!(
                ids.iter().map(|id| again.known(7, id, 9)).collect::<Vec<_>>(),
                known.into_iter().map(Some).collect::<Vec<_>>()
            );
            assert_eq!((again.known(8, "loop", 9), again.known(7, "loop", 8)), (None, None));
        }
    }
}
