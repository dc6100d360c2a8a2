//! Events.

use model_builder::xml::{escape, tag};

use super::{DEPTH_MAX, Exit, Writer, extensions};
use crate::names::{ERRORS, ESCALATIONS, KEYS, MESSAGES, SIGNALS, name};

/// Timers that are due once.
const TIMERS: &[(&str, &str)] = &[
    ("timeDuration", "PT0S"),
    ("timeDuration", "PT10S"),
    ("timeDuration", "PT20S"),
    ("timeDuration", "P1D"),
    ("timeDate", "2020-01-01T00:00:00Z"),
    ("timeDuration", "=duration(\"PT1S\")"),
    ("timeDuration", "=text"),
    ("timeDate", "=now()"),
    ("timeDate", "9999-12-31T23:59:59Z"),
    ("timeDuration", "P9999999999Y"),
    ("timeDuration", "-PT1S"),
    ("timeDuration", "PT9223372036854775807S"),
    ("timeDuration", "=string join(for x in 1..1000000 return \"P1D\")"),
];
/// Timers that are due again and again.
const CYCLES: &[&str] = &[
    "R3/PT10S",
    "R/PT0S",
    "R/PT0.001S",
    "R/PT20S",
    "R1000000/2000-01-01T00:00:00Z/PT1S",
    "R2147483647/PT1H",
    "0 0/5 * * * *",
    "*/1 * * * * *",
    "0 0 0 29 2 ?",
    "=cycle(duration(\"PT1S\"))",
    "=cycle(3, duration(\"PT0S\"))",
    "=text",
    "R0/PT1S",
];

impl Writer<'_, '_> {
    /// The id of a message, which is written if it is new.
    pub(super) fn message(&mut self, has_key: bool) -> String {
        let named = match self.choices.percent(6) {
            true => self.expression('s'),
            false => name(self.choices, MESSAGES),
        };
        let key = match self.choices.below(10) {
            7 => self.expression('a'),
            8 => format!("=\"{}\"", self.choices.pick(KEYS)),
            9 => "=text".to_owned(),
            _ => "=key".to_owned(),
        };
        let id = format!("message{}", self.known.len());
        self.known.insert(id.clone());
        let subscription = tag("zeebe:subscription", &[("correlationKey", &key)], "");
        let content = if has_key { extensions(&subscription) } else { String::new() };
        self.roots += &tag("bpmn:message", &[("id", &id), ("name", &named)], &content);
        id
    }

    fn message_definition(&mut self, has_key: bool) -> String {
        let id = self.message(has_key);
        tag("bpmn:messageEventDefinition", &[("messageRef", &id)], "")
    }

    fn signal_definition(&mut self, may_be_computed: bool) -> String {
        let named = match may_be_computed && self.choices.percent(10) {
            true => self.expression('s'),
            false => name(self.choices, SIGNALS),
        };
        let id = format!("signal{}", self.known.len());
        self.known.insert(id.clone());
        self.roots += &tag("bpmn:signal", &[("id", &id), ("name", &named)], "");
        tag("bpmn:signalEventDefinition", &[("signalRef", &id)], "")
    }

    fn timer_definition(&mut self, may_repeat: bool) -> String {
        let (kind, text) = match may_repeat && self.choices.percent(60) {
            true => ("timeCycle", self.choices.pick(CYCLES)),
            false => self.choices.pick(TIMERS),
        };
        let text = match self.choices.percent(4) {
            true => self.expression(*['d', 's'].get(usize::from(kind == "timeCycle")).unwrap_or(&'d')),
            false => text.to_owned(),
        };
        tag("bpmn:timerEventDefinition", &[], &tag(&format!("bpmn:{kind}"), &[], &escape(&text)))
    }

    /// The definition of an error or escalation with a code, or with none where it is caught.
    fn code_definition(&mut self, kind: &str, is_thrown: bool) -> String {
        let codes = if kind == "error" { ERRORS } else { ESCALATIONS };
        let definition = format!("bpmn:{kind}EventDefinition");
        if !is_thrown && self.choices.percent(25) {
            return tag(&definition, &[], "");
        }
        let code = match is_thrown && self.choices.percent(15) {
            true => self.expression('s'),
            false => name(self.choices, codes),
        };
        let id = format!("{kind}{}", self.known.len());
        self.known.insert(id.clone());
        self.roots += &tag(&format!("bpmn:{kind}"), &[("id", &id), (&format!("{kind}Code"), &code)], "");
        tag(&definition, &[(&format!("{kind}Ref"), &id)], "")
    }

    /// A start event of a process that waits for something.
    pub(super) fn start_event(&mut self, scope: &mut String) -> Exit {
        let id = self.id("start");
        let definition = match self.choices.below(5) {
            0 => self.message_definition(false),
            1 => self.signal_definition(false),
            4 => self.conditional_definition(),
            _ => self.timer_definition(true),
        };
        let mappings = self.mappings(false);
        *scope += &tag("bpmn:startEvent", &[("id", &id)], &(extensions(&mappings) + &definition));
        self.exit(&id)
    }

    /// What a boundary event or event sub-process waits for, and whether it interrupts. From most activities no escalation
    /// comes.
    fn trigger(&mut self, escalates: bool) -> (String, bool) {
        let is_interrupting = self.choices.percent(50);
        match self.choices.below(if escalates { 6 } else { 5 }) {
            0 => (self.timer_definition(!is_interrupting), is_interrupting),
            1 => (self.message_definition(true), is_interrupting),
            2 => (self.code_definition("error", false), true),
            3 => (self.signal_definition(true), is_interrupting),
            4 => (self.conditional_definition(), is_interrupting),
            _ => (self.code_definition("escalation", false), is_interrupting),
        }
    }

    pub(super) fn boundary_event(&mut self, scope: &mut String, activity: &str, kind: &str, depth: usize) {
        let id = self.id("boundary");
        let (definition, is_interrupting) = self.trigger(matches!(kind, "subProcess" | "callActivity"));
        let mappings = self.mappings(false);
        let mut attributes = vec![("id", id.as_str()), ("attachedToRef", activity)];
        if !is_interrupting {
            attributes.push(("cancelActivity", "false"));
        }
        *scope += &tag("bpmn:boundaryEvent", &attributes, &(extensions(&mappings) + &definition));
        if depth >= DEPTH_MAX {
            return;
        }
        let exit = self.exit(&id);
        if let Some(exit) = self.blocks(scope, exit, depth + 1) {
            self.end_event(scope, exit);
        }
    }

    pub(super) fn event_sub_process(&mut self, depth: usize) -> String {
        let (id, start) = (self.id("event"), self.id("start"));
        let (definition, is_interrupting) = self.trigger(true);
        let mappings = self.mappings(false);
        let mut attributes = vec![("id", start.as_str())];
        if !is_interrupting {
            attributes.push(("isInterrupting", "false"));
        }
        let mut content = tag("bpmn:startEvent", &attributes, &(extensions(&mappings) + &definition));
        let exit = self.exit(&start);
        self.path(&mut content, vec![exit], depth + 1);
        while self.elements_left > 0 && depth + 1 < DEPTH_MAX && self.choices.percent(25) {
            let inside = self.event_sub_process(depth + 1);
            content += &inside;
        }
        tag("bpmn:subProcess", &[("id", &id), ("triggeredByEvent", "true")], &content)
    }

    pub(super) fn catch_event(&mut self, scope: &mut String, from: Exit, _depth: usize) -> Option<Exit> {
        Some(self.catch(scope, from))
    }

    pub(super) fn catch(&mut self, scope: &mut String, from: Exit) -> Exit {
        let definition = match self.choices.below(4) {
            0 => self.timer_definition(false),
            3 => self.conditional_definition(),
            1 => self.signal_definition(true),
            _ => self.message_definition(true),
        };
        let mappings = self.mappings(false) + &self.execution_listeners();
        self.node(scope, from, "intermediateCatchEvent", &[], &(extensions(&mappings) + &definition))
    }

    pub(super) fn throw_event(&mut self, scope: &mut String, from: Exit, _depth: usize) -> Option<Exit> {
        let content = match self.choices.below(5) {
            0 => String::new(),
            3 => Self::compensate_definition(),
            4 => {
                let mappings = self.mappings(true);
                extensions(&mappings) + &self.signal_definition(true)
            }
            1 => self.code_definition("escalation", true),
            _ => {
                let definition = self.task_definition();
                let mappings = self.mappings(true);
                extensions(&format!("{definition}{mappings}")) + &self.message_definition(false)
            }
        };
        Some(self.node(scope, from, "intermediateThrowEvent", &[], &content))
    }

    /// A throw event whose token goes on at the catch event of its link.
    pub(super) fn link(&mut self, scope: &mut String, from: Exit, _depth: usize) -> Option<Exit> {
        let id = self.id("link");
        let definition = tag("bpmn:linkEventDefinition", &[("id", &format!("{id}-throw")), ("name", &id)], "");
        self.connect(scope, from, &id);
        *scope += &tag("bpmn:intermediateThrowEvent", &[("id", &id)], &definition);
        let catch = self.id("arrival");
        let definition = tag("bpmn:linkEventDefinition", &[("id", &format!("{id}-catch")), ("name", &id)], "");
        *scope += &tag("bpmn:intermediateCatchEvent", &[("id", &catch)], &definition);
        Some(self.exit(&catch))
    }

    pub(super) fn end_event(&mut self, scope: &mut String, from: Exit) {
        let content = match self.choices.below(14) {
            12 => Self::compensate_definition(),
            13 => self.signal_definition(true),
            7 => self.code_definition("error", true),
            8 => self.code_definition("escalation", true),
            9 => tag("bpmn:terminateEventDefinition", &[], ""),
            10 => {
                let definition = self.task_definition();
                extensions(&definition) + &self.message_definition(false)
            }
            11 => {
                let mappings = self.mappings(false) + &self.execution_listeners();
                extensions(&mappings)
            }
            _ => String::new(),
        };
        let id = self.id("end");
        self.connect(scope, from, &id);
        *scope += &tag("bpmn:endEvent", &[("id", &id)], &content);
    }

    pub(super) fn path_that_ends(&mut self, scope: &mut String, from: Exit, _depth: usize) -> Option<Exit> {
        self.end_event(scope, from);
        None
    }
}
