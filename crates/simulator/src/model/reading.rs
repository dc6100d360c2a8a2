//! Processes that read long variables again and again without a wait, so that it depends on what reading costs where their
//! commands end. Nothing in them waits for a condition: one that would cost too much does not hold, and its oracle knows no costs.

use std::ops::Range;

use model_builder::{Event, ProcessBuilder};

use chance::Chance;

use super::JOB_TYPE;

/// The long variable, a list of numbers, that their instances are created with.
pub const LIST: &str = "list";
/// What the ids of these processes begin with.
pub const READING: &str = "reading";
/// The process that they call.
pub const CALLED: &str = "reading-called";
/// The decision that they ask.
const DECISION: &str = "sum-of-list";

/// How many blocks follow the first one, which waits.
const BLOCKS: Range<u64> = 2..7;
/// What loops, mappings and script tasks evaluate.
const EXPRESSIONS: &[&str] = &[
    "=sum(list)",
    "=count(list[item > 50000])",
    "=count(list) + done",
    "=if some number in list satisfies number = done then 1 else 2",
    "=list[-1] + max(list)",
    "=sum(for number in list return number + 1)",
    "=count(longer) + count(list)",
];
/// The same for results that are long themselves.
const LONG_EXPRESSIONS: &[&str] =
    &["=append(list, done)", "=list[item > 30000]", "=concatenate([done], list)", "={list: list, done: done}.list"];

/// A process of several such blocks, with waits between some of them.
pub fn random(id: &str, chance: &mut Chance) -> String {
    let mut writer = Writer { builder: ProcessBuilder::new(id).start("start"), chance, count: 0 };
    writer.wait();
    for _ in 0..writer.chance.within(BLOCKS) {
        writer.block();
    }
    writer.builder.end("end").to_xml()
}

/// The process that is called, which reads what it was given before and after a wait.
pub fn called() -> String {
    let builder = ProcessBuilder::new(CALLED).start("start").script_task("first", "=sum(list)", "first");
    let builder = builder.service_task("wait", JOB_TYPE).script_task("second", "=sum(list) + first", "second");
    builder.script_task("third", "=count(list) + second", "third").end("end").to_xml()
}

/// The decision, which requires another one.
pub fn decision() -> String {
    let literal = |id: &str, requirement: &str, text: &str| {
        let logic = format!("<literalExpression><text>{text}</text></literalExpression>");
        format!(r#"<decision id="{id}" name="{id}"><variable name="{id}"/>{requirement}{logic}</decision>"#)
    };
    let requirement = r##"<informationRequirement><requiredDecision href="#counted"/></informationRequirement>"##;
    let decisions = literal("counted", "", "count(list)") + &literal(DECISION, requirement, "sum(list) + counted");
    let namespace = "https://www.omg.org/spec/DMN/20191111/MODEL/";
    format!(r#"<definitions xmlns="{namespace}" id="sums" name="sums" namespace="sums">{decisions}</definitions>"#)
}

/// A list of about so many bytes as JSON.
pub fn list(bytes: usize, chance: &mut Chance) -> String {
    let mut text = String::from("[");
    while text.len() < bytes {
        text += &format!("{},", chance.below(100_000));
    }
    text + "0]"
}

/// Adds blocks to a process, numbering their elements.
struct Writer<'a> {
    builder: ProcessBuilder,
    chance: &'a mut Chance,
    count: usize,
}

impl Writer<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}", self.count)
    }

    fn add(&mut self, change: impl FnOnce(ProcessBuilder) -> ProcessBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    /// Until the next command, checkpoints are written on some nodes and not on others.
    fn wait(&mut self) {
        let id = self.id("wait");
        let is_timer = self.chance.one_in(3);
        self.add(|builder| match is_timer {
            true => builder.catch_event(&id, Event::Duration("PT2S")),
            false => builder.service_task(&id, JOB_TYPE),
        });
    }

    fn block(&mut self) {
        match self.chance.below(9) {
            0..=2 => self.repeated(),
            3 => self.scripts(),
            4 => self.mappings(),
            5 => self.choice(),
            6 => {
                let id = self.id("call");
                self.add(|builder| builder.call_activity(&id, CALLED));
            }
            7 => {
                let id = self.id("decision");
                self.add(|builder| builder.called_decision(&id, DECISION, "decided"));
            }
            _ => self.wait(),
        }
    }

    /// Each round reads the list and changes another variable.
    fn repeated(&mut self) {
        let (id, rounds) = (self.id("loop"), self.chance.within(5..40));
        let items = format!("=for i in 1..{rounds} return i");
        let (result, is_sequential) = (self.chance.copy_of(EXPRESSIONS), self.chance.one_in(2));
        self.add(|builder| {
            let builder = builder.manual_task(&id);
            let builder = match is_sequential {
                true => builder.sequential_multi_instance(&items, "i"),
                false => builder.multi_instance(&items, "i"),
            };
            let builder = builder.output_collection("sums", result);
            builder.completion_condition("=sum(list) = -1")
        });
    }

    fn scripts(&mut self) {
        for _ in 0..self.chance.within(2..5) {
            let id = self.id("script");
            let (of, variable) = match self.chance.below(3) {
                0 => (LONG_EXPRESSIONS, "longer"),
                _ => (EXPRESSIONS, "sum"),
            };
            let expression = self.chance.copy_of(of);
            self.add(|builder| builder.script_task(&id, expression, variable));
        }
    }

    fn mappings(&mut self) {
        let id = self.id("throw");
        let [first, second] = std::array::from_fn(|_| self.chance.copy_of(EXPRESSIONS));
        let long = self.chance.copy_of(LONG_EXPRESSIONS);
        self.add(|builder| {
            let builder = builder.throw(&id).input(long, "longer").input("=count(longer)", "counted");
            builder.input(first, "first").output(second, "second").output("=longer", "longer")
        });
    }

    fn choice(&mut self) {
        let (fork, join, task) = (self.id("fork"), self.id("join"), self.id("task"));
        self.add(|builder| {
            let builder = builder.exclusive_gateway(&fork).condition("=sum(list) > 1000000000000");
            let builder = builder.manual_task(&task).exclusive_gateway(&join);
            builder.move_to(&fork).default_flow().connect_to(&join).move_to(&join)
        });
    }
}
