//! Records of element instances, for those who read nothing else of them: most records are such.

use minicbor::decode::{Decoder, Error};

use crate::record::pass_operation_reference;
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
        Self::read(&mut Decoder::new(encoded)).ok().flatten()
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

    fn read(decoder: &mut Decoder<'a>) -> Result<Option<ElementEvent<'a>>, Error> {
        decoder.array()?;
        let (_position, _number, _source_position) = (decoder.u64()?, decoder.u64()?, decoder.u64()?);
        let (key, timestamp) = (decoder.decode()?, decoder.i64()?);
        decoder.array()?;
        if decoder.u32()? != 0 {
            // A refusal.
            return Ok(None);
        }
        // An event has nothing with it.
        decoder.array()?;
        pass_operation_reference(decoder)?;
        decoder.array()?;
        if decoder.u32()? != ValueType::ProcessInstance as u32 {
            return Ok(None);
        }
        decoder.array()?;
        let intent = decoder.decode()?;
        decoder.array()?;
        // The id of the process, and its version.
        decoder.str()?;
        decoder.i32()?;
        Ok(Some(ElementEvent {
            key,
            timestamp,
            intent,
            process_definition_key: decoder.decode()?,
            process_instance_key: decoder.decode()?,
            element_id: decoder.str()?,
            flow_scope_key: decoder.decode()?,
            bpmn_element_type: decoder.decode()?,
        }))
    }
}
