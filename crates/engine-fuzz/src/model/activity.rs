//! Activities, with mappings, loops and what is attached to them.

use model_builder::xml::{escape, tag};

use super::{Exit, Writer, extensions};
use crate::expression::expression;
use crate::names::{DECISIONS, JOB_TYPES, PROCESSES, TAGS, VARIABLES, name};

impl Writer<'_, '_> {
    /// An expression of a kind with the sign that it is one.
    pub(super) fn expression(&mut self, kind: char) -> String {
        format!("={}", expression(self.choices, kind))
    }

    pub(super) fn job_task(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        if self.choices.percent(20) {
            return self.user_task(scope, from, depth);
        }
        let kinds = ["serviceTask", "sendTask", "scriptTask", "businessRuleTask"];
        let kind = self.choices.pick(&kinds);
        let definition = self.task_definition();
        Some(self.activity(scope, from, kind, &[], &definition, "", depth))
    }

    pub(super) fn task_definition(&mut self) -> String {
        let job_type = match self.choices.percent(10) {
            true => self.expression('s'),
            false => name(self.choices, JOB_TYPES),
        };
        let retries = match self.choices.percent(10) {
            true => self.expression('n'),
            false => (self.choices.pick(&["3", "1", "0", "2147483647", "-1"])).to_owned(),
        };
        let mut definition = tag("zeebe:taskDefinition", &[("type", &job_type), ("retries", &retries)], "");
        if self.choices.percent(5) {
            let header = |number| tag("zeebe:header", &[("key", &format!("h{number}")), ("value", "x")], "");
            let headers: String = (0..1 + self.choices.size(2_000)).map(header).collect();
            definition += &tag("zeebe:taskHeaders", &[], &headers);
        }
        definition
    }

    pub(super) fn manual_task(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let kind = self.choices.pick(&["manualTask", "task"]);
        Some(self.activity(scope, from, kind, &[], "", "", depth))
    }

    pub(super) fn script_task(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let script = self.expression('a');
        let result = name(self.choices, VARIABLES);
        let script = tag("zeebe:script", &[("expression", &script), ("resultVariable", &result)], "");
        Some(self.activity(scope, from, "scriptTask", &[], &script, "", depth))
    }

    pub(super) fn business_rule_task(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let decision = match self.choices.percent(15) {
            true => self.expression('s'),
            false => name(self.choices, DECISIONS),
        };
        let result = name(self.choices, VARIABLES);
        let mut attributes = vec![("decisionId", decision.as_str()), ("resultVariable", &result)];
        self.binding(&mut attributes);
        let called = tag("zeebe:calledDecision", &attributes, "");
        Some(self.activity(scope, from, "businessRuleTask", &[], &called, "", depth))
    }

    fn binding(&mut self, attributes: &mut Vec<(&str, &str)>) {
        match self.choices.below(8) {
            6 => attributes.push(("bindingType", "deployment")),
            7 => attributes.extend([("bindingType", "versionTag"), ("versionTag", self.choices.pick(TAGS))]),
            _ => {}
        }
    }

    pub(super) fn receive_task(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let message = self.message(true);
        Some(self.activity(scope, from, "receiveTask", &[("messageRef", &message)], "", "", depth))
    }

    pub(super) fn call_activity(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let process = match self.choices.percent(15) {
            true => self.expression('s'),
            false => name(self.choices, PROCESSES),
        };
        let truth = |choices: &mut crate::choices::Choices<'_>| choices.pick(&["true", "false"]);
        let mut attributes = vec![
            ("processId", process.as_str()),
            ("propagateAllChildVariables", truth(self.choices)),
            ("propagateAllParentVariables", truth(self.choices)),
        ];
        self.binding(&mut attributes);
        let called = tag("zeebe:calledElement", &attributes, "");
        Some(self.activity(scope, from, "callActivity", &[], &called, "", depth))
    }

    /// An activity with mappings, a loop and boundary events, if they come so.
    #[allow(clippy::too_many_arguments, reason = "the parts of an activity")]
    pub(super) fn activity(
        &mut self,
        scope: &mut String,
        from: Exit,
        kind: &str,
        attributes: &[(&str, &str)],
        extension: &str,
        inside: &str,
        depth: usize,
    ) -> Exit {
        let mappings = self.mappings(true);
        let listeners = self.execution_listeners();
        let mut content = extensions(&format!("{extension}{mappings}{listeners}"));
        content += &self.repetition();
        content += inside;
        let id = self.id("a");
        let exit = self.node_of(scope, from, kind, &id, attributes, &content);
        let mut chance = 25;
        while self.elements_left > 0 && self.choices.percent(chance) {
            self.boundary_event(scope, &id, kind, depth);
            chance = 50;
        }
        if self.elements_left > 0 && self.choices.percent(10) {
            self.compensation(scope, &id, depth);
        }
        exit
    }

    /// Input and output mappings.
    pub(super) fn mappings(&mut self, has_inputs: bool) -> String {
        let mut content = String::new();
        for kind in ["zeebe:input", "zeebe:output"] {
            if kind == "zeebe:input" && !has_inputs || !self.choices.percent(12) {
                continue;
            }
            for _ in 0..1 + self.choices.size(300) {
                let source = match self.choices.percent(40) {
                    true => self.expression('a'),
                    false => format!("={}", self.choices.pick(VARIABLES)),
                };
                let target = match self.choices.byte() {
                    250.. => vec!["a"; 1 + self.choices.below(100)].join("."),
                    _ => name(self.choices, VARIABLES),
                };
                content += &tag(kind, &[("source", &source), ("target", &target)], "");
            }
        }
        if content.is_empty() { content } else { tag("zeebe:ioMapping", &[], &content) }
    }

    pub(super) fn repetition(&mut self) -> String {
        if !self.choices.percent(15) {
            return String::new();
        }
        let items = match self.choices.byte() {
            0..=99 => "=items".to_owned(),
            100..=149 => "=[1, 2, 3]".to_owned(),
            150..=199 => format!("=for i in 1..{} return i", self.choices.size(3_000)),
            _ => self.expression('l'),
        };
        let mut attributes = vec![("inputCollection", items)];
        if self.choices.percent(60) {
            attributes.push(("inputElement", name(self.choices, VARIABLES)));
        }
        if self.choices.percent(60) {
            let output = if self.choices.percent(40) { self.expression('a') } else { "=item".to_owned() };
            attributes
                .extend([("outputCollection", name(self.choices, &["results", "items"])), ("outputElement", output)]);
        }
        let attributes: Vec<(&str, &str)> = attributes.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut content = extensions(&tag("zeebe:loopCharacteristics", &attributes, ""));
        if self.choices.percent(20) {
            let condition = self.expression('b');
            content += &tag("bpmn:completionCondition", &[], &escape(&condition));
        }
        let is_sequential = self.choices.pick(&["false", "true"]);
        tag("bpmn:multiInstanceLoopCharacteristics", &[("isSequential", is_sequential)], &content)
    }
}
