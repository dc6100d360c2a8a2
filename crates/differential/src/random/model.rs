//! Random models.

mod activities;
mod events;

use crate::model::{Item, Model};
use chance::Chance;

/// What models can be made of and what is done with them; each can be left out.
pub const FEATURES: &[&str] = &[
    "ad-hoc",
    "boundary",
    "call",
    "compensation",
    "decision",
    "error",
    "escalation",
    "event-sub-process",
    "events",
    "exclusive",
    "inclusive",
    "job-kinds",
    "script",
    "signal",
    "start",
    "leaving",
    "link",
    "listener",
    "loop",
    "mapping",
    "message",
    "modify",
    "multi-instance",
    "nested",
    "parallel",
    "sub-process",
    "task-listener",
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
        is_signalled: false,
        is_inclusive: false,
        undone: Vec::new(),
    };
    let main = maker.container("process", "main", 0);
    let mut main = maker.listened(main);
    if main.items.is_empty() {
        main.items.push(maker.task());
    }
    let starts = maker.start_events();
    main.items.extend(starts);
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
    /// On the path of a signal, where none may be thrown that might lead there again without end.
    is_signalled: bool,
    /// Inside a branch of any inclusive gateway: nobody sees the way to its join from a link event that throws.
    is_inclusive: bool,
    /// Activities of this scope that have compensation handlers.
    undone: Vec<String>,
}

impl Maker<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}{}", self.count)
    }

    /// A process or sub-process with what is inside.
    fn container(&mut self, keyword: &str, id: &str, depth: usize) -> Item {
        let was_bound = std::mem::replace(&mut self.is_bound, false);
        let was_inclusive = std::mem::replace(&mut self.is_inclusive, false);
        let undone = std::mem::take(&mut self.undone);
        let item = self.unbound_container(keyword, id, depth);
        self.undone = undone;
        self.is_inclusive = was_inclusive;
        self.is_bound = was_bound;
        self.started(item)
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
        let mut items = Vec::new();
        for _ in 0..count {
            let Some(item) = self.node(depth) else { break };
            let link = item.get("link").map(str::to_owned);
            items.push(item);
            if let Some(link) = link {
                let landed = Item::new("catch", &format!("{link}-landed")).with("link", &link);
                items.push(self.listened(landed));
            }
        }
        items
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
            (5 * has("decision"), "decision"),
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
            (3 * has("signal") * usize::from(!self.is_signalled), "signal"),
            (8 * has("user-task"), "user"),
            (7 * deep * has("ad-hoc"), "ad-hoc"),
            (5 * has("escalation") * loud, "escalate"),
            (4 * has("compensation"), "compensate"),
            (4 * has("link") * usize::from(!self.is_inclusive), "link"),
            (6 * has("call") * usize::from(self.may_call()), "call"),
        ]
    }

    /// What is called may throw whatever must not be thrown here.
    fn may_call(&self) -> bool {
        self.callee.is_some() && !self.is_calm && !self.is_signalled
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
            "decision" => self.decision(depth),
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
                // A loop has no end unless something in it waits.
                let mut first = self.task();
                first.attributes.retain(|(name, _)| name != "each");
                let mut items = vec![first];
                items.extend(self.sequence(depth + 1));
                let item = Item::new("loop", &id).with("cond", "=again = true").containing(items);
                let item = self.joined(item);
                self.listened(item)
            }
            "receive" => {
                let id = self.id("receive");
                let item = self.message(Item::new("receive", &id));
                self.activity(item, depth)
            }
            "catch-message" => self.catch_message(),
            "catch-timer" => self.catch_timer(),
            "throw" => self.throw(),
            "catch-signal" => self.catch_signal(&mut Vec::new()),
            "signal" => {
                let id = self.id("signal");
                let item = self.signal(Item::new("throw", &id));
                self.listened(item)
            }
            "user" => {
                let item = self.user_task();
                self.activity(item, depth)
            }
            "ad-hoc" => self.ad_hoc(depth),
            "compensate" => {
                let id = self.id("compensate");
                let item = self.compensating(Item::new("throw", &id));
                self.listened(item)
            }
            "link" => {
                let id = self.id("link");
                let item = Item::new("throw", &id).with("link", &id);
                self.listened(item)
            }
            "escalate" => self.escalate(),
            _ => self.call(depth),
        })
    }

    fn gateway(&mut self, kind: &str, depth: usize) -> Item {
        let is_inclusive = kind == "inclusive";
        let may_leave = is_inclusive && !self.is_bound && self.features.has("leaving") && self.random.percent(40);
        let id = self.id(if may_leave || is_inclusive && self.is_repeated { LEAVING } else { kind });
        let count = 2 + self.random.index(2);
        let with_default = self.random.percent(75);
        let (was_bound, was_inclusive) = (self.is_bound, self.is_inclusive);
        self.is_bound |= is_inclusive && !may_leave;
        self.is_inclusive |= is_inclusive;
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
        (self.is_bound, self.is_inclusive) = (was_bound, was_inclusive);
        let item = self.joined(Item::new(kind, &id).containing(branches));
        self.listened(item)
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
}
