//! Records of element instances, for those who read nothing else of them: most records are such.

use crate::fields::Fields;
use crate::record;
use crate::{BpmnElementType, Key, Payload, ProcessInstanceIntent, Record, RecordType, Timestamp, ValueType};

/// What happened to an element instance, or the taking of a sequence flow, read without the rest of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementEvent<'a> {
    /// The element instance, or what stands for the flow that was taken.
    pub key: Key,
    /// When it happened.
    pub timestamp: Timestamp,
    /// What.
    pub intent: ProcessInstanceIntent,
    /// The definition of the process.
    pub process_definition_key: Key,
    /// The process instance.
    pub process_instance_key: Key,
    /// BPMN id of the element.
    pub element_id: &'a str,
    /// The element instance that contains this one.
    pub flow_scope_key: Key,
    /// Type of the element.
    pub bpmn_element_type: BpmnElementType,
}

impl<'a> ElementEvent<'a> {
    /// What the record that `encoded` begins with says; none when it is another one, or cannot be read.
    pub fn peek(encoded: &'a [u8]) -> Option<ElementEvent<'a>> {
        let mut fields = Fields::of(encoded);
        let (key, timestamp, is_event) = record::begin(&mut fields)?;
        if !is_event || fields.unsigned()? != ValueType::ProcessInstance as u64 {
            return None;
        }
        fields.array()?;
        let intent = fields.value()?;
        fields.array()?;
        // The id of the process, and its version.
        fields.pass()?;
        fields.pass()?;
        Some(ElementEvent {
            key,
            timestamp,
            intent,
            process_definition_key: fields.key()?,
            process_instance_key: fields.key()?,
            element_id: fields.text()?,
            flow_scope_key: fields.key()?,
            bpmn_element_type: fields.value()?,
        })
    }

    /// What a record says; none when it is about something else.
    pub fn of(record: &'a Record) -> Option<ElementEvent<'a>> {
        let (Payload::ProcessInstance(intent, value), RecordType::Event) = (&record.payload, &record.record_type)
        else {
            return None;
        };
        Some(ElementEvent {
            key: record.key,
            timestamp: record.timestamp,
            intent: *intent,
            process_definition_key: value.process_definition_key,
            process_instance_key: value.process_instance_key,
            element_id: &value.element_id,
            flow_scope_key: value.flow_scope_key,
            bpmn_element_type: value.bpmn_element_type,
        })
    }
}
