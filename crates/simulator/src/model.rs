//! Random block-structured processes: every element that waits, and every way to interrupt what waits.

mod listened;
pub mod reading;

use model_builder::{Event, ProcessBuilder};

use chance::Chance;

use listened::listen;
pub use listened::{CONFIGURED, FIRST_RETRIES, GLOBAL_RETRIES, Listened, configured_listeners};

/// Type of all jobs.
pub const JOB_TYPE: &str = "work";
/// Name of all messages but those that start instances.
pub const MESSAGE: &str = "message";
/// Name of the messages that start instances.
pub const START_MESSAGE: &str = "start-message";
/// Name of the signals that element instances wait for.
pub const SIGNAL: &str = "signal";
/// Name of the signals that start instances.
pub const START_SIGNAL: &str = "start-signal";
/// The id of the start event that waits for them.
pub const SIGNAL_START: &str = "signal-start";
/// Code of all errors.
pub const ERROR: &str = "E";
/// The process that call activities call.
pub const CALLED: &str = "called";

/// Adds blocks to a process, numbering their elements.
struct Writer<'a> {
    builder: ProcessBuilder,
    chance: &'a mut Chance,
    count: usize,
    /// Elements that may still be added, so that a process stays small.
    room: usize,
}

/// A process with a none start event and one end, of about this many elements; the id says what listens to it.
pub fn random(id: &str, room: usize, chance: &mut Chance) -> String {
    let builder = listen(ProcessBuilder::new(id), id).start("start");
    let mut writer = Writer { builder, chance, count: 0, room };
    for _ in 0..3 {
        writer.block(0);
    }
    writer.builder.end("end").to_xml()
}

/// The process that call activities call: a job, and an error if the variables ask for it.
pub fn called() -> String {
    let builder = ProcessBuilder::new(CALLED).start("called-start").service_task("called-task", JOB_TYPE);
    let builder = builder.exclusive_gateway("called-choice").condition("=choice > 2").error_end("called-error", ERROR);
    builder.move_to("called-choice").default_flow().end("called-end").to_xml()
}

/// A process with several versions, some with an additional step.
pub const VERSIONED: &str = "versioned";

/// A version of it, with a job and perhaps a second one, or a wait.
pub fn versioned(number: u64) -> String {
    let first = Listened::BOTH.name("first");
    let builder = ProcessBuilder::new(VERSIONED).start("start").service_task(&first, JOB_TYPE);
    let builder = listen(builder, &first);
    let builder = match number % 3 {
        0 => builder,
        1 => builder.service_task("second", JOB_TYPE),
        _ => builder.catch_event("wait", Event::Duration("PT1S")),
    };
    builder.end(&format!("end-{number}")).to_xml()
}

/// A process that a message starts.
pub const STARTED: &str = "started";

/// Its only version, with a job.
pub fn started_by_message() -> String {
    let builder = ProcessBuilder::new(STARTED).start_event("message-start", Event::Message(START_MESSAGE, ""));
    builder.service_task("message-task", JOB_TYPE).end("message-end").to_xml()
}

/// A process that a signal starts.
pub const SIGNALLED: &str = "signalled";

/// Its only version, with a job.
pub fn started_by_signal() -> String {
    let builder = ProcessBuilder::new(SIGNALLED).start_event(SIGNAL_START, Event::Signal(START_SIGNAL));
    builder.service_task("signal-task", JOB_TYPE).end("signal-end").to_xml()
}

/// A process that the conditions of start events start, each once.
pub const CONDITIONED: &str = "conditioned";

/// Its only version, with two start events that may both hold.
pub fn started_by_conditions() -> String {
    let builder = ProcessBuilder::new(CONDITIONED).start_event("high", Event::Condition("=level >= 4", ""));
    let builder = builder.service_task("task-of-high", JOB_TYPE).end("end-of-high").apart();
    let builder = builder.start_event("low", Event::Condition("=level < 6 and choice >= 2", ""));
    builder.service_task("task-of-low", JOB_TYPE).end("end-of-low").to_xml()
}

/// A process that waits for conditions in every way.
pub const WATCHING: &str = "watching";

/// Its only version: at once the same variable lets one thing go on, interrupts another and begins a third.
pub fn watching() -> String {
    let both = Listened::BOTH;
    let [sub, watch, task] = [both.name("sub"), both.name("watch"), both.name("task")];
    let builder = ProcessBuilder::new(WATCHING).start("start").parallel_gateway("fork");
    let builder = builder.catch_event("enough", Event::Condition("=level >= 5", "")).end("end-enough");
    let builder = listen(builder.move_to("fork").sub_process(&sub), &sub).start("start-within");
    let builder = listen(builder.service_task(&task, JOB_TYPE), &task).user_task("person").end("end-within");
    let builder = builder.boundary("more", &task, Event::Condition("=level >= 3", "")).non_interrupting();
    let builder = builder.service_task("task-of-more", JOB_TYPE).end("end-more");
    let builder = builder.boundary("off", "person", Event::Condition("=level >= 7", "update")).end("end-off");
    let builder = listen(builder.event_sub_process(&watch), &watch);
    let builder = builder.start_event("low", Event::Condition("=level < 2 and choice >= 1", "")).non_interrupting();
    let builder = builder.service_task("task-of-low", JOB_TYPE).end("end-low").end_sub_process();
    let builder = builder.end_sub_process().move_to(&sub).end("end").move_to("fork");
    let builder = builder.event_based_gateway("which").catch_event("sooner", Event::Condition("=level >= 2", ""));
    let builder = builder.end("end-sooner").move_to("which").catch_event("later", Event::Duration("PT4S"));
    builder.end("end-later").to_xml()
}

/// A process whose user task is listened to in every way.
pub const HEARD: &str = "heard";

/// Its only version: the time of the task may be over while it is listened to.
pub fn heard() -> String {
    let (task, sub) = (Listened::ALL.name("person"), Listened::BOTH.name("around"));
    let builder = listen(ProcessBuilder::new(HEARD).start("start").sub_process(&sub), &sub).start("start-within");
    let builder = listen(builder.user_task(&task).assignee("=key"), &task).end("end-within");
    let builder = builder.boundary("off", &task, Event::Condition("=level >= 7", "")).end("end-off").end_sub_process();
    let builder = builder.move_to(&sub).boundary("over", &sub, Event::Duration("PT6S")).end("end-over");
    builder.move_to(&sub).end("end").to_xml()
}

/// What the ids of ad-hoc sub-processes begin with; behind it are a number and how many of its choices begin at once.
const AD_HOC: &str = "ad-hoc-";
/// How many elements an ad-hoc sub-process has to choose from.
const CHOICES: usize = 3;

/// An ad-hoc sub-process by its id.
pub struct AdHoc<'a> {
    number: &'a str,
    /// How many inner instances begin with it.
    pub at_first: usize,
}

impl<'a> AdHoc<'a> {
    /// Reads an id, if it is that of one.
    pub fn read(id: &'a str) -> Option<Self> {
        let (number, at_first) = id.strip_prefix(AD_HOC)?.split('_').next()?.split_once('-')?;
        Some(AdHoc { number, at_first: at_first.parse().ok()? })
    }

    /// The elements that can be chosen.
    pub fn choices(&self) -> [String; CHOICES] {
        std::array::from_fn(|choice| format!("choice-{}-{choice}", self.number))
    }
}

/// What the ids of events begin with that have everything undone in their scope.
pub const COMPENSATE: &str = "compensate";

/// A process whose tasks nobody works on: they end together when the time of the sub-process around them is over.
pub const CROWD: &str = "crowd";
/// How many tasks there are, each with a timer that comes again and again: so often that it comes between two slices of the end.
const CROWD_TASKS: usize = 8;

/// Its only version.
pub fn crowd() -> String {
    let mut builder = ProcessBuilder::new(CROWD).start("start").sub_process("around").start("start-within");
    builder = builder.parallel_gateway("fork");
    for number in 0..CROWD_TASKS {
        let (task, timer) = (format!("task-{number}"), format!("{CYCLE_OF}9-{number}"));
        builder = builder.move_to("fork").service_task(&task, "nobody").end(&format!("end-{number}"));
        builder = builder.boundary(&timer, &task, Event::Cycle("R9/PT0.15S")).non_interrupting();
        builder = builder.end(&format!("end-of-{timer}"));
    }
    let builder = builder.end_sub_process().move_to("around").boundary("over", "around", Event::Duration("PT1S"));
    builder.end("end-of-time").move_to("around").end("end").to_xml()
}

/// A process that repeats things: a loop, one item after the other, while a timer comes again and again, and so do messages.
pub const REPEATING: &str = "repeating";
/// What the ids of loops begin with whose items are the same in each instance; the number of items is behind it.
const LOOP_OF: &str = "loop-of-";
/// What the ids of events begin with that come several times; how often is behind it.
const CYCLE_OF: &str = "cycle-of-";

/// Its only version.
pub fn repeating() -> String {
    let (each, again) = (format!("{LOOP_OF}4"), format!("{CYCLE_OF}3"));
    let builder = ProcessBuilder::new(REPEATING).start("start").sub_process("around").start("start-within");
    let builder = builder.sub_process(&each).sequential_multi_instance("=[1,2,3,4]", "item");
    let builder = builder.output_collection("results", "=item * 2").start("start-of-each");
    let builder = builder.catch_event("pause", Event::Duration("PT0.5S")).end("end-of-each").end_sub_process();
    let builder = builder.move_to(&each).end("end-within").end_sub_process();
    let builder = builder.move_to("around").boundary(&again, "around", Event::Cycle("R3/PT0.4S")).non_interrupting();
    let builder = builder.end("end-of-cycle").move_to("around");
    let builder = builder.boundary("told", "around", Event::Message(MESSAGE, "=key")).non_interrupting();
    builder.end("end-of-told").move_to("around").end("end").to_xml()
}

/// A process in which an incident ends together with the scope around it.
pub const TROUBLED: &str = "troubled";

/// Its only version: nobody can name the signal.
pub fn troubled() -> String {
    let builder = ProcessBuilder::new(TROUBLED).start("start").sub_process("around").start("start-within");
    let builder = builder.signal_throw("trouble", "=missing").end("end-within").end_sub_process();
    let builder = builder.move_to("around").boundary("over", "around", Event::Duration("PT1S")).end("end-of-time");
    builder.move_to("around").end("end").to_xml()
}

/// How many items a loop has, if they are the same in each instance.
pub fn turns_of_loop(id: &str) -> Option<u32> {
    id.strip_prefix(LOOP_OF)?.split('-').next()?.parse().ok()
}

/// How often a timer comes, if it comes several times.
pub fn turns_of_cycle(id: &str) -> Option<i32> {
    id.strip_prefix(CYCLE_OF)?.split('-').next()?.parse().ok()
}

/// A process in which several tasks are done and then undone.
pub const UNDONE: &str = "undone";

/// Its only version.
pub fn undone() -> String {
    let mut builder = ProcessBuilder::new(UNDONE).start("start").parallel_gateway("fork");
    for number in 0..3 {
        let [task, undo, handler] = ["task", "undo", "handler"].map(|kind| format!("{kind}-{number}"));
        builder = builder.move_to("fork").service_task(&task, JOB_TYPE).compensation(&undo, &task, &handler, JOB_TYPE);
        builder = if number == 0 { builder.parallel_gateway("join") } else { builder.connect_to("join") };
    }
    builder.move_to("join").compensation_throw(&format!("{COMPENSATE}-all")).end("end").to_xml()
}

/// A process that waits for the same signal at many places, and then once more.
pub const LISTENING: &str = "listening";

/// Its only version.
pub fn listening() -> String {
    let builder = ProcessBuilder::new(LISTENING).start("start").sub_process("each");
    let builder = builder.multi_instance("=[1,2,3,4,5]", "item").start("start-within");
    let builder = builder.catch_event("first", Event::Signal(SIGNAL)).catch_event("second", Event::Signal(SIGNAL));
    builder.end("end-within").end_sub_process().end("end").to_xml()
}

/// A process whose ad-hoc sub-process lives for a while, because a person is to do the first that is chosen.
pub const ADVISED: &str = "advised";

/// Its only version.
pub fn advised() -> String {
    let ad_hoc = AdHoc { number: "0", at_first: 1 };
    let [first, second, third] = ad_hoc.choices();
    let builder = ProcessBuilder::new(ADVISED).start("start");
    let builder = builder.ad_hoc_sub_process(&format!("{AD_HOC}0-1"), &format!("=[\"{first}\"]"));
    let builder = builder.apart().user_task(&first).apart().service_task(&second, JOB_TYPE);
    builder.apart().user_task(&third).end_sub_process().end("end").to_xml()
}

/// What events wait for. In the end all of them hold when the variable is high.
const CONDITIONS: &[&str] =
    &["=level >= 3", "=level >= 6", "=level >= 2 and choice >= 0", "=done >= 50 and level >= 1"];

const DEPTH_MAX: usize = 3;

impl Writer<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        self.room = self.room.saturating_sub(1);
        format!("{kind}-{}", self.count)
    }

    /// The id of an element that may be listened to.
    fn listened(&mut self, kind: &str) -> String {
        let id = self.id(kind);
        Listened::draw(self.chance).name(&id)
    }

    fn add(&mut self, change: impl FnOnce(ProcessBuilder) -> ProcessBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    fn block(&mut self, depth: usize) {
        let choice = if depth >= DEPTH_MAX || self.room == 0 { self.chance.below(15) } else { self.chance.below(29) };
        match choice {
            0..=5 => self.task(),
            6 => self.catch("PT3S"),
            7 => self.catch_message(),
            8 => {
                let id = self.listened("receive");
                self.add(|builder| listen(builder.receive_task(&id, MESSAGE, "=key"), &id));
            }
            9 => {
                let id = self.listened("call");
                self.add(|builder| listen(builder.call_activity(&id, CALLED), &id));
                if self.chance.one_in(2) {
                    self.boundary(&id, Event::Error(ERROR), true);
                }
            }
            10 => self.throw(),
            11 => self.task_with_boundary(),
            12 => self.user_task(),
            13 => self.task_to_be_undone(),
            14 => self.catch_signal(),
            15..=16 => {
                self.block(depth + 1);
                self.block(depth + 1);
            }
            17..=18 => self.branches(ProcessBuilder::parallel_gateway, false, depth),
            19 => self.branches(ProcessBuilder::exclusive_gateway, true, depth),
            20 => self.branches(ProcessBuilder::inclusive_gateway, true, depth),
            21..=23 => self.sub_process(depth),
            24 => self.first_of_two(),
            25..=26 => self.ad_hoc_sub_process(depth),
            _ => self.repeated(depth),
        }
    }

    fn task(&mut self) {
        let id = self.listened("task");
        self.add(|builder| listen(builder.service_task(&id, JOB_TYPE), &id));
    }

    fn user_task(&mut self) {
        let id = self.id("user-task");
        let id = Listened::draw_task(self.chance).name(&id);
        let is_assigned = self.chance.one_in(2);
        self.add(|builder| {
            let builder = listen(builder.user_task(&id), &id);
            if is_assigned { builder.assignee("=key") } else { builder }
        });
    }

    fn task_to_be_undone(&mut self) {
        if self.chance.one_in(2) {
            self.task();
        } else {
            self.user_task();
        }
        self.undone();
    }

    /// What was added last can be undone.
    fn undone(&mut self) {
        let (undo, handler) = (self.id("undo"), self.id("handler"));
        self.add(|builder| {
            let activity = builder.current().to_owned();
            builder.compensation(&undo, &activity, &handler, JOB_TYPE)
        });
    }

    fn throw(&mut self) {
        let kinds = ["throw", "signal-throw", COMPENSATE, COMPENSATE];
        let kind = *self.chance.choose(&kinds);
        let id = if kind == "throw" { self.listened(kind) } else { self.id(kind) };
        let signal = *self.chance.choose(&[SIGNAL, START_SIGNAL]);
        self.add(|builder| match kind {
            "throw" => listen(builder.throw(&id), &id),
            "signal-throw" => builder.signal_throw(&id, signal).input("=key", "thrower"),
            _ => builder.compensation_throw(&id),
        });
    }

    fn catch_signal(&mut self) {
        let id = self.listened("signal");
        self.add(|builder| listen(builder.catch_event(&id, Event::Signal(SIGNAL)), &id));
    }

    /// Some of its choices begin at once, others when a client wants it.
    fn ad_hoc_sub_process(&mut self, depth: usize) {
        self.count += 1;
        let at_first = 1 + self.chance.index(CHOICES);
        let id = Listened::draw(self.chance).name(&format!("{AD_HOC}{}-{at_first}", self.count));
        let choices = AdHoc { number: &self.count.to_string(), at_first }.choices();
        self.add(|builder| {
            let active = format!("=[\"{}\"]", choices[..at_first].join("\",\""));
            let builder = builder.ad_hoc_sub_process(&id, &active).ad_hoc_output("chosen", "=done + 1");
            listen(builder, &id)
        });
        for choice in &choices {
            self.add(ProcessBuilder::apart);
            self.choice(choice, depth);
        }
        self.add(|builder| builder.end_sub_process().move_to(&id));
        if self.chance.one_in(3) {
            let (event, is_interrupting) = self.event();
            self.boundary(&id, event, is_interrupting);
        }
    }

    /// What stands there for itself: no path inside has an end event.
    fn choice(&mut self, id: &str, depth: usize) {
        match self.chance.below(4) {
            0 => self.add(|builder| builder.user_task(id)),
            1 => {
                let (start, end) = (self.id("start"), self.id("end"));
                self.add(|builder| builder.sub_process(id).start(&start));
                self.block(depth + 2);
                self.add(|builder| builder.end(&end).end_sub_process());
            }
            2 => {
                let next = self.id("task");
                self.add(|builder| builder.manual_task(id).service_task(&next, JOB_TYPE));
            }
            _ => {
                self.add(|builder| builder.service_task(id, JOB_TYPE));
                self.undone();
            }
        }
    }

    fn catch(&mut self, duration: &'static str) {
        let id = self.listened("timer");
        let condition = if self.chance.one_in(2) { Some(*self.chance.choose(CONDITIONS)) } else { None };
        self.add(|builder| {
            let event = condition.map_or(Event::Duration(duration), |condition| Event::Condition(condition, ""));
            listen(builder.catch_event(&id, event), &id)
        });
    }

    fn catch_message(&mut self) {
        let id = self.listened("message");
        self.add(|builder| listen(builder.catch_event(&id, Event::Message(MESSAGE, "=key")), &id));
    }

    fn task_with_boundary(&mut self) {
        let id = self.listened("task");
        self.add(|builder| listen(builder.service_task(&id, JOB_TYPE), &id));
        let (event, is_interrupting) = self.event();
        self.boundary(&id, event, is_interrupting);
    }

    fn event(&mut self) -> (Event<'static>, bool) {
        let is_interrupting = self.chance.one_in(2);
        match self.chance.below(7) {
            5..=6 => {
                let what = *self.chance.choose(&["", "", "create", "update"]);
                (Event::Condition(self.chance.copy_of(CONDITIONS), what), is_interrupting)
            }
            4 => (Event::Signal(SIGNAL), is_interrupting),
            0 => (Event::Duration("PT2S"), is_interrupting),
            1 => (Event::Message(MESSAGE, "=key"), is_interrupting),
            2 => (Event::Cycle("R2/PT1S"), false),
            _ => (Event::Error(ERROR), true),
        }
    }

    fn boundary(&mut self, activity: &str, event: Event<'static>, is_interrupting: bool) {
        let (boundary, task, end) = (self.id_of_event("boundary", &event), self.listened("task"), self.id("end"));
        self.add(|builder| {
            let builder = builder.boundary(&boundary, activity, event);
            let builder = if is_interrupting { builder } else { builder.non_interrupting() };
            listen(builder.service_task(&task, JOB_TYPE), &task).end(&end).move_to(activity)
        });
    }

    /// The id of an event says how often it comes.
    fn id_of_event(&mut self, kind: &str, event: &Event<'_>) -> String {
        match event {
            Event::Cycle(_) => self.id(&format!("{CYCLE_OF}2")),
            _ => self.id(kind),
        }
    }

    fn sub_process(&mut self, depth: usize) {
        let (id, start) = (self.listened("sub"), self.id("start"));
        self.add(|builder| listen(builder.sub_process(&id), &id).start(&start));
        self.block(depth + 1);
        let ends = self.chance.below(8);
        let end = self.id(if ends == 3 { COMPENSATE } else { "end" });
        self.add(|builder| match ends {
            3 => builder.compensation_end(&end),
            4 => builder.signal_end(&end, SIGNAL),
            0 => builder.error_end(&end, ERROR),
            1 => builder.escalation_end(&end, "X"),
            2 => builder.terminate_end(&end),
            _ => builder.end(&end),
        });
        if self.chance.one_in(3) {
            let (sub, task, end) = (self.listened("event-sub"), self.id("task"), self.id("end"));
            let (event, is_interrupting) = self.event();
            let start = self.id_of_event("start", &event);
            self.add(|builder| {
                let builder = listen(builder.event_sub_process(&sub), &sub).start_event(&start, event);
                let builder = if is_interrupting { builder } else { builder.non_interrupting() };
                builder.service_task(&task, JOB_TYPE).end(&end).end_sub_process()
            });
        }
        self.add(|builder| builder.end_sub_process().move_to(&id));
        if ends == 0 || self.chance.one_in(3) {
            self.boundary(&id, Event::Error(ERROR), true);
        }
        if ends == 1 {
            let is_interrupting = self.chance.one_in(2);
            self.boundary(&id, Event::Escalation("X"), is_interrupting);
        }
    }

    fn repeated(&mut self, depth: usize) {
        let (id, start) = (self.listened("loop"), self.id("start"));
        let (is_sequential, stops) = (self.chance.one_in(2), self.chance.one_in(3));
        self.add(|builder| {
            let builder = listen(builder.sub_process(&id), &id);
            let builder = if is_sequential {
                builder.sequential_multi_instance("=items", "item")
            } else {
                builder.multi_instance("=items", "item")
            };
            let builder = builder.output_collection("results", "=item * 2");
            let condition = "=numberOfCompletedInstances >= 2";
            let builder = if stops { builder.completion_condition(condition) } else { builder };
            builder.start(&start)
        });
        self.block(depth + 2);
        let end = self.id("end");
        self.add(|builder| builder.end(&end).end_sub_process().move_to(&id));
        if self.chance.one_in(3) {
            self.boundary(&id, Event::Duration("PT2S"), true);
        }
    }

    fn first_of_two(&mut self) {
        let (gateway, timer, message) = (self.id("gateway"), self.id("timer"), self.id("message"));
        let (first, second, join) = (self.id("task"), self.id("task"), self.id("join"));
        self.add(|builder| {
            let builder = builder.event_based_gateway(&gateway).catch_event(&timer, Event::Duration("PT2S"));
            let builder = builder.service_task(&first, JOB_TYPE).exclusive_gateway(&join).move_to(&gateway);
            let builder = builder.catch_event(&message, Event::Message(MESSAGE, "=key"));
            builder.service_task(&second, JOB_TYPE).connect_to(&join).move_to(&join)
        });
    }

    fn branches(&mut self, gateway: fn(ProcessBuilder, &str) -> ProcessBuilder, is_conditional: bool, depth: usize) {
        let (fork, join) = (self.id("fork"), self.id("join"));
        self.add(|builder| gateway(builder, &fork));
        for index in 0..2 + self.chance.index(2) {
            self.add(|builder| {
                let builder = builder.move_to(&fork);
                match (is_conditional, index) {
                    (false, _) => builder,
                    (true, 0) => builder.default_flow(),
                    (true, _) => builder.condition(&format!("=choice >= {index}")),
                }
            });
            self.block(depth + 1);
            // The first branch draws the join, the others lead to it.
            self.add(|builder| if index == 0 { gateway(builder, &join) } else { builder.connect_to(&join) });
        }
        self.add(|builder| builder.move_to(&join));
    }
}
