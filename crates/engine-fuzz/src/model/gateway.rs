//! Gateways.

use model_builder::xml::tag;

use super::{Exit, Writer};

impl Writer<'_, '_> {
    pub(super) fn exclusive_gateway(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let branches = 1 + self.choices.size(8);
        self.fork(scope, from, "exclusiveGateway", branches, depth)
    }

    pub(super) fn parallel_gateway(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let branches = 1 + self.choices.size(8);
        self.fork(scope, from, "parallelGateway", branches, depth)
    }

    pub(super) fn inclusive_gateway(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let branches = 1 + self.choices.size(8);
        self.fork(scope, from, "inclusiveGateway", branches, depth)
    }

    /// Branches with whatever comes, to a join that is mostly of the same kind. Some of them may end on the way.
    fn fork(&mut self, scope: &mut String, from: Exit, kind: &str, branches: usize, depth: usize) -> Option<Exit> {
        let fork = self.id("fork");
        self.connect(scope, from, &fork);
        let mut open = Vec::new();
        let mut default = None;
        for branch in 0..branches {
            let mut exit = self.exit(&fork);
            if kind != "parallelGateway" {
                if branch == 0 && branches > 1 {
                    default = Some(exit.flow.clone());
                } else if branches > 1 {
                    exit.condition = Some(self.condition(branch));
                }
            }
            open.extend(self.blocks(scope, exit, depth + 1));
        }
        let attributes: Vec<(&str, &str)> =
            [("id", fork.as_str())].into_iter().chain(default.as_deref().map(|flow| ("default", flow))).collect();
        *scope += &tag(&format!("bpmn:{kind}"), &attributes, "");
        let kinds = [kind, kind, kind, "exclusiveGateway", "inclusiveGateway", "parallelGateway"];
        let join = self.choices.pick(&kinds);
        self.join(scope, open, join)
    }

    fn condition(&mut self, branch: usize) -> String {
        match self.choices.percent(25) {
            true => self.expression('b'),
            false => format!("=choice >= {}", branch % 3),
        }
    }

    fn join(&mut self, scope: &mut String, mut open: Vec<Exit>, kind: &str) -> Option<Exit> {
        let last = open.pop()?;
        let id = self.id("join");
        for exit in open {
            self.connect(scope, exit, &id);
        }
        Some(self.node_of(scope, last, kind, &id, &[], ""))
    }

    /// Many branches of one plain task each.
    pub(super) fn wide_gateway(&mut self, scope: &mut String, from: Exit, _depth: usize) -> Option<Exit> {
        let kinds = ["parallelGateway", "inclusiveGateway", "exclusiveGateway"];
        let kind = self.choices.pick(&kinds);
        let tasks = ["manualTask", "none"];
        let task = self.choices.pick(&tasks);
        let fork = self.id("fork");
        self.connect(scope, from, &fork);
        let mut open = Vec::new();
        let count = 2 + self.choices.size(1_500);
        let default = self.exit(&fork);
        let attributes = [("id", fork.as_str()), ("default", default.flow.as_str())];
        let attributes = if kind == "parallelGateway" { &attributes[..1] } else { &attributes[..] };
        *scope += &tag(&format!("bpmn:{kind}"), attributes, "");
        open.push(default);
        for branch in 1..count {
            let mut exit = self.exit(&fork);
            exit.condition = (kind != "parallelGateway").then(|| format!("=choice >= {}", branch % 2));
            open.push(if task == "none" { exit } else { self.node(scope, exit, task, &[], "") });
        }
        let join = self.choices.pick(&kinds);
        self.join(scope, open, join)
    }

    pub(super) fn event_based_gateway(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let gateway = self.id("events");
        self.connect(scope, from, &gateway);
        *scope += &tag("bpmn:eventBasedGateway", &[("id", &gateway)], "");
        let mut open = Vec::new();
        for _ in 0..2 + self.choices.size(200) {
            let exit = self.exit(&gateway);
            let exit = self.catch(scope, exit);
            open.extend(self.blocks(scope, exit, depth + 1));
        }
        self.join(scope, open, "exclusiveGateway")
    }

    /// A part that is done again and again, as a condition says.
    pub(super) fn loop_back(&mut self, scope: &mut String, from: Exit, depth: usize) -> Option<Exit> {
        let (again, ask) = (self.id("again"), self.id("ask"));
        let inside = self.node_of(scope, from, "exclusiveGateway", &again, &[], "");
        let exit = self.blocks(scope, inside, depth + 1)?;
        self.connect(scope, exit, &ask);
        let (mut back, on) = (self.exit(&ask), self.exit(&ask));
        back.condition = Some(self.condition(2));
        let parallel = self.choices.percent(10);
        let attributes = [("id", ask.as_str()), ("default", on.flow.as_str())];
        if parallel {
            back.condition = None;
            *scope += &tag("bpmn:parallelGateway", &attributes[..1], "");
        } else {
            *scope += &tag("bpmn:exclusiveGateway", &attributes, "");
        }
        self.connect(scope, back, &again);
        Some(on)
    }
}
