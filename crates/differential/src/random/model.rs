//! Random models.

use crate::model::{Item, Model};
use chance::Chance;

/// What models can be made of and what is done with them; each can be left out.
pub const FEATURES: &[&str] = &[
    "ad-hoc",
    "boundary",
    "call",
    "compensation",
    "error",
    "escalation",
    "event-sub-process",
    "events",
    "exclusive",
    "inclusive",
    "job-kinds",
    "script",
    "signal",
    "leaving",
    "listener",
    "loop",
    "mapping",
    "message",
    "modify",
    "multi-instance",
    "nested",
    "parallel",
    "sub-process",
    "terminate",
    "throw",
    "timer",
    "user-task",
];

/// What is left out of random models and of what is done with them.
#[derive(Clone, Debug, Default)]
pub struct Features {
    without: Vec<String>,
}

impl Features {
    /// All features but these.
    ///
    /// # Errors
    /// When there is no feature of that name.
    pub fn without(names: &str) -> Result<Self, String> {
        let without: Vec<String> =
            names.split(',').filter(|name| !name.is_empty()).map(|name| name.trim().to_owned()).collect();
        match without.iter().find(|name| !FEATURES.contains(&name.as_str())) {
            Some(name) => Err(format!("there is no feature '{name}'; there are {}", FEATURES.join(", "))),
            None => Ok(Features { without }),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        !self.without.iter().any(|without| without == name)
    }
}

const DEPTH_MAX: usize = 4;
const ITEMS_MAX: usize = 16;
const CALLED_ITEMS_MAX: usize = 5;

/// Makes a model: the process `main`, `called` when it calls one, and `leaf` when that calls one.
pub(super) fn generate(random: &mut Chance, features: &Features) -> Model {
    let mut maker = Maker {
        random,
        features,
        count: 0,
        messages: 0,
        budget: ITEMS_MAX,
        callee: Some("called"),
        calls: false,
        is_bound: false,
        is_repeated: false,
        is_calm: false,
    };
    let main = maker.container("process", "main", 0);
    let mut main = maker.listened(main);
    if main.items.is_empty() {
        main.items.push(maker.task());
    }
    let mut processes = vec![main];
    for (id, callee) in [("called", Some("leaf")), ("leaf", None)] {
        if !std::mem::take(&mut maker.calls) {
            break;
        }
        maker.budget = CALLED_ITEMS_MAX;
        maker.callee = callee;
        let process = maker.container("process", id, 1);
        processes.push(maker.listened(process));
    }
    Model { processes }
}

/// Prefix of the ids of inclusive gateways whose branches tokens may leave, or to which a boundary event may lead again.
pub(super) const LEAVING: &str = "leaving";

struct Maker<'a> {
    random: &'a mut Chance,
    features: &'a Features,
    count: usize,
    messages: usize,
    budget: usize,
    /// The process that call activities call.
    callee: Option<&'static str>,
    /// Whether a call activity calls it.
    calls: bool,
    /// Inside a branch of an inclusive gateway, where tokens must not leave for another place than the join: the reference
    /// does not look at a waiting join again when the last other token ends elsewhere. Of a gateway that is called
    /// [`LEAVING`] they may leave; where the sides then differ, the run ends.
    is_bound: bool,
    /// On the path of a boundary event that may come again, so that what it is attached to leads to every join there.
    is_repeated: bool,
    /// Inside an event sub-process where no escalation may be thrown.
    is_calm: bool,
}

impl Maker<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}{}", self.count)
    }

    /// A process or sub-process with what is inside.
    fn container(&mut self, keyword: &str, id: &str, depth: usize) -> Item {
        let was_bound = std::mem::replace(&mut self.is_bound, false);
        let item = self.unbound_container(keyword, id, depth);
        self.is_bound = was_bound;
        item
    }

    fn unbound_container(&mut self, keyword: &str, id: &str, depth: usize) -> Item {
        let mut items = self.sequence(depth);
        if self.random.percent(30) {
            items.extend(self.end());
        }
        items.extend(self.event_sub_processes(depth));
        Item::new(keyword, id).containing(items)
    }

    fn event_sub_processes(&mut self, depth: usize) -> Vec<Item> {
        let mut items = Vec::new();
        if self.features.has("event-sub-process") {
            let mut percent = 30;
            let mut caught = Vec::new();
            while self.random.percent(percent) {
                items.extend(self.event_sub_process(depth, &mut caught));
                percent = percent * 2 / 3;
            }
        }
        items
    }

    fn sequence(&mut self, depth: usize) -> Vec<Item> {
        let count = 1 + self.random.index(if depth == 0 { 4 } else { 3 });
        (0..count).filter_map(|_| self.node(depth)).collect()
    }

    /// What can come next, each with how often it does.
    fn kinds(&self, depth: usize) -> Vec<(usize, &'static str)> {
        let has = |name: &str| usize::from(self.features.has(name));
        let deep = usize::from(depth < DEPTH_MAX);
        let loud = usize::from(!self.is_calm);
        vec![
            (30, "service"),
            (5 * has("job-kinds"), "job-kind"),
            (6 * has("script"), "script"),
            (5, "manual"),
            (10 * deep * has("exclusive"), "exclusive"),
            (10 * deep * has("parallel"), "parallel"),
            (8 * deep * has("inclusive"), "inclusive"),
            (14 * deep * has("sub-process"), "sub"),
            (6 * deep * has("events"), "events"),
            (4 * deep * has("loop"), "loop"),
            (4 * has("message"), "receive"),
            (5 * has("message"), "catch-message"),
            (6 * has("timer"), "catch-timer"),
            (4 * has("throw"), "throw"),
            (4 * has("signal"), "catch-signal"),
            (3 * has("signal"), "signal"),
            (8 * has("user-task"), "user"),
            (7 * deep * has("ad-hoc"), "ad-hoc"),
            (5 * has("escalation") * loud, "escalate"),
            (4 * has("compensation"), "compensate"),
            (6 * has("call") * loud * usize::from(self.callee.is_some()), "call"),
        ]
    }

    fn node(&mut self, depth: usize) -> Option<Item> {
        if self.budget == 0 {
            return None;
        }
        self.budget -= 1;
        let kinds = self.kinds(depth);
        let kind = *self.random.weighted(&kinds)?;
        Some(match kind {
            "service" => self.task(),
            "job-kind" => {
                let keyword = self.random.copy_of(&["send", "script", "rule"]);
                let id = self.id(keyword);
                let item = Item::new(keyword, &id).with("type", "b");
                self.activity(item, depth)
            }
            "script" => self.script(depth),
            "manual" => self.manual(),
            "exclusive" | "parallel" | "inclusive" => self.gateway(kind, depth),
            "events" => self.event_gateway(depth),
            "sub" => {
                let id = self.id("sub");
                let item = self.container("sub", &id, depth + 1);
                self.activity(item, depth)
            }
            "loop" => {
                let id = self.id("loop");
                let mut items = vec![self.task()];
                items.extend(self.sequence(depth + 1));
                Item::new("loop", &id).with("cond", "=again = true").containing(items)
            }
            "receive" => {
                let id = self.id("receive");
                let item = self.message(Item::new("receive", &id));
                self.activity(item, depth)
            }
            "catch-message" => self.catch_message(),
            "catch-timer" => self.catch_timer(),
            "throw" => self.throw(),
            "catch-signal" => {
                let id = self.id("signalled");
                let item = self.signal(Item::new("catch", &id));
                self.mapped_output(item)
            }
            "signal" => {
                let id = self.id("signal");
                self.signal(Item::new("throw", &id))
            }
            "user" => {
                let item = self.user_task();
                self.activity(item, depth)
            }
            "ad-hoc" => self.ad_hoc(depth),
            "compensate" => {
                let id = self.id("compensate");
                Item::new("throw", &id).with("compensation", "")
            }
            "escalate" => self.escalate(),
            _ => self.call(depth),
        })
    }

    fn escalate(&mut self) -> Item {
        let id = self.id("escalate");
        let code = self.random.copy_of(&["S1", "S2", "S3"]);
        Item::new("throw", &id).with("escalation", code)
    }

    fn signal(&mut self, item: Item) -> Item {
        let name = self.random.copy_of(&["s1", "s2", "=\"s1\"", "=key"]);
        item.with("signal", name)
    }

    fn user_task(&mut self) -> Item {
        let id = self.id("user");
        let mut item = Item::new("user", &id);
        if self.random.percent(85) {
            item = item.switch("native");
            if self.random.percent(25) {
                item = item.with("priority", self.random.copy_of(&["70", "=choice + 40", "=missing"]));
            }
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

    /// What can be chosen has no events attached, whose paths would need an end event.
    fn ad_hoc(&mut self, depth: usize) -> Item {
        let id = self.id("ad-hoc");
        let was_bound = std::mem::replace(&mut self.is_bound, false);
        let mut choices = Vec::new();
        for _ in 0..1 + self.random.index(3) {
            let choice = self.choice(depth);
            choices.push(choice);
        }
        self.is_bound = was_bound;
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
        self.activity(item.containing(choices), depth)
    }

    fn choice(&mut self, depth: usize) -> Item {
        match self.random.index(10) {
            0..3 => {
                let id = self.id("chosen");
                let item = Item::new("service", &id).with("type", "a");
                self.mapped(item)
            }
            3..5 if self.features.has("user-task") => self.user_task(),
            5 => {
                let id = self.id("chosen");
                let item = Item::new("service", &id).with("type", "b");
                self.repeated(item)
            }
            6..9 => {
                let id = self.id("within");
                self.container("sub", &id, depth + 2)
            }
            _ => {
                let id = self.id("chosen");
                Item::new("task", &id)
            }
        }
    }

    fn manual(&mut self) -> Item {
        let keyword = self.random.copy_of(&["manual", "task"]);
        let id = self.id(keyword);
        self.activity(Item::new(keyword, &id), DEPTH_MAX - 1)
    }

    fn script(&mut self, depth: usize) -> Item {
        let id = self.id("script");
        // Variables of the mappings, the loops and the steps; some expressions fail without them.
        let expression = self.random.copy_of(&["=x", "=x + 1", "=again", "={a: x, b: [y]}", "=assert(x, x > 1)"]);
        let result = self.random.copy_of(&["x", "y", "s"]);
        let item = Item::new("script", &id).with("expression", expression).with("variable", result);
        self.activity(item, depth)
    }

    fn task(&mut self) -> Item {
        let id = self.id("task");
        let job_type = self.random.copy_of(&["a", "b", "=\"a\"", "=jobType"]);
        let retries = self.random.copy_of(&["1", "2", "3", "=1 + 1"]);
        let mut item = Item::new("service", &id).with("type", job_type).with("retries", retries);
        if self.random.percent(15) {
            item = item.with("header.kind", "x y");
        }
        self.activity(item, DEPTH_MAX - 1)
    }

    /// Something with execution listeners, sometimes. Two to one event must not have the same type.
    fn listened(&mut self, mut item: Item) -> Item {
        let may_begin = !matches!(item.keyword.as_str(), "on");
        if !self.features.has("listener") || !self.random.percent(18) {
            return item;
        }
        for event in ["listen.start", "listen.end"] {
            if event == "listen.start" && !may_begin || !self.random.percent(50) {
                continue;
            }
            let first = self.random.copy_of(&["a", "a@2", "=\"a\"@1", "a@1"]);
            item = item.with(event, first);
            if self.random.percent(30) {
                item = item.with(event, "b@2");
            }
        }
        item
    }

    /// An activity with mappings, listeners, repetition and boundary events.
    fn activity(&mut self, item: Item, depth: usize) -> Item {
        let item = self.mapped(item);
        let item = self.listened(item);
        let mut item = self.repeated(item);
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
        }
        item
    }

    /// A compensation boundary event with its handler.
    fn compensation(&mut self) -> Item {
        let id = self.id("undo");
        let keyword = self.random.copy_of(&["service", "service", "manual", "sub"]);
        let handler = Item::new(keyword, &format!("{id}-handler"));
        let handler = match keyword {
            "service" => handler.with("type", "a"),
            "sub" => handler.containing([Item::new("service", &format!("{id}-task")).with("type", "b")]),
            _ => handler,
        };
        let handler = self.mapped(handler);
        let handler = self.repeated(handler);
        Item::new("on", &id).with("compensation", "").containing([handler])
    }

    fn mapped(&mut self, mut item: Item) -> Item {
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
        let passes = matches!(item.keyword.as_str(), "manual" | "task") || item.has("expression");
        let waits = item.has("sequential") || !passes;
        if waits && self.random.percent(25) {
            let until = self.random.copy_of(&["=numberOfCompletedInstances >= 1", "=result = 1", "=done"]);
            item = item.with("until", until);
        }
        item
    }

    fn gateway(&mut self, kind: &str, depth: usize) -> Item {
        let is_inclusive = kind == "inclusive";
        let may_leave = is_inclusive && !self.is_bound && self.features.has("leaving") && self.random.percent(40);
        let id = self.id(if may_leave || is_inclusive && self.is_repeated { LEAVING } else { kind });
        let count = 2 + self.random.index(2);
        let with_default = self.random.percent(75);
        let was_bound = self.is_bound;
        self.is_bound |= is_inclusive && !may_leave;
        let mut branches = Vec::new();
        for index in 0..count {
            let mut branch = Item::new("branch", "");
            if kind != "parallel" {
                if with_default && index == count - 1 {
                    branch = branch.switch("default");
                } else {
                    let conditions = [format!("=choice = {index}"), format!("=choice > {index}"), "=flag".to_owned()];
                    branch = branch.with("cond", self.random.choose(&conditions).as_str());
                }
            }
            let items = match self.random.index(100) {
                0..12 => Vec::new(),
                12..24 if depth < DEPTH_MAX => vec![self.inner_gateway(depth + 1)],
                _ => self.sequence(depth + 1),
            };
            branch = branch.containing(items);
            if self.random.percent(15) {
                branch.items.extend(self.end());
            }
            branches.push(branch);
        }
        self.is_bound = was_bound;
        Item::new(kind, &id).containing(branches)
    }

    /// A gateway that leads right into the next one.
    fn inner_gateway(&mut self, depth: usize) -> Item {
        let kinds = ["exclusive", "parallel", "inclusive"].map(|kind| (usize::from(self.features.has(kind)), kind));
        let kind = self.random.weighted(&kinds).copied();
        match kind {
            Some(kind) => self.gateway(kind, depth),
            None => self.manual(),
        }
    }

    fn event_gateway(&mut self, depth: usize) -> Item {
        let id = self.id("events");
        let count = 2 + self.random.index(2);
        let branches: Vec<Item> = (0..count)
            .map(|_| {
                let timer = self.features.has("timer");
                let message = self.features.has("message");
                let catch = if timer && (!message || self.random.percent(50)) {
                    self.catch_timer()
                } else {
                    self.catch_message()
                };
                let mut items = vec![catch];
                items.extend(self.sequence(depth + 1));
                Item::new("branch", "").containing(items)
            })
            .collect();
        Item::new("events", &id).containing(branches)
    }

    fn message(&mut self, item: Item) -> Item {
        self.messages += 1;
        let number = if self.random.percent(30) { 1 } else { self.messages };
        let key = self.random.copy_of(&["=key", "=key", "=\"k1\"", "=choice", "=x"]);
        item.with("message", &format!("m{number}")).with("key", key)
    }

    fn catch_message(&mut self) -> Item {
        let id = self.id("caught");
        let item = self.message(Item::new("catch", &id));
        let item = self.mapped_output(item);
        self.listened(item)
    }

    fn mapped_output(&mut self, item: Item) -> Item {
        if self.features.has("mapping") && self.random.percent(20) { item.with("out.z", "=result") } else { item }
    }

    fn catch_timer(&mut self) -> Item {
        let id = self.id("wait");
        let item = Item::new("catch", &id);
        if self.random.percent(20) {
            return item.with("date", "2030-01-01T00:00:40Z");
        }
        let duration = self.random.copy_of(&["PT10S", "PT20S", "PT30S", "PT0S", "=duration(\"PT20S\")", "=delay"]);
        self.listened(item.with("timer", duration))
    }

    fn throw(&mut self) -> Item {
        let id = self.id("throw");
        let item = Item::new("throw", &id);
        let item = self.listened(item);
        if self.random.percent(40) {
            return item;
        }
        let item = item.with("type", "a");
        self.mapped(item)
    }

    fn call(&mut self, depth: usize) -> Item {
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
        self.activity(item, depth)
    }

    /// The end of a path.
    fn end(&mut self) -> Vec<Item> {
        if self.is_bound {
            return Vec::new();
        }
        let has = |name: &str| usize::from(self.features.has(name));
        let kinds = [
            (4, "none"),
            (5 * has("error"), "error"),
            (4 * has("escalation") * usize::from(!self.is_calm), "escalation"),
            (4 * has("terminate"), "terminate"),
            (3 * has("compensation"), "compensation"),
            (2 * has("throw"), "message"),
            (2 * has("signal"), "signal"),
            (has("leaving") * has("exclusive"), "exclusive"),
            (has("leaving") * has("inclusive"), "inclusive"),
            (has("leaving") * has("parallel"), "parallel"),
        ];
        let Some(kind) = self.random.weighted(&kinds).copied() else { return Vec::new() };
        let id = self.id("end");
        let item = Item::new("end", &id);
        vec![match kind {
            "error" => item.with("error", self.random.copy_of(&["E1", "E2", "=\"E1\""])),
            "escalation" => item.with("escalation", self.random.copy_of(&["S1", "S2"])),
            "terminate" => item.switch("terminate"),
            "compensation" => item.switch("compensation"),
            "message" => item.with("type", "a"),
            "signal" => self.signal(item),
            // The path ends in a gateway.
            "exclusive" | "inclusive" | "parallel" => return vec![Item::new(kind, &id), Item::new("stop", "")],
            _ => item,
        }]
    }

    /// What a boundary event or event sub-process waits for; each error and escalation once in a scope.
    fn trigger(&mut self, item: Item, caught: &mut Vec<String>) -> Option<Item> {
        let has = |name: &str| usize::from(self.features.has(name));
        let kinds = [
            (4 * has("timer"), "timer"),
            (4 * has("message"), "message"),
            (5 * has("error"), "error"),
            (4 * has("escalation"), "escalation"),
            (4 * has("signal"), "signal"),
        ];
        let kind = *self.random.weighted(&kinds)?;
        let code = match kind {
            "error" => self.random.copy_of(&["E1", "E2", ""]),
            "escalation" => self.random.copy_of(&["S1", "S2", ""]),
            _ => "",
        };
        if matches!(kind, "error" | "escalation") {
            let caught_code = format!("{kind} {code}");
            if caught.contains(&caught_code) {
                return None;
            }
            caught.push(caught_code);
        }
        let non_interrupting = kind != "error" && self.random.percent(45);
        let item = match kind {
            "timer" if non_interrupting && self.random.percent(40) => {
                item.with("cycle", self.random.copy_of(&["R2/PT10S", "R/PT30S", "R1/PT20S"]))
            }
            "timer" => item.with("timer", self.random.copy_of(&["PT10S", "PT20S", "PT60S"])),
            "message" => self.message(item),
            "signal" => self.signal(item),
            _ => item.with(kind, code),
        };
        let item = self.mapped_output(item);
        Some(if non_interrupting { item.switch("non-interrupting") } else { item })
    }

    fn boundary(&mut self, depth: usize, caught: &mut Vec<String>) -> Option<Item> {
        let id = self.id("on");
        let mut item = self.trigger(Item::new("on", &id), caught)?;
        if self.is_bound || self.random.percent(40) {
            item = item.switch("rejoin");
        }
        let was_repeated = self.is_repeated;
        self.is_repeated |= item.has("non-interrupting");
        if self.random.percent(60) {
            item.items = self.sequence(depth + 1);
        }
        self.is_repeated = was_repeated;
        if self.random.percent(20) {
            item.items.extend(self.end());
        }
        Some(item)
    }

    fn event_sub_process(&mut self, depth: usize, caught: &mut Vec<String>) -> Option<Item> {
        let id = self.id("event");
        let mut item = self.trigger(Item::new("event", &id), caught)?;
        // On the reference, an escalation from inside triggers the same event sub-process again, or stops there.
        let catches_escalation = item.attributes.iter().any(|(name, _)| name == "escalation");
        let was_calm = self.is_calm;
        self.is_calm |= catches_escalation;
        item.items = self.sequence(depth + 1);
        if self.random.percent(20) {
            item.items.extend(self.end());
        }
        if self.features.has("nested") && depth < DEPTH_MAX {
            item.items.extend(self.event_sub_processes(depth + 1));
        }
        self.is_calm = was_calm;
        Some(item)
    }
}
