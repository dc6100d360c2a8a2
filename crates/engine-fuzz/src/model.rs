//! Random models in which everything stands in everything that BPMN allows.

mod activity;
mod event;
mod gateway;
mod listeners;
mod people;

use std::collections::BTreeSet;

use model_builder::xml::{definitions, expression, optional, tag};

use crate::choices::Choices;
use crate::names::TAGS;

/// A BPMN file.
#[derive(Clone, Debug)]
pub struct Model {
    /// The file.
    pub xml: String,
    /// Ids of its elements and sequence flows.
    pub ids: Vec<String>,
}

/// How many elements a file has at most, mostly and seldom.
const ELEMENTS: [usize; 2] = [60, 1_500];
/// How deep blocks are nested, apart from rows of sub-processes.
const DEPTH_MAX: usize = 7;
const NESTED_MAX: usize = 70;

/// Makes a file with these processes.
pub(crate) fn model(choices: &mut Choices<'_>, names: &[&str]) -> Model {
    let elements_left = ELEMENTS[usize::from(choices.percent(4))];
    // What is left out makes the rest more frequent.
    let left_out =
        if choices.percent(70) { choices.below(1 << 24) as u32 | (choices.below(16) as u32) << 24 } else { 0 };
    let mut writer = Writer {
        choices,
        roots: String::new(),
        known: BTreeSet::new(),
        ids: Vec::new(),
        flows: 0,
        elements_left,
        left_out,
    };
    let mut processes = String::new();
    for name in names {
        processes += &writer.process(name);
    }
    let content = std::mem::take(&mut writer.roots) + &processes;
    Model { xml: definitions(&content), ids: writer.ids }
}

/// A sequence flow that has left its source and looks for its target.
struct Exit {
    flow: String,
    source: String,
    condition: Option<String>,
}

struct Writer<'a, 'b> {
    choices: &'a mut Choices<'b>,
    /// Messages, errors, escalations and signals, each once.
    roots: String,
    known: BTreeSet<String>,
    ids: Vec<String>,
    flows: usize,
    elements_left: usize,
    /// Bits of the kinds of blocks that this file does without.
    left_out: u32,
}

/// Kinds of blocks.
const BLOCKS: usize = 28;

impl Writer<'_, '_> {
    fn id(&mut self, kind: &str) -> String {
        self.elements_left = self.elements_left.saturating_sub(1);
        let mut id = format!("{kind}{}", self.ids.len());
        if self.choices.byte() >= 254 {
            id += &"é".repeat(self.choices.below(270));
        }
        self.ids.push(id.clone());
        id
    }

    fn exit(&mut self, source: &str) -> Exit {
        self.flows += 1;
        let flow = format!("flow{}", self.flows);
        self.ids.push(flow.clone());
        Exit { flow, source: source.to_owned(), condition: None }
    }

    fn connect(&mut self, scope: &mut String, from: Exit, target: &str) {
        let condition = from.condition.map(|text| expression("bpmn:conditionExpression", &text));
        let attributes = [("id", from.flow.as_str()), ("sourceRef", &from.source), ("targetRef", target)];
        *scope += &tag("bpmn:sequenceFlow", &attributes, &condition.unwrap_or_default());
    }

    /// Writes a node that goes on.
    fn node(&mut self, scope: &mut String, from: Exit, kind: &str, attributes: &[(&str, &str)], content: &str) -> Exit {
        let id = self.id("n");
        self.node_of(scope, from, kind, &id, attributes, content)
    }

    fn node_of(
        &mut self,
        scope: &mut String,
        from: Exit,
        kind: &str,
        id: &str,
        attributes: &[(&str, &str)],
        content: &str,
    ) -> Exit {
        self.connect(scope, from, id);
        let attributes: Vec<(&str, &str)> = [("id", id)].into_iter().chain(attributes.iter().copied()).collect();
        *scope += &tag(&format!("bpmn:{kind}"), &attributes, content);
        self.exit(id)
    }

    fn process(&mut self, id: &str) -> String {
        let mut content = String::new();
        if self.choices.percent(20) {
            let version_tag = self.choices.pick(TAGS);
            let listeners = self.execution_listeners();
            content += &extensions(&(tag("zeebe:versionTag", &[("value", version_tag)], "") + &listeners));
        }
        content += &self.scope(0, true);
        tag("bpmn:process", &[("id", id), ("isExecutable", "true")], &content)
    }

    /// What is inside a process or sub-process.
    fn scope(&mut self, depth: usize, is_process: bool) -> String {
        let mut scope = String::new();
        let id = self.id("start");
        scope += &tag("bpmn:startEvent", &[("id", &id)], "");
        let mut starts = vec![self.exit(&id)];
        while is_process && starts.len() < 20 && self.choices.percent(25) {
            starts.push(self.start_event(&mut scope));
        }
        self.path(&mut scope, starts, depth);
        while self.elements_left > 0 && depth < DEPTH_MAX && self.choices.percent(25) {
            let content = self.event_sub_process(depth);
            scope += &content;
        }
        if !is_process && depth < DEPTH_MAX && self.choices.percent(4) {
            let content = self.compensating_event_sub_process(depth);
            scope += &content;
        }
        scope
    }

    /// Blocks one after the other, to an end.
    fn path(&mut self, scope: &mut String, mut starts: Vec<Exit>, depth: usize) {
        let Some(first) = starts.pop() else { return };
        let mut from = first;
        if !starts.is_empty() {
            let id = self.id("merge");
            for start in starts {
                self.connect(scope, start, &id);
            }
            from = self.node_of(scope, from, "exclusiveGateway", &id, &[], "");
        }
        for _ in 0..1 + self.choices.size(40) {
            match self.block(scope, from, depth) {
                Some(exit) => from = exit,
                None => return,
            }
        }
        self.end_event(scope, from);
    }

    /// Blocks one after the other, which may end on the way.
    fn blocks(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let mut from = Some(from);
        for _ in 0..self.choices.size(10) {
            from = self.block(scope, from?, depth);
        }
        from
    }

    fn block(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        if self.elements_left == 0 {
            return Some(from);
        }
        let kind = self.choices.below(BLOCKS);
        let is_left_out = self.left_out >> kind & 1 == 1;
        if depth >= DEPTH_MAX || is_left_out {
            return self.job_task(scope, from, depth);
        }
        match kind {
            1 => self.manual_task(scope, from, depth),
            2 => self.script_task(scope, from, depth),
            3 => self.business_rule_task(scope, from, depth),
            4 => self.receive_task(scope, from, depth),
            5 => self.call_activity(scope, from, depth),
            6 | 7 => self.sub_process(scope, from, depth),
            8 => self.row_of_sub_processes(scope, from, depth),
            9 => self.exclusive_gateway(scope, from, depth),
            10 => self.parallel_gateway(scope, from, depth),
            11 => self.inclusive_gateway(scope, from, depth),
            12 => self.event_based_gateway(scope, from, depth),
            13 => self.wide_gateway(scope, from, depth),
            14 => self.loop_back(scope, from, depth),
            15 => self.catch_event(scope, from, depth),
            16 => self.throw_event(scope, from, depth),
            17 => self.link(scope, from, depth),
            18 => self.row_of_tasks(scope, from, depth),
            19 => self.path_that_ends(scope, from, depth),
            20 => self.user_task(scope, from, depth),
            21..=22 => self.ad_hoc_sub_process(scope, from, depth),
            _ => self.job_task(scope, from, depth),
        }
    }

    fn sub_process(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        if self.choices.percent(25) {
            return self.ad_hoc_sub_process(scope, from, depth);
        }
        let content = self.scope(depth + 1, false);
        Some(self.activity(scope, from, "subProcess", &[], "", &content, depth))
    }

    /// Sub-processes in each other with something inside of the innermost.
    fn row_of_sub_processes(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let levels = 1 + self.choices.size(NESTED_MAX);
        let mut content = self.scope(depth + 1, false);
        for _ in 1..levels {
            let mut around = String::new();
            let id = self.id("start");
            around += &tag("bpmn:startEvent", &[("id", &id)], "");
            let start = self.exit(&id);
            let exit = self.activity(&mut around, start, "subProcess", &[], "", &content, DEPTH_MAX);
            self.end_event(&mut around, exit);
            content = around;
        }
        Some(self.activity(scope, from, "subProcess", &[], "", &content, depth))
    }

    /// The same task many times.
    fn row_of_tasks(&mut self, scope: &mut String, from: Exit, _depth: usize) -> Option<Exit> {
        let mut from = from;
        for _ in 0..self.choices.size(1_200) {
            from = self.node(scope, from, "manualTask", &[], "");
        }
        Some(from)
    }
}

fn extensions(content: &str) -> String {
    optional("bpmn:extensionElements", content)
}
