//! Activities with what is attached to them.

use super::{DEPTH_MAX, Maker};
use crate::model::Item;

impl Maker<'_> {
    pub(super) fn user_task(&mut self) -> Item {
        let id = self.id("user");
        let mut item = Item::new("user", &id);
        if self.random.percent(85) {
            item = item.switch("native");
            if self.random.percent(25) {
                item = item.with("priority", self.random.copy_of(&["70", "=choice + 40", "=missing"]));
            }
            item = self.task_listened(item);
        }
        if self.random.percent(40) {
            item = item.with("assignee", self.random.copy_of(&["ada", "=key", "=missing", "=\"\""]));
        }
        if self.random.percent(20) {
            item = item.with("users", self.random.copy_of(&["ada, ben", "=[key]", "=items"]));
        }
        if self.random.percent(15) {
            item =
                item.with("due", self.random.copy_of(&["2030-01-31T09:00:00Z", "=\"2030-01-31T09:00:00Z\"", "=null"]));
        }
        item
    }

    /// Task listeners of a native user task.
    fn task_listened(&mut self, mut item: Item) -> Item {
        if !self.features.has("task-listener") || !self.random.percent(45) {
            return item;
        }
        for event in ["creating", "assigning", "updating", "completing", "canceling"] {
            if !self.random.percent(35) {
                continue;
            }
            let count = 1 + usize::from(self.random.percent(30));
            for _ in 0..count {
                // Those of one event may be equal.
                let job_type = self.random.copy_of(&["a", "a@1", "b@2", "=\"b\"", "=jobType", "a@=1 + 1"]);
                item = item.with(&format!("listen.{event}"), job_type);
            }
        }
        item
    }

    pub(super) fn ad_hoc(&mut self, depth: usize) -> Item {
        let item = self.bare_ad_hoc(depth);
        self.activity(item, depth)
    }

    fn bare_ad_hoc(&mut self, depth: usize) -> Item {
        let id = self.id("ad-hoc");
        let was_bound = std::mem::replace(&mut self.is_bound, false);
        let was_inclusive = std::mem::replace(&mut self.is_inclusive, false);
        let undone = std::mem::take(&mut self.undone);
        let mut choices = Vec::new();
        for _ in 0..1 + self.random.index(3) {
            let choice = self.choice(depth);
            choices.push(choice);
        }
        let events = if self.features.has("nested") { self.event_sub_processes(depth + 1) } else { Vec::new() };
        self.undone = undone;
        (self.is_bound, self.is_inclusive) = (was_bound, was_inclusive);
        let mut item = Item::new("ad-hoc", &id);
        if self.random.percent(25) {
            item = item.with("type", self.random.copy_of(&["a", "b"]));
        } else {
            let ids: Vec<String> = choices.iter().map(|choice| format!("\"{}\"", choice.id)).collect();
            let first = ids.first().cloned().unwrap_or_default();
            let lists = [format!("=[{}]", ids.join(", ")), format!("=[{first}, {first}]"), format!("=[{first}]")];
            let list = match self.random.index(8) {
                0 => "=items".to_owned(),
                1 => "=[]".to_owned(),
                2 => String::new(),
                _ => self.random.choose(&lists).clone(),
            };
            if !list.is_empty() {
                item = item.with("active", &list);
            }
            if self.random.percent(35) {
                let gathered = self.random.copy_of(&["=result", "=x", "={r: result}"]);
                item = item.with("gather", "gathered").with("gathered", gathered);
            }
            if self.random.percent(30) {
                item = item.with("done", self.random.copy_of(&["=result = 1", "=done", "=choice > 0"]));
                if self.random.percent(40) {
                    item = item.switch("keeping");
                }
            }
        }
        item.containing(choices).containing(events)
    }

    /// What can be chosen has no events attached, whose paths would need an end event.
    fn choice(&mut self, depth: usize) -> Item {
        let has = |name: &str| usize::from(self.features.has(name));
        let deep = usize::from(depth + 1 < DEPTH_MAX);
        let kinds = [
            (8, "service"),
            (4 * has("user-task"), "user"),
            (6 * deep, "sub"),
            (2, "task"),
            (2 * has("script"), "script"),
            (2 * has("message"), "receive"),
            (2 * has("call") * usize::from(self.may_call()), "call"),
            (2 * deep, "ad-hoc"),
            (has("timer"), "catch-timer"),
            (has("signal"), "catch-signal"),
            (has("throw"), "throw"),
        ];
        let item = match self.random.weighted(&kinds).copied() {
            Some("user") => self.user_task(),
            Some("sub") => {
                let id = self.id("within");
                self.container("sub", &id, depth + 2)
            }
            Some("task") => {
                let id = self.id("chosen");
                Item::new("task", &id)
            }
            Some("script") => self.bare_script(),
            Some("receive") => {
                let id = self.id("receive");
                self.message(Item::new("receive", &id))
            }
            Some("call") => self.bare_call(),
            Some("ad-hoc") => self.bare_ad_hoc(depth + 1),
            Some("catch-timer") => return self.catch_timer(),
            Some("catch-signal") => return self.catch_signal(&mut Vec::new()),
            Some("throw") => return self.throw(),
            _ => {
                let id = self.id("chosen");
                let job_type = self.random.copy_of(&["a", "b"]);
                Item::new("service", &id).with("type", job_type)
            }
        };
        self.decorated(item)
    }

    pub(super) fn manual(&mut self) -> Item {
        let keyword = self.random.copy_of(&["manual", "task"]);
        let id = self.id(keyword);
        self.activity(Item::new(keyword, &id), DEPTH_MAX - 1)
    }

    pub(super) fn script(&mut self, depth: usize) -> Item {
        let item = self.bare_script();
        self.activity(item, depth)
    }

    fn bare_script(&mut self) -> Item {
        let id = self.id("script");
        // Variables of the mappings, the loops and the steps; some expressions fail without them.
        let expression = self.random.copy_of(&["=x", "=x + 1", "=again", "={a: x, b: [y]}", "=assert(x, x > 1)"]);
        let result = self.random.copy_of(&["x", "y", "s"]);
        Item::new("script", &id).with("expression", expression).with("variable", result)
    }

    /// A business rule task with one of the decisions in `decisions.dmn`, or with one that is not there.
    pub(super) fn decision(&mut self, depth: usize) -> Item {
        let id = self.id("rule");
        let decision = self.random.copy_of(&["pick", "pick", "=\"pick\"", "doubled", "nowhere"]);
        let result = self.random.copy_of(&["x", "result"]);
        let item = Item::new("rule", &id).with("decision", decision).with("variable", result);
        self.activity(item, depth)
    }

    pub(super) fn task(&mut self) -> Item {
        let id = self.id("task");
        let job_type = self.random.copy_of(&["a", "b", "=\"a\"", "=jobType"]);
        let retries = self.random.copy_of(&["1", "2", "3", "=1 + 1"]);
        let mut item = Item::new("service", &id).with("type", job_type).with("retries", retries);
        if self.random.percent(15) {
            item = item.with("header.kind", "x y");
        }
        self.activity(item, DEPTH_MAX - 1)
    }

    /// Something with execution listeners for all events that it can have some for, sometimes.
    pub(super) fn listened(&mut self, mut item: Item) -> Item {
        let (may_begin, may_end) = match item.keyword.as_str() {
            "start" => (false, true),
            "on" => (false, !item.has("compensation")),
            "exclusive" | "parallel" | "inclusive" | "events" | "loop" => (true, false),
            "end" => (true, !item.has("error")),
            _ => (true, true),
        };
        if !self.features.has("listener") || !self.random.percent(18) {
            return item;
        }
        for (event, may_be) in [("listen.start", may_begin), ("listen.end", may_end)] {
            if may_be && self.random.percent(60) {
                item = self.listener(item, event);
            }
        }
        item
    }

    /// A listener or two. Two to one event must not have the same type.
    fn listener(&mut self, item: Item, event: &str) -> Item {
        let first = self.random.copy_of(&["a", "a@2", "=\"a\"@1", "a@1", "=jobType"]);
        let item = item.with(event, first);
        if self.random.percent(30) { item.with(event, "b@2") } else { item }
    }

    /// A gateway, the join of which has a listener, sometimes.
    pub(super) fn joined(&mut self, item: Item) -> Item {
        let is_listened = self.features.has("listener") && self.random.percent(10);
        if is_listened { self.listener(item, "join-listen") } else { item }
    }

    /// A scope, the start event of which has a listener, sometimes.
    pub(super) fn started(&mut self, item: Item) -> Item {
        let is_listened = self.features.has("listener") && self.random.percent(10);
        if is_listened { self.listener(item, "start-listen") } else { item }
    }

    /// An activity with mappings, listeners and repetition.
    fn decorated(&mut self, item: Item) -> Item {
        let item = self.mapped(item);
        let item = self.listened(item);
        self.repeated(item)
    }

    /// An activity with mappings, listeners, repetition and boundary events.
    pub(super) fn activity(&mut self, item: Item, depth: usize) -> Item {
        let mut item = self.decorated(item);
        if !self.features.has("boundary") {
            return item;
        }
        let mut percent = 30;
        let mut caught = Vec::new();
        while self.random.percent(percent) {
            if let Some(boundary) = self.boundary(depth, &mut caught) {
                item.items.push(boundary);
            }
            percent = percent * 2 / 3;
        }
        if self.features.has("compensation") && self.random.percent(20) {
            let undo = self.compensation();
            item.items.push(undo);
            self.undone.push(item.id.clone());
        }
        item
    }

    /// A compensation boundary event with its handler.
    fn compensation(&mut self) -> Item {
        let id = self.id("undo");
        let keyword = self.random.copy_of(&["service", "service", "manual", "sub", "user"]);
        let handler = Item::new(keyword, &format!("{id}-handler"));
        let handler = match keyword {
            "service" => handler.with("type", "a"),
            "user" if self.features.has("user-task") => self.task_listened(handler.switch("native")),
            "sub" => handler.containing([Item::new("service", &format!("{id}-task")).with("type", "b")]),
            _ => handler,
        };
        let handler = self.decorated(handler);
        Item::new("on", &id).with("compensation", "").containing([handler])
    }

    pub(super) fn mapped(&mut self, mut item: Item) -> Item {
        if !self.features.has("mapping") {
            return item;
        }
        let sources = ["=choice", "=key", "={a: choice, b: items}", "=missing", "=assert(ok, ok = true)", "fixed"];
        while self.random.percent(12) {
            let source = self.random.copy_of(&sources);
            let target = self.random.copy_of(&["in.x", "in.y", "in.choice", "in.o.p"]);
            item = item.with(target, source);
        }
        let sources = ["=result", "=x", "=choice + 1", "=assert(ok, ok = true)", "={r: result}"];
        while self.random.percent(12) {
            let source = self.random.copy_of(&sources);
            let target = self.random.copy_of(&["out.z", "out.choice", "out.o.q", "out.x"]);
            item = item.with(target, source);
        }
        item
    }

    fn repeated(&mut self, mut item: Item) -> Item {
        if !self.features.has("multi-instance") || !self.random.percent(14) {
            return item;
        }
        let items = self.random.copy_of(&["=items", "=items", "=[1, 2]", "=[]", "=more"]);
        item = item.with("each", items);
        if self.random.percent(50) {
            item = item.switch("sequential");
        }
        if self.random.percent(70) {
            item = item.with("element", "item");
        }
        if self.random.percent(60) {
            let result = self.random.copy_of(&["=result", "=item", "=loopCounter", "={i: item}"]);
            item = item.with("collect", "results").with("result", result);
        }
        // The reference forgets instances that begin after an early end, which happens when nothing waits.
        let passes =
            matches!(item.keyword.as_str(), "manual" | "task") || item.has("expression") || item.has("decision");
        let waits = item.has("sequential") || !passes;
        if waits && self.random.percent(25) {
            let until = self.random.copy_of(&["=numberOfCompletedInstances >= 1", "=result = 1", "=done"]);
            item = item.with("until", until);
        }
        item
    }

    pub(super) fn call(&mut self, depth: usize) -> Item {
        let item = self.bare_call();
        self.activity(item, depth)
    }

    fn bare_call(&mut self) -> Item {
        let id = self.id("call");
        self.calls = true;
        let callee = self.callee.unwrap_or("nowhere");
        let process = match self.random.index(5) {
            0 => format!("=\"{callee}\""),
            1 => "nowhere".to_owned(),
            _ => callee.to_owned(),
        };
        let mut item = Item::new("call", &id).with("process", &process);
        if self.random.percent(40) {
            item = item.with("all-child", self.random.copy_of(&["true", "false"]));
        }
        if self.random.percent(40) {
            item = item.with("all-parent", self.random.copy_of(&["true", "false"]));
        }
        item
    }
}
