//! Whose doings are noted, and which of them.

use crate::enumerations::{AUDIT_CATEGORIES, AUDIT_ENTITY_TYPES, AUDIT_OPERATION_TYPES, number_of};

/// Something that can be noted: its place in [`DOINGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    CreateInstance,
    CancelInstance,
    ModifyInstance,
    MigrateInstance,
    CreateVariable,
    UpdateVariable,
    ResolveIncident,
    EvaluateDecision,
    CreateDecision,
    DeleteDecision,
    CreateResource,
    DeleteResource,
    AssignTask,
    UnassignTask,
    UpdateTask,
    CompleteTask,
}

/// The operation, what it is done with, and to what that belongs.
const DOINGS: [(&str, &str, &str); 16] = [
    ("CREATE", "PROCESS_INSTANCE", "DEPLOYED_RESOURCES"),
    ("CANCEL", "PROCESS_INSTANCE", "DEPLOYED_RESOURCES"),
    ("MODIFY", "PROCESS_INSTANCE", "DEPLOYED_RESOURCES"),
    ("MIGRATE", "PROCESS_INSTANCE", "DEPLOYED_RESOURCES"),
    ("CREATE", "VARIABLE", "DEPLOYED_RESOURCES"),
    ("UPDATE", "VARIABLE", "DEPLOYED_RESOURCES"),
    ("RESOLVE", "INCIDENT", "DEPLOYED_RESOURCES"),
    ("EVALUATE", "DECISION", "DEPLOYED_RESOURCES"),
    ("CREATE", "DECISION", "DEPLOYED_RESOURCES"),
    ("DELETE", "DECISION", "DEPLOYED_RESOURCES"),
    ("CREATE", "RESOURCE", "DEPLOYED_RESOURCES"),
    ("DELETE", "RESOURCE", "DEPLOYED_RESOURCES"),
    ("ASSIGN", "USER_TASK", "USER_TASKS"),
    ("UNASSIGN", "USER_TASK", "USER_TASKS"),
    ("UPDATE", "USER_TASK", "USER_TASKS"),
    ("COMPLETE", "USER_TASK", "USER_TASKS"),
];

impl Doing {
    fn names(self) -> (&'static str, &'static str, &'static str) {
        DOINGS[self as usize]
    }

    /// The numbers of the operation, of what it is done with, and of the category.
    pub fn numbers(self) -> (u8, u8, u8) {
        let (operation, entity, category) = self.names();
        let number = |enumeration, name| number_of(enumeration, name).unwrap_or_default();
        (
            number(AUDIT_OPERATION_TYPES, operation),
            number(AUDIT_ENTITY_TYPES, entity),
            number(AUDIT_CATEGORIES, category),
        )
    }
}

/// Doings that are noted: a bit for each of [`DOINGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted(u16);

impl Noted {
    /// Nothing.
    pub const NONE: Noted = Noted(0);
    /// Everything.
    pub const ALL: Noted = Noted(u16::MAX);

    /// Reads a list with commas between its words. A word adds the doings that it means, or takes them away behind `not`:
    /// `all`, `none`, a category, what they are done with, an operation, or both of these, as in `all, not create
    /// process-instance`. None when a word means nothing.
    pub fn read(list: &str) -> Option<Noted> {
        let mut noted = Noted::NONE;
        for word in list.split(',') {
            let word = word.trim().to_ascii_uppercase().replace('-', "_");
            match word.strip_prefix("NOT ") {
                Some(not) => noted.0 &= !Noted::meant_by(not.trim_start())?.0,
                None => noted.0 |= Noted::meant_by(&word)?.0,
            }
        }
        Some(noted)
    }

    fn meant_by(word: &str) -> Option<Noted> {
        match word {
            "ALL" => return Some(Noted::ALL),
            // Of that category, there is nothing to note yet.
            "NONE" | "ADMIN" => return Some(Noted::NONE),
            _ => {}
        }
        let bits = DOINGS.iter().enumerate().filter(|(_, (operation, entity, category))| {
            let both = word.split_once(' ').map(|(operation, entity)| (operation, entity.trim_start()));
            both.map_or([*operation, *entity, *category].contains(&word), |both| both == (*operation, *entity))
        });
        let bits = bits.fold(0, |bits, (at, _)| bits | 1 << at);
        (bits != 0).then_some(Noted(bits))
    }

    pub(crate) fn has(self, doing: Doing) -> bool {
        self.0 & 1 << doing as u16 != 0
    }

    const fn without(self, doing: Doing) -> Noted {
        Noted(self.0 & !(1 << doing as u16))
    }
}

/// What is noted of whose doings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audited {
    /// Of people who are logged in.
    pub users: Noted,
    /// Of programs that are logged in.
    pub clients: Noted,
    /// Of whoever is not logged in.
    pub anonymous: Noted,
    /// Of the engine itself.
    pub engine: Noted,
}

impl Audited {
    /// Whether this is noted of anybody.
    pub(crate) fn is_noted(&self, doing: Doing) -> bool {
        [self.users, self.clients, self.anonymous, self.engine].into_iter().any(|noted| noted.has(doing))
    }
}

impl Default for Audited {
    /// Of people everything, and of programs nothing. Who is not logged in may be one or the other, so what programs do all
    /// the time is left out, which would cost a row each time.
    fn default() -> Self {
        Audited {
            users: Noted::ALL,
            clients: Noted::NONE,
            anonymous: Noted::ALL.without(Doing::CreateInstance).without(Doing::EvaluateDecision),
            engine: Noted(
                1 << Doing::AssignTask as u16
                    | 1 << Doing::UnassignTask as u16
                    | 1 << Doing::UpdateTask as u16
                    | 1 << Doing::CompleteTask as u16,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_doing_has_its_names_and_their_numbers() {
        let all = [
            (Doing::CreateInstance, "CREATE PROCESS_INSTANCE"),
            (Doing::CancelInstance, "CANCEL PROCESS_INSTANCE"),
            (Doing::ModifyInstance, "MODIFY PROCESS_INSTANCE"),
            (Doing::MigrateInstance, "MIGRATE PROCESS_INSTANCE"),
            (Doing::CreateVariable, "CREATE VARIABLE"),
            (Doing::UpdateVariable, "UPDATE VARIABLE"),
            (Doing::ResolveIncident, "RESOLVE INCIDENT"),
            (Doing::EvaluateDecision, "EVALUATE DECISION"),
            (Doing::CreateDecision, "CREATE DECISION"),
            (Doing::DeleteDecision, "DELETE DECISION"),
            (Doing::CreateResource, "CREATE RESOURCE"),
            (Doing::DeleteResource, "DELETE RESOURCE"),
            (Doing::AssignTask, "ASSIGN USER_TASK"),
            (Doing::UnassignTask, "UNASSIGN USER_TASK"),
            (Doing::UpdateTask, "UPDATE USER_TASK"),
            (Doing::CompleteTask, "COMPLETE USER_TASK"),
        ];
        assert_eq!(all.len(), DOINGS.len());
        for (doing, names) in all {
            let (operation, entity, category) = doing.names();
            assert_eq!(format!("{operation} {entity}"), names);
            let (operation_number, entity_number, category_number) = doing.numbers();
            assert_eq!(AUDIT_OPERATION_TYPES[usize::from(operation_number)], operation);
            assert_eq!(AUDIT_ENTITY_TYPES[usize::from(entity_number)], entity);
            assert_eq!(AUDIT_CATEGORIES[usize::from(category_number)], category);
            let only = Noted::read(names).expect("it is understood");
            assert!(all.iter().all(|(other, _)| only.has(*other) == (*other == doing)), "{names}");
        }
    }

    #[test]
    fn a_list_adds_and_takes_away() {
        let default = Audited::default();
        for (list, expected) in [
            ("all", default.users),
            ("none", default.clients),
            ("all, not create process-instance, not evaluate decision", default.anonymous),
            ("USER_TASKS", default.engine),
            ("user-task", default.engine),
            ("deployed-resources,user-tasks,admin", Noted::ALL),
            ("not all", Noted::NONE),
            ("all, not all, cancel  process-instance", Noted(1 << Doing::CancelInstance as u16)),
            ("create, not decision, not resource, not create variable", Noted(1 << Doing::CreateInstance as u16)),
        ] {
            assert_eq!(Noted::read(list), Some(expected), "{list}");
        }
        for wrong in ["", "everything", "all,", "not", "create user-task", "create decision twice", "user tasks"] {
            assert_eq!(Noted::read(wrong), None, "{wrong}");
        }
    }
}
