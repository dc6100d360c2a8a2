//! Events of the builder.

use crate::process::ProcessBuilder;
use crate::xml::{expression, tag};

/// What an event waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A timer that is due after a duration.
    Duration(&'a str),
    /// A timer that is due at a date.
    Date(&'a str),
    /// A timer that is due several times.
    Cycle(&'a str),
    /// A message with its name and correlation key; start events of processes need no key.
    Message(&'a str, &'a str),
    /// An error with this code; any error if the code is empty.
    Error(&'a str),
    /// An escalation with this code; any escalation if the code is empty.
    Escalation(&'a str),
    /// A signal with this name (an expression if it starts with `=`).
    Signal(&'a str),
    /// A condition, and what must happen to a variable (both, if empty).
    Condition(&'a str, &'a str),
}

impl ProcessBuilder {
    /// Adds a start event that waits for something, of a process or of an event sub-process, connected to nothing before it.
    pub fn start_event(mut self, id: &str, event: Event) -> Self {
        self.cursor = None;
        self.element("startEvent", id).wait_for(event)
    }

    /// Adds an intermediate catch event (timer, message, signal or condition).
    pub fn catch_event(self, id: &str, event: Event) -> Self {
        self.element("intermediateCatchEvent", id).wait_for(event)
    }

    /// Attaches an interrupting boundary event to an activity and continues at the event.
    pub fn boundary(mut self, id: &str, attached_to: &str, event: Event) -> Self {
        self = self.move_to(attached_to);
        self.cursor = None;
        self = self.element("boundaryEvent", id);
        self.last().attributes.push(("attachedToRef", attached_to.to_owned()));
        self.wait_for(event)
    }

    /// Makes the boundary event, or the start event of an event sub-process, that was added last non-interrupting.
    pub fn non_interrupting(mut self) -> Self {
        let last = self.last();
        let attribute = if last.kind == "boundaryEvent" { "cancelActivity" } else { "isInterrupting" };
        last.attributes.push((attribute, "false".to_owned()));
        self
    }

    /// Adds a receive task.
    pub fn receive_task(mut self, id: &str, message_name: &str, correlation_key: &str) -> Self {
        let reference = self.message(message_name, correlation_key);
        self = self.element("receiveTask", id);
        self.last().attributes.push(("messageRef", reference));
        self
    }

    /// Adds an event-based gateway.
    pub fn event_based_gateway(self, id: &str) -> Self {
        self.element("eventBasedGateway", id)
    }

    /// Adds a none intermediate throw event.
    pub fn throw(self, id: &str) -> Self {
        self.element("intermediateThrowEvent", id)
    }

    /// Adds a message intermediate throw event, done by a job worker.
    pub fn message_throw(self, id: &str, job_type: &str) -> Self {
        self.job_task("intermediateThrowEvent", id, job_type).define("messageEventDefinition", &[], "")
    }

    /// Adds a message end event, done by a job worker.
    pub fn message_end(self, id: &str, job_type: &str) -> Self {
        self.job_task("endEvent", id, job_type).define("messageEventDefinition", &[], "")
    }

    /// Adds an intermediate throw event that continues at the catch event of the link.
    pub fn link_throw(self, id: &str, link: &str) -> Self {
        self.throw(id).define_link(id, link)
    }

    /// Adds the catch event of a link, connected to nothing before it.
    pub fn link_catch(mut self, id: &str, link: &str) -> Self {
        self.cursor = None;
        self.element("intermediateCatchEvent", id).define_link(id, link)
    }

    /// Adds an intermediate throw event that throws an escalation (the code is an expression if it starts with `=`).
    pub fn escalation_throw(self, id: &str, code: &str) -> Self {
        self.throw(id).wait_for(Event::Escalation(code))
    }

    /// Adds an end event that throws an escalation.
    pub fn escalation_end(self, id: &str, code: &str) -> Self {
        self.end(id).wait_for(Event::Escalation(code))
    }

    /// Adds an intermediate throw event that broadcasts a signal.
    pub fn signal_throw(self, id: &str, name: &str) -> Self {
        self.throw(id).wait_for(Event::Signal(name))
    }

    /// Adds an end event that broadcasts a signal.
    pub fn signal_end(self, id: &str, name: &str) -> Self {
        self.end(id).wait_for(Event::Signal(name))
    }

    /// Adds an end event that throws an error (the code is an expression if it starts with `=`).
    pub fn error_end(self, id: &str, code: &str) -> Self {
        self.end(id).wait_for(Event::Error(code))
    }

    /// Adds an end event that ends everything else in its scope.
    pub fn terminate_end(self, id: &str) -> Self {
        self.end(id).define("terminateEventDefinition", &[], "")
    }

    /// Adds an intermediate throw event that has everything undone that was completed in its scope.
    pub fn compensation_throw(self, id: &str) -> Self {
        self.throw(id).define("compensateEventDefinition", &[], "")
    }

    /// Adds an end event that has everything undone that was completed in its scope.
    pub fn compensation_end(self, id: &str) -> Self {
        self.end(id).define("compensateEventDefinition", &[], "")
    }

    /// Attaches a compensation boundary event to an activity with a job that undoes it, and continues at the activity.
    pub fn compensation(mut self, id: &str, activity: &str, handler: &str, job_type: &str) -> Self {
        self = self.move_to(activity).apart().element("boundaryEvent", id);
        self.last().attributes.push(("attachedToRef", activity.to_owned()));
        self = self.define("compensateEventDefinition", &[], "").apart().service_task(handler, job_type);
        self.last().attributes.push(("isForCompensation", "true".to_owned()));
        let handler = self.nodes.len() - 1;
        self.associations.push((handler - 1, handler));
        self.move_to(activity)
    }

    /// Gives the event added last its definition.
    fn wait_for(mut self, event: Event) -> Self {
        match event {
            Event::Duration(text) => self.timer("bpmn:timeDuration", text),
            Event::Date(text) => self.timer("bpmn:timeDate", text),
            Event::Cycle(text) => self.timer("bpmn:timeCycle", text),
            Event::Message(name, correlation_key) => {
                let reference = self.message(name, correlation_key);
                self.define("messageEventDefinition", &[("messageRef", &reference)], "")
            }
            Event::Error("") => self.define("errorEventDefinition", &[], ""),
            Event::Error(code) => {
                let index = place(&mut self.error_codes, code.to_owned());
                let reference = self.root_id("error", index);
                self.define("errorEventDefinition", &[("errorRef", &reference)], "")
            }
            Event::Escalation("") => self.define("escalationEventDefinition", &[], ""),
            Event::Escalation(code) => {
                let index = place(&mut self.escalation_codes, code.to_owned());
                let reference = self.root_id("escalation", index);
                self.define("escalationEventDefinition", &[("escalationRef", &reference)], "")
            }
            Event::Condition(condition, "") => {
                self.define("conditionalEventDefinition", &[], &expression("bpmn:condition", condition))
            }
            Event::Condition(condition, events) => {
                let filter = tag("zeebe:conditionalFilter", &[("variableEvents", events)], "");
                let extensions = tag("bpmn:extensionElements", &[], &filter);
                let condition = expression("bpmn:condition", condition);
                self.define("conditionalEventDefinition", &[], &(extensions + &condition))
            }
            Event::Signal(name) => {
                let index = place(&mut self.signal_names, name.to_owned());
                let reference = self.root_id("signal", index);
                self.define("signalEventDefinition", &[("signalRef", &reference)], "")
            }
        }
    }

    fn timer(self, kind: &str, text: &str) -> Self {
        self.define("timerEventDefinition", &[], &expression(kind, text))
    }

    fn define(mut self, kind: &str, attributes: &[(&str, &str)], content: &str) -> Self {
        self.last().event_definition = tag(&format!("bpmn:{kind}"), attributes, content);
        self
    }

    /// The definition of a link has an id because the reference engine cannot do without.
    fn define_link(self, id: &str, link: &str) -> Self {
        self.define("linkEventDefinition", &[("id", &format!("{id}_link")), ("name", link)], "")
    }

    /// The id of the message with this name and correlation key.
    fn message(&mut self, name: &str, correlation_key: &str) -> String {
        let key = Some(correlation_key.to_owned()).filter(|key| !key.is_empty());
        let index = place(&mut self.messages, (name.to_owned(), key));
        self.root_id("message", index)
    }
}

/// Where `item` is in `items`; it is added if it is not there yet.
fn place<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}
