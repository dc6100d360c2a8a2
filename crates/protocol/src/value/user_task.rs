//! Values about user tasks.

use minicbor::{Decode, Encode};
use serde::Serialize;

use super::json;
use crate::{Key, Request, Text, Timestamp};

/// Work for a person, which the engine itself leads through its life. In a command, the attributes are what is wished for.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserTaskValue {
    /// This task.
    #[n(0)]
    pub user_task_key: Key,
    /// Who is to do it; empty for nobody.
    #[n(1)]
    pub assignee: Text,
    /// Groups whose members may do it.
    #[n(2)]
    pub candidate_groups_list: Vec<Text>,
    /// Who may do it.
    #[n(3)]
    pub candidate_users_list: Vec<Text>,
    /// A date-time with an offset, as in `2030-01-01T00:00Z`; empty when there is none.
    #[n(4)]
    pub due_date: Text,
    /// Like the due date.
    #[n(5)]
    pub follow_up_date: Text,
    /// The form of this engine; none when there is none.
    #[n(6)]
    pub form_key: Key,
    /// Attributes that the command changes, in ascending order, by their names in the record schema.
    #[n(7)]
    pub changed_attributes: Vec<Text>,
    /// What the person did, in the words of the application.
    #[n(8)]
    pub action: Text,
    /// A form elsewhere.
    #[n(9)]
    pub external_form_reference: Text,
    /// Headers from the model, a JSON object.
    #[n(10)]
    #[serde(serialize_with = "json")]
    pub custom_headers: Text,
    /// When it began; -1 in commands.
    #[n(11)]
    pub creation_timestamp: Timestamp,
    /// BPMN id of the element.
    #[n(12)]
    pub element_id: Text,
    #[n(13)]
    pub element_instance_key: Key,
    #[n(14)]
    pub bpmn_process_id: Text,
    /// Version of the definition.
    #[n(15)]
    pub process_definition_version: i32,
    #[n(16)]
    pub process_definition_key: Key,
    /// From 0 to 100.
    #[n(17)]
    pub priority: i32,
    #[n(18)]
    pub process_instance_key: Key,
    /// Variables that come with a completion, a JSON object.
    #[n(19)]
    #[serde(serialize_with = "json")]
    pub variables: Text,
    #[n(20)]
    pub tenant_id: Text,
    /// Why a listener denied the transition.
    #[n(21)]
    pub denied_reason: Text,
    /// Who is answered when the listeners of the transition are done; set only in the event that begins it.
    #[n(22)]
    #[serde(skip)]
    pub awaiting: Option<Request>,
}

impl UserTaskValue {
    /// The priority of a task that says none.
    pub const DEFAULT_PRIORITY: i32 = 50;
}

impl Default for UserTaskValue {
    fn default() -> Self {
        UserTaskValue {
            user_task_key: Key::NONE,
            assignee: Text::default(),
            candidate_groups_list: Vec::new(),
            candidate_users_list: Vec::new(),
            due_date: Text::default(),
            follow_up_date: Text::default(),
            form_key: Key::NONE,
            changed_attributes: Vec::new(),
            action: Text::default(),
            external_form_reference: Text::default(),
            custom_headers: Text::default(),
            creation_timestamp: -1,
            element_id: Text::default(),
            element_instance_key: Key::NONE,
            bpmn_process_id: Text::default(),
            process_definition_version: -1,
            process_definition_key: Key::NONE,
            priority: UserTaskValue::DEFAULT_PRIORITY,
            process_instance_key: Key::NONE,
            variables: Text::default(),
            tenant_id: Text::default(),
            denied_reason: Text::default(),
            awaiting: None,
        }
    }
}
