//! User tasks, ad-hoc sub-processes, and what can be undone.

use model_builder::xml::{expression, tag};

use super::{DEPTH_MAX, Exit, Writer, extensions};
use crate::names::{VARIABLES, name};

/// How often an element can be chosen at once by the list of an ad-hoc sub-process.
const CHOSEN_MAX: usize = 3_000;
/// How long the attributes of a user task are.
const ATTRIBUTE_BYTES_MAX: usize = 1 << 20;

impl Writer<'_, '_> {
    pub(super) fn user_task(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let is_native = !self.choices.percent(20);
        let mut extension = if is_native { tag("zeebe:userTask", &[], "") } else { String::new() };
        let candidates = ["ada, ben", "=items", "=[text, \"ada\"]", "=results", "=for i in 1..1000 return text"];
        if is_native {
            extension += &self.task_listeners();
        }
        let mut assignment = Vec::new();
        if self.choices.percent(60) {
            assignment.push(("assignee", self.assignee()));
        }
        for list in ["candidateUsers", "candidateGroups"] {
            if self.choices.percent(25) {
                let names = match self.choices.percent(15) {
                    true => self.expression('l'),
                    false => self.choices.pick(&candidates).to_owned(),
                };
                assignment.push((list, names));
            }
        }
        if !assignment.is_empty() {
            let attributes: Vec<(&str, &str)> = assignment.iter().map(|(name, text)| (*name, text.as_str())).collect();
            extension += &tag("zeebe:assignmentDefinition", &attributes, "");
        }
        if self.choices.percent(15) {
            let dates = ["2030-01-31T09:00:00Z", "=text", "=now()", "=\"2030-01-31T09:00:00\"", "=null"];
            let attributes = [("dueDate", self.choices.pick(&dates)), ("followUpDate", self.choices.pick(&dates))];
            extension += &tag("zeebe:taskSchedule", &attributes, "");
        }
        if self.choices.percent(15) {
            let priority = self.choices.pick(&["=n", "100", "0", "=101", "=0.5", "=text"]);
            extension += &tag("zeebe:priorityDefinition", &[("priority", priority)], "");
        }
        if is_native && self.choices.percent(15) {
            let form = self.choices.pick(&[("formId", "f0"), ("externalReference", "=text"), ("formId", "=text")]);
            extension += &tag("zeebe:formDefinition", &[form], "");
        }
        Some(self.activity(scope, from, "userTask", &[], &extension, "", depth))
    }

    fn assignee(&mut self) -> String {
        match self.choices.byte() {
            0..=119 => "ada".to_owned(),
            120..=199 => "=text".to_owned(),
            200..=229 => self.expression('s'),
            _ => "a".repeat(self.choices.size(ATTRIBUTE_BYTES_MAX)),
        }
    }

    /// What is chosen is an element that passes, behind it whatever can stand there.
    pub(super) fn ad_hoc_sub_process(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let mut inside = String::new();
        let mut chosen = Vec::new();
        for _ in 0..1 + self.choices.size(100) {
            let id = self.id("choice");
            inside += &tag("bpmn:manualTask", &[("id", &id)], "");
            let exit = self.exit(&id);
            chosen.push(id);
            if self.elements_left == 0 {
                break;
            }
            match self.choices.below(5) {
                0 => drop(self.job_task(&mut inside, exit, DEPTH_MAX)),
                1 => {
                    let content = self.scope(depth + 1, false);
                    self.activity(&mut inside, exit, "subProcess", &[], "", &content, DEPTH_MAX);
                }
                2 if depth < DEPTH_MAX => drop(self.ad_hoc_in(&mut inside, exit, depth + 1)),
                3 => drop(self.user_task(&mut inside, exit, DEPTH_MAX)),
                _ => {}
            }
        }
        let mut extension = String::new();
        if self.choices.percent(25) {
            extension += &self.task_definition();
        } else {
            extension += &self.ad_hoc_attributes(&chosen);
            if self.choices.percent(20) {
                let condition = self.expression('b');
                inside += &expression("bpmn:completionCondition", &condition);
            }
        }
        let attributes: &[(&str, &str)] =
            if self.choices.percent(30) { &[("cancelRemainingInstances", "false")] } else { &[] };
        Some(self.activity(scope, from, "adHocSubProcess", attributes, &extension, &inside, depth))
    }

    /// One in another, where no path may have an end event.
    fn ad_hoc_in(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let mut around = String::new();
        let start = self.id("start");
        around += &tag("bpmn:startEvent", &[("id", &start)], "");
        let exit = self.exit(&start);
        let exit = self.ad_hoc_sub_process(&mut around, exit, depth)?;
        self.end_event(&mut around, exit);
        Some(self.activity(scope, from, "subProcess", &[], "", &around, DEPTH_MAX))
    }

    fn ad_hoc_attributes(&mut self, chosen: &[String]) -> String {
        let mut attributes = Vec::new();
        let first = chosen.first().cloned().unwrap_or_default();
        match self.choices.byte() {
            0..=119 => {
                let ids: Vec<String> = chosen.iter().map(|id| format!("\"{id}\"")).collect();
                attributes.push(("activeElementsCollection", format!("=[{}]", ids.join(","))));
            }
            120..=169 => {
                let times = self.choices.size(CHOSEN_MAX);
                attributes.push(("activeElementsCollection", format!("=for i in 1..{times} return \"{first}\"")));
            }
            170..=189 => attributes.push(("activeElementsCollection", self.expression('l'))),
            190..=209 => attributes.push(("activeElementsCollection", "=items".to_owned())),
            _ => {}
        }
        if self.choices.percent(30) {
            attributes.push(("outputCollection", name(self.choices, VARIABLES)));
            attributes.push(("outputElement", self.expression('a')));
        }
        let attributes: Vec<(&str, &str)> = attributes.iter().map(|(name, text)| (*name, text.as_str())).collect();
        if attributes.is_empty() { String::new() } else { tag("zeebe:adHoc", &attributes, "") }
    }

    /// A compensation boundary event with a handler, which may be done several times or contain much.
    pub(super) fn compensation(&mut self, scope: &mut String, activity: &str, depth: usize) {
        let (event, handler) = (self.id("undo"), self.id("handler"));
        let attributes = [("id", event.as_str()), ("attachedToRef", activity)];
        *scope += &tag("bpmn:boundaryEvent", &attributes, &tag("bpmn:compensateEventDefinition", &[], ""));
        let kind = self.choices.pick(&["manualTask", "serviceTask", "subProcess", "userTask"]);
        let (extension, inside) = match kind {
            "serviceTask" => (self.task_definition(), String::new()),
            "userTask" => (tag("zeebe:userTask", &[], ""), String::new()),
            "subProcess" if depth < DEPTH_MAX => (String::new(), self.scope(depth + 1, false)),
            "subProcess" => (String::new(), self.scope(DEPTH_MAX, false)),
            _ => Default::default(),
        };
        let mappings = self.mappings(true);
        let content = extensions(&format!("{extension}{mappings}")) + &self.repetition() + &inside;
        let attributes = [("id", handler.as_str()), ("isForCompensation", "true")];
        *scope += &tag(&format!("bpmn:{kind}"), &attributes, &content);
        let id = format!("{event}-{handler}");
        let attributes = [("id", id.as_str()), ("sourceRef", &event), ("targetRef", &handler)];
        *scope += &tag("bpmn:association", &attributes, "");
    }

    /// What is undone, of everything in the scope.
    pub(super) fn compensate_definition() -> String {
        tag("bpmn:compensateEventDefinition", &[], "")
    }

    /// An event sub-process that undoes what is around it.
    pub(super) fn compensating_event_sub_process(&mut self, depth: usize) -> String {
        let (id, start) = (self.id("event"), self.id("start"));
        let mut content = tag("bpmn:startEvent", &[("id", &start)], &Self::compensate_definition());
        let exit = self.exit(&start);
        self.path(&mut content, vec![exit], depth + 1);
        tag("bpmn:subProcess", &[("id", &id), ("triggeredByEvent", "true")], &content)
    }
}
