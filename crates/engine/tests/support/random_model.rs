//! Random block-structured models.

use model_builder::{Event, ProcessBuilder};
use proptest::prelude::*;

/// A piece of a process with one entry and one exit.
#[derive(Clone, Debug)]
pub enum Block {
    Task,
    UserTask { has_listeners: bool },
    Script,
    Manual,
    Throw,
    Broadcast,
    Link,
    Escalation,
    Catch(Waits),
    Receive,
    FirstOfTwo(Box<Block>, Box<Block>),
    Call,
    Sequence(Vec<Block>),
    Exclusive(Vec<Block>),
    Parallel(Vec<Block>),
    Inclusive { branches: Vec<Block>, leaves: bool },
    SubProcess { inside: Box<Block>, ends: Ends, handler: Option<Handler> },
    Boundary { on: Box<Block>, ends: Ends, handler: Handler },
    Loop { inside: Box<Block>, is_sequential: bool, stops: bool, handler: Option<Handler> },
    Listened { block: Box<Block>, listeners: Listeners },
}

/// How many execution listeners the first element of a block has for its start and for its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listeners {
    start: usize,
    end: usize,
}

/// What happens on an event that interrupts a scope or not. In an event sub-process, another one may be directly inside.
#[derive(Clone, Debug)]
pub struct Handler {
    pub event: Waits,
    pub is_interrupting: bool,
    pub then: Box<Block>,
    pub inside: Option<Box<Handler>>,
}

/// What an event waits for.
#[derive(Clone, Copy, Debug)]
pub enum Waits {
    Timer,
    Cycle,
    Message,
    Error,
    AnyError,
    Escalation,
    Signal,
    /// The signal that the model itself broadcasts: only catch events wait for it, or it would cause itself for ever.
    Thrown,
}

/// How a sub-process ends.
#[derive(Clone, Copy, Debug)]
pub enum Ends {
    Plainly,
    ByError,
    ByEscalation,
    ByTerminating,
}

fn waits() -> impl Strategy<Value = Waits> {
    prop_oneof![
        2 => Just(Waits::Timer),
        1 => Just(Waits::Cycle),
        2 => Just(Waits::Message),
        2 => Just(Waits::Error),
        1 => Just(Waits::AnyError),
        2 => Just(Waits::Escalation),
        2 => Just(Waits::Signal),
    ]
}

fn ends() -> impl Strategy<Value = Ends> {
    prop_oneof![
        3 => Just(Ends::Plainly),
        2 => Just(Ends::ByError),
        2 => Just(Ends::ByEscalation),
        1 => Just(Ends::ByTerminating),
    ]
}

fn handler(nests: bool, inner: impl Strategy<Value = Block> + Clone + 'static) -> impl Strategy<Value = Handler> {
    let one = (waits(), any::<bool>(), inner).prop_map(|(event, is_interrupting, then)| Handler {
        event,
        is_interrupting,
        then: Box::new(then),
        inside: None,
    });
    let one = one.boxed();
    if !nests {
        return one;
    }
    let inside = (one.clone(), prop::option::of(one.clone())).prop_map(nest);
    (one, prop::option::of(inside)).prop_map(nest).boxed()
}

fn nest((outer, inside): (Handler, Option<Handler>)) -> Handler {
    Handler { inside: inside.map(Box::new), ..outer }
}

/// When it `nests`, event sub-processes are directly in others, and paths leave the branches of inclusive gateways.
pub fn block(nests: bool) -> impl Strategy<Value = Block> {
    let leaf = prop_oneof![
        5 => Just(Block::Task),
        2 => any::<bool>().prop_map(|has_listeners| Block::UserTask { has_listeners }),
        1 => prop_oneof![Just(Block::Manual), Just(Block::Script)],
        1 => Just(Block::Throw),
        1 => Just(Block::Broadcast),
        1 => Just(Block::Link),
        1 => Just(Block::Escalation),
        1 => prop_oneof![Just(Waits::Timer), Just(Waits::Message), Just(Waits::Signal), Just(Waits::Thrown)].prop_map(Block::Catch),
        1 => Just(Block::Receive),
        1 => Just(Block::Call),
    ];
    leaf.prop_recursive(4, 20, 4, move |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        let boxed = inner.clone().prop_map(Box::new);
        let handler = || handler(nests, inner.clone());
        let leaves = if nests { any::<bool>().boxed() } else { Just(false).boxed() };
        prop_oneof![
            3 => several.clone().prop_map(Block::Sequence),
            1 => several.clone().prop_map(Block::Exclusive),
            1 => (several.clone(), leaves)
                .prop_map(|(branches, leaves)| Block::Inclusive { branches, leaves }),
            2 => several.prop_map(Block::Parallel),
            1 => (boxed.clone(), boxed.clone()).prop_map(|(first, second)| Block::FirstOfTwo(first, second)),
            3 => (boxed.clone(), ends(), prop::option::of(handler()))
                .prop_map(|(inside, ends, handler)| Block::SubProcess { inside, ends, handler }),
            2 => (boxed.clone(), ends(), handler()).prop_map(|(on, ends, handler)| Block::Boundary { on, ends, handler }),
            1 => (boxed, any::<bool>(), any::<bool>(), prop::option::of(handler())).prop_map(
                |(inside, is_sequential, stops, handler)| Block::Loop { inside, is_sequential, stops, handler }
            ),
            2 => (inner.clone().prop_map(Box::new), 0..3_usize, 0..2_usize).prop_map(
                |(block, start, end)| Block::Listened { block, listeners: Listeners { start, end } }
            ),
        ]
    })
}

/// Adds blocks to a process, numbering their elements.
struct Writer {
    builder: ProcessBuilder,
    count: usize,
    /// Those of the element that comes next.
    listeners: Listeners,
}

impl Writer {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}", self.count)
    }

    fn add(&mut self, change: impl FnOnce(ProcessBuilder) -> ProcessBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    fn leaf(&mut self, kind: &str, change: impl FnOnce(ProcessBuilder, &str) -> ProcessBuilder) {
        let id = self.id(kind);
        self.add(|builder| change(builder, &id));
        self.listen(true);
    }

    /// Gives the element that was added its listeners. Two for the same event must not look the same.
    fn listen(&mut self, may_end: bool) {
        let Listeners { start, end } = std::mem::take(&mut self.listeners);
        let counts = [("start", start), ("end", if may_end { end } else { 0 })];
        for (event, number) in
            counts.into_iter().flat_map(|(event, count)| (0..count).map(move |number| (event, number)))
        {
            let job_type = format!("={}\"work\"", " ".repeat(number));
            self.add(|builder| builder.execution_listener(event, &job_type));
        }
    }

    fn write(&mut self, block: &Block) {
        match block {
            Block::Task => self.leaf("task", |builder, id| builder.service_task(id, "work")),
            Block::UserTask { has_listeners: false } => self.leaf("user", ProcessBuilder::user_task),
            Block::UserTask { has_listeners: true } => self.leaf("user", |builder, id| {
                let events = ["creating", "assigning", "updating", "completing", "completing", "canceling"];
                events.into_iter().fold(builder.user_task(id), |builder, event| builder.task_listener(event, "work"))
            }),
            Block::Script => self.leaf("script", |builder, id| {
                builder.script_task(id, "={kept: key, choice: choice}", "scripted").output("=scripted.kept", "kept")
            }),
            Block::Manual => self.leaf("manual", ProcessBuilder::manual_task),
            Block::Throw => self.leaf("throw", ProcessBuilder::throw),
            Block::Broadcast => self.leaf("broadcast", |builder, id| builder.signal_throw(id, "thrown")),
            Block::Escalation => self.leaf("escalate", |builder, id| builder.escalation_throw(id, "X")),
            Block::Catch(waits) => self.leaf("catch", |builder, id| builder.catch_event(id, event(*waits))),
            Block::Receive => self.leaf("receive", |builder, id| builder.receive_task(id, "message", "=key")),
            Block::Call => self.leaf("call", |builder, id| builder.call_activity(id, "called")),
            Block::Link => {
                let (throw, catch) = (self.id("link"), self.id("arrival"));
                self.add(|builder| builder.link_throw(&throw, &throw));
                self.listen(true);
                self.add(|builder| builder.link_catch(&catch, &throw));
            }
            Block::Sequence(blocks) => blocks.iter().for_each(|block| self.write(block)),
            Block::Exclusive(blocks) => self.write_branches(blocks, &EXCLUSIVE, false),
            Block::Inclusive { branches, leaves } => self.write_branches(branches, &INCLUSIVE, *leaves),
            Block::Parallel(blocks) => self.write_branches(blocks, &PARALLEL, false),
            Block::FirstOfTwo(first, second) => self.write_first_of_two(first, second),
            Block::SubProcess { inside, ends, handler } => {
                self.write_sub_process(inside, *ends, handler.as_ref(), None);
            }
            Block::Listened { block, listeners } => {
                self.listeners = *listeners;
                self.write(block);
            }
            Block::Boundary { on, ends, handler } => {
                let bare = on.without_listeners();
                let activity = match bare {
                    Block::Task | Block::UserTask { .. } | Block::Receive | Block::Call if handler.may_be_at(bare) => {
                        self.write(on);
                        format!("{}-{}", name_of(bare), self.count)
                    }
                    _ => self.write_sub_process(on, *ends, None, None),
                };
                self.write_boundary_event(&activity, handler);
            }
            Block::Loop { inside, is_sequential, stops, handler } => {
                let repeats = Repeats { is_sequential: *is_sequential, stops: *stops };
                let activity = self.write_sub_process(inside, Ends::Plainly, None, Some(&repeats));
                if let Some(handler) = handler {
                    self.write_boundary_event(&activity, handler);
                }
            }
        }
    }

    /// Writes a sub-process and answers its id; the builder is left at it.
    fn write_sub_process(
        &mut self,
        inside: &Block,
        ends: Ends,
        handler: Option<&Handler>,
        repeats: Option<&Repeats>,
    ) -> String {
        let (id, start, end) = (self.id("sub"), self.id("start"), self.id("end"));
        self.add(|builder| builder.sub_process(&id));
        self.listen(true);
        if let Some(repeats) = repeats {
            self.add(|builder| repeats.write(builder));
        }
        self.add(|builder| builder.start(&start));
        self.write(inside);
        self.add(|builder| match ends {
            Ends::Plainly => builder.end(&end),
            Ends::ByError => builder.error_end(&end, "E"),
            Ends::ByEscalation => builder.escalation_end(&end, "X"),
            Ends::ByTerminating => builder.terminate_end(&end),
        });
        if let Some(handler) = handler {
            self.write_event_sub_process(handler);
        }
        self.add(|builder| builder.end_sub_process().move_to(&id));
        id
    }

    /// Writes an event sub-process into the current scope, with what is directly inside of it.
    fn write_event_sub_process(&mut self, handler: &Handler) {
        let (sub, start, end) = (self.id("event-sub"), self.id("start"), self.id("end"));
        self.add(|builder| {
            let builder = builder.event_sub_process(&sub).start_event(&start, event(handler.event));
            if handler.may_not_interrupt() { builder.non_interrupting() } else { builder }
        });
        self.write(&handler.then);
        self.add(|builder| builder.end(&end));
        if let Some(inside) = &handler.inside {
            self.write_event_sub_process(inside);
        }
        self.add(ProcessBuilder::end_sub_process);
    }

    fn write_boundary_event(&mut self, activity: &str, handler: &Handler) {
        let (boundary, end) = (self.id("boundary"), self.id("end"));
        self.add(|builder| {
            let builder = builder.boundary(&boundary, activity, event(handler.event));
            if handler.may_not_interrupt() { builder.non_interrupting() } else { builder }
        });
        self.write(&handler.then);
        self.add(|builder| builder.end(&end).move_to(activity));
    }

    fn write_first_of_two(&mut self, first: &Block, second: &Block) {
        let (gateway, timer, message) = (self.id("gateway"), self.id("timer"), self.id("message"));
        let join = self.id("join");
        self.add(|builder| builder.event_based_gateway(&gateway));
        self.listen(false);
        self.add(|builder| builder.catch_event(&timer, event(Waits::Timer)));
        self.write(first);
        self.add(|builder| {
            builder.exclusive_gateway(&join).move_to(&gateway).catch_event(&message, event(Waits::Message))
        });
        self.write(second);
        self.add(|builder| builder.connect_to(&join).move_to(&join));
    }

    /// Writes branches. When one `leaves`, the last of them may end in a gateway instead of the join.
    fn write_branches(&mut self, blocks: &[Block], gateway: &Gateway, leaves: bool) {
        let (fork, join) = (self.id("fork"), self.id(gateway.join));
        let (leave, nowhere) = (self.id("leave"), self.id("nowhere"));
        self.add(|builder| (gateway.write)(builder, &fork));
        self.listen(false);
        for (index, block) in blocks.iter().enumerate() {
            self.add(|builder| {
                let builder = builder.move_to(&fork);
                match (gateway.is_conditional, index) {
                    (false, _) => builder,
                    (true, 0) => builder.default_flow(),
                    (true, _) => builder.condition(&format!("=choice >= {index}")),
                }
            });
            self.write(block);
            // The first branch draws the join, the others lead to it.
            self.add(|builder| match index {
                0 => (gateway.write)(builder, &join),
                _ if leaves && index + 1 == blocks.len() => {
                    let builder =
                        builder.exclusive_gateway(&leave).condition("=choice >= 2").parallel_gateway(&nowhere);
                    builder.move_to(&leave).default_flow().connect_to(&join)
                }
                _ => builder.connect_to(&join),
            });
        }
        self.add(|builder| builder.move_to(&join));
    }
}

/// A kind of gateway.
struct Gateway {
    write: fn(ProcessBuilder, &str) -> ProcessBuilder,
    is_conditional: bool,
    join: &'static str,
}

const EXCLUSIVE: Gateway =
    Gateway { write: ProcessBuilder::exclusive_gateway, is_conditional: true, join: "exclusive-join" };
const INCLUSIVE: Gateway =
    Gateway { write: ProcessBuilder::inclusive_gateway, is_conditional: true, join: "inclusive-join" };
const PARALLEL: Gateway =
    Gateway { write: ProcessBuilder::parallel_gateway, is_conditional: false, join: PARALLEL_JOIN };

/// Begin of the ids of joining parallel gateways.
pub const PARALLEL_JOIN: &str = "parallel-join";

/// How a sub-process is repeated.
struct Repeats {
    is_sequential: bool,
    stops: bool,
}

impl Repeats {
    fn write(&self, builder: ProcessBuilder) -> ProcessBuilder {
        let builder = if self.is_sequential {
            builder.sequential_multi_instance("=items", "item")
        } else {
            builder.multi_instance("=items", "item")
        };
        let builder = builder.output_collection("results", "=item * 2");
        if self.stops { builder.completion_condition("=numberOfCompletedInstances >= 2") } else { builder }
    }
}

impl Block {
    fn without_listeners(&self) -> &Block {
        match self {
            Block::Listened { block, .. } => block.without_listeners(),
            block => block,
        }
    }
}

impl Handler {
    /// Escalations come out of scopes and calls only, and a receive task has its message for itself.
    fn may_be_at(&self, activity: &Block) -> bool {
        match self.event {
            Waits::Escalation => matches!(activity, Block::Call),
            Waits::Message => !matches!(activity, Block::Receive),
            _ => true,
        }
    }

    /// Errors always interrupt.
    fn may_not_interrupt(&self) -> bool {
        !self.is_interrupting && !matches!(self.event, Waits::Error | Waits::AnyError)
            || matches!(self.event, Waits::Cycle)
    }
}

fn name_of(block: &Block) -> &'static str {
    match block {
        Block::Receive => "receive",
        Block::Call => "call",
        Block::UserTask { .. } => "user",
        _ => "task",
    }
}

fn event(waits: Waits) -> Event<'static> {
    match waits {
        Waits::Timer => Event::Duration("PT20S"),
        Waits::Cycle => Event::Cycle("R3/PT10S"),
        Waits::Message => Event::Message("message", "=key"),
        Waits::Error => Event::Error("E"),
        Waits::AnyError => Event::Error(""),
        Waits::Escalation => Event::Escalation("X"),
        Waits::Signal => Event::Signal("signal"),
        Waits::Thrown => Event::Signal("thrown"),
    }
}

pub fn model(block: &Block) -> String {
    let mut writer =
        Writer { builder: ProcessBuilder::new("random").start("start"), count: 0, listeners: Listeners::default() };
    writer.write(block);
    writer.builder.end("end").to_xml()
}

/// The process that call activities call.
pub fn called() -> String {
    let builder = ProcessBuilder::new("called").start("called-start").service_task("called-task", "work");
    builder
        .inclusive_gateway("called-choice")
        .condition("=choice > 2")
        .error_end("called-error", "E")
        .move_to("called-choice")
        .default_flow()
        .end("called-end")
        .to_xml()
}
