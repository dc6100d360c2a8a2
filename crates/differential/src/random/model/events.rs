//! Events, and what happens on them.

use super::{DEPTH_MAX, Maker};
use crate::model::Item;

impl Maker<'_> {
    pub(super) fn escalate(&mut self) -> Item {
        let id = self.id("escalate");
        let code = self.random.copy_of(&["S1", "S2", "S3", "=\"S1\""]);
        let item = Item::new("throw", &id).with("escalation", code);
        self.listened(item)
    }

    /// Undoes all of the scope, or one activity of it.
    pub(super) fn compensating(&mut self, item: Item) -> Item {
        let activity = if self.undone.is_empty() || self.random.percent(60) {
            String::new()
        } else {
            self.random.choose(&self.undone).clone()
        };
        item.with("compensation", &activity)
    }

    /// Further ways into a process. What begins by them has no variables but those that come with the event.
    pub(super) fn start_events(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while self.features.has("start") && self.random.percent(20) {
            let id = self.id("start");
            let has = |name: &str| usize::from(self.features.has(name));
            let kinds = [(has("timer"), "timer"), (2 * has("message"), "message"), (2 * has("signal"), "signal")];
            let Some(kind) = self.random.weighted(&kinds).copied() else { break };
            let item = Item::new("start", &id);
            let item = match kind {
                "timer" if self.random.percent(50) => item.with("cycle", "R2/PT30S"),
                "timer" => item.with("date", "2030-01-01T00:00:50Z"),
                "message" => item.with("message", self.random.copy_of(&["m1", "m9"])),
                _ => item.with("signal", self.random.copy_of(&["s1", "s9"])),
            };
            // A message or signal starts a process at one place only. Of timers that are due together the reference takes any
            // first.
            let is_timer = |item: &Item| item.has("cycle") || item.has("date");
            let is_same = |other: &Item| {
                let starts = |name: &str| item.has(name) && item.get(name) == other.get(name);
                starts("message") || starts("signal") || is_timer(&item) && is_timer(other)
            };
            if items.iter().any(is_same) {
                break;
            }
            let was_signalled = std::mem::replace(&mut self.is_signalled, item.has("signal"));
            items.push(self.listened(item));
            self.budget += 2;
            items.extend(self.sequence(2));
            self.is_signalled = was_signalled;
        }
        items
    }

    pub(super) fn signal(&mut self, item: Item) -> Item {
        let name = self.random.copy_of(&["s1", "s2", "=\"s1\"", "=key"]);
        item.with("signal", name)
    }

    /// A signal that nothing else in the same place waits for, because the reference would tell only one of them.
    fn other_signal(&mut self, item: Item, caught: &mut Vec<String>) -> Option<Item> {
        let item = self.signal(item);
        let name = item.get("signal").unwrap_or_default().trim_matches(['=', '"']);
        let signal = format!("signal {name}");
        if caught.contains(&signal) {
            return None;
        }
        caught.push(signal);
        Some(item)
    }

    pub(super) fn catch_signal(&mut self, caught: &mut Vec<String>) -> Item {
        let id = self.id("signalled");
        let Some(item) = self.other_signal(Item::new("catch", &id), caught) else { return self.catch_timer() };
        let item = self.mapped_output(item);
        self.listened(item)
    }

    pub(super) fn event_gateway(&mut self, depth: usize) -> Item {
        let id = self.id("events");
        let count = 2 + self.random.index(2);
        let mut caught = Vec::new();
        let branches: Vec<Item> = (0..count)
            .map(|_| {
                let has = |name: &str| usize::from(self.features.has(name));
                let kinds =
                    [(4 * has("timer"), "timer"), (4 * has("message"), "message"), (2 * has("signal"), "signal")];
                let catch = match self.random.weighted(&kinds).copied() {
                    Some("message") => self.catch_message(),
                    Some("signal") => self.catch_signal(&mut caught),
                    _ => self.catch_timer(),
                };
                let mut items = vec![catch];
                items.extend(self.sequence(depth + 1));
                Item::new("branch", "").containing(items)
            })
            .collect();
        let item = Item::new("events", &id).containing(branches);
        let item = self.joined(item);
        self.listened(item)
    }

    pub(super) fn message(&mut self, item: Item) -> Item {
        self.messages += 1;
        let number = if self.random.percent(30) { 1 } else { self.messages };
        let key = self.random.copy_of(&["=key", "=key", "=\"k1\"", "=choice", "=x"]);
        // No two events of an element may wait for messages that are the same once their names are evaluated.
        let is_computed = self.random.percent(20);
        let name = if is_computed { format!("=\"n{}\"", self.messages) } else { format!("m{number}") };
        item.with("message", &name).with("key", key)
    }

    pub(super) fn catch_message(&mut self) -> Item {
        let id = self.id("caught");
        let item = self.message(Item::new("catch", &id));
        let item = self.mapped_output(item);
        self.listened(item)
    }

    fn mapped_output(&mut self, item: Item) -> Item {
        if self.features.has("mapping") && self.random.percent(20) { item.with("out.z", "=result") } else { item }
    }

    pub(super) fn catch_timer(&mut self) -> Item {
        let id = self.id("wait");
        let item = Item::new("catch", &id);
        if self.random.percent(20) {
            return self.listened(item.with("date", "2030-01-01T00:00:40Z"));
        }
        let duration = self.random.copy_of(&["PT10S", "PT20S", "PT30S", "PT0S", "=duration(\"PT20S\")", "=delay"]);
        self.listened(item.with("timer", duration))
    }

    pub(super) fn throw(&mut self) -> Item {
        let id = self.id("throw");
        let item = Item::new("throw", &id);
        let item = self.listened(item);
        if self.random.percent(40) {
            return item;
        }
        let item = item.with("type", "a");
        self.mapped(item)
    }

    /// The end of a path.
    pub(super) fn end(&mut self) -> Vec<Item> {
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
            (2 * has("signal") * usize::from(!self.is_signalled), "signal"),
            (has("leaving") * has("exclusive"), "exclusive"),
            (has("leaving") * has("inclusive"), "inclusive"),
            (has("leaving") * has("parallel"), "parallel"),
        ];
        let Some(kind) = self.random.weighted(&kinds).copied() else { return Vec::new() };
        let id = self.id("end");
        let item = Item::new("end", &id);
        let item = match kind {
            // The path ends in a gateway.
            "exclusive" | "inclusive" | "parallel" => return vec![Item::new(kind, &id), Item::new("stop", "")],
            "error" => item.with("error", self.random.copy_of(&["E1", "E2", "=\"E1\""])),
            "escalation" => item.with("escalation", self.random.copy_of(&["S1", "S2", "=\"S2\""])),
            "terminate" => item.switch("terminate"),
            "compensation" => self.compensating(item),
            "message" => item.with("type", "a"),
            "signal" => self.signal(item),
            _ => item,
        };
        vec![self.listened(item)]
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
            "signal" => self.other_signal(item, caught)?,
            _ => item.with(kind, code),
        };
        let item = self.mapped_output(item);
        Some(if non_interrupting { item.switch("non-interrupting") } else { item })
    }

    pub(super) fn boundary(&mut self, depth: usize, caught: &mut Vec<String>) -> Option<Item> {
        let id = self.id("on");
        let mut item = self.trigger(Item::new("on", &id), caught)?;
        if self.is_bound || self.random.percent(40) {
            item = item.switch("rejoin");
        }
        let (was_repeated, was_signalled) = (self.is_repeated, self.is_signalled);
        self.is_repeated |= item.has("non-interrupting");
        self.is_signalled |= item.has("signal");
        if self.random.percent(60) {
            item.items = self.sequence(depth + 1);
        }
        self.is_repeated = was_repeated;
        if self.random.percent(20) {
            item.items.extend(self.end());
        }
        self.is_signalled = was_signalled;
        Some(self.listened(item))
    }

    pub(super) fn event_sub_process(&mut self, depth: usize, caught: &mut Vec<String>) -> Option<Item> {
        let id = self.id("event");
        let mut item = self.trigger(Item::new("event", &id), caught)?;
        // On the reference, an escalation from inside triggers the same event sub-process again, or stops there.
        let catches_escalation = item.attributes.iter().any(|(name, _)| name == "escalation");
        let was_calm = self.is_calm;
        self.is_calm |= catches_escalation;
        let was_signalled = self.is_signalled;
        self.is_signalled |= item.has("signal");
        let undone = std::mem::take(&mut self.undone);
        item.items = self.sequence(depth + 1);
        if self.random.percent(20) {
            item.items.extend(self.end());
        }
        if self.features.has("nested") && depth < DEPTH_MAX {
            item.items.extend(self.event_sub_processes(depth + 1));
        }
        self.undone = undone;
        self.is_signalled = was_signalled;
        self.is_calm = was_calm;
        let item = self.listened(item);
        Some(self.started(item))
    }
}
