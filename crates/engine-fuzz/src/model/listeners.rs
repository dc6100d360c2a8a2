//! What listens to elements and user tasks, and what waits for conditions.

use model_builder::xml::{expression, optional, tag};

use super::{Writer, extensions};
use crate::names::{JOB_TYPES, VARIABLES, name};

/// What a user task is listened to for; the last one is none.
const TASK_EVENTS: &[&str] = &["creating", "assigning", "updating", "completing", "canceling", "complete", "start"];
/// Conditions: some hold again and again, some cannot be evaluated, some take long.
const CONDITIONS: &[&str] = &[
    "=n > 2",
    "=choice >= 1 and n < 10",
    "=text = \"abc\"",
    "=items[1] = 1",
    "=true",
    "=n",
    "=document.a.b[2].c = null",
    "=unknown(n)",
    "=count(for i in 1..100000 return i + n) > 3",
];

impl Writer<'_, '_> {
    /// Execution listeners of an element: mostly none, some, or more than there may be.
    pub(super) fn execution_listeners(&mut self) -> String {
        if !self.choices.percent(12) {
            return String::new();
        }
        let listeners = self.listeners("zeebe:executionListener", &["start", "end", "start", "end", "creating"]);
        optional("zeebe:executionListeners", &listeners)
    }

    pub(super) fn task_listeners(&mut self) -> String {
        if !self.choices.percent(35) {
            return String::new();
        }
        let listeners = self.listeners("zeebe:taskListener", TASK_EVENTS);
        optional("zeebe:taskListeners", &listeners)
    }

    fn listeners(&mut self, element: &str, events: &[&str]) -> String {
        let mut all = String::new();
        // One in a hundred files is not to be refused for an event that is none.
        let known = if self.choices.percent(2) { events } else { &events[..events.len() - 1] };
        for number in 0..1 + self.choices.size(101) {
            let event = self.choices.pick(known);
            let job_type = match self.choices.percent(20) {
                true => self.expression('s'),
                // Two that look alike are refused.
                false => format!("={}\"{}\"", " ".repeat(number), self.choices.pick(JOB_TYPES)),
            };
            let retries = match self.choices.percent(10) {
                true => self.expression('n'),
                false => self.choices.pick(&["3", "1", "0", "-1"]).to_owned(),
            };
            all += &tag(element, &[("eventType", event), ("type", &job_type), ("retries", &retries)], "");
        }
        all
    }

    pub(super) fn conditional_definition(&mut self) -> String {
        let condition = match self.choices.byte() {
            0..=169 => self.choices.pick(CONDITIONS).to_owned(),
            170..=209 => format!("={} != null", name(self.choices, VARIABLES)),
            _ => self.expression('b'),
        };
        let filter = match self.choices.below(8) {
            0 => tag("zeebe:conditionalFilter", &[("variableEvents", "create")], ""),
            1 => tag("zeebe:conditionalFilter", &[("variableEvents", "update")], ""),
            2 => tag("zeebe:conditionalFilter", &[("variableNames", "n"), ("variableEvents", "create, update")], ""),
            _ => String::new(),
        };
        let content = extensions(&filter) + &expression("bpmn:condition", &condition);
        tag("bpmn:conditionalEventDefinition", &[], &content)
    }
}
