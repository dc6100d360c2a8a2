//! Random block-structured processes: every element that waits, and every way to interrupt what waits.

use model_builder::{Event, ProcessBuilder};

use chance::Chance;

/// Type of all jobs.
pub const JOB_TYPE: &str = "work";
/// Name of all messages but those that start instances.
pub const MESSAGE: &str = "message";
/// Name of the messages that start instances.
pub const START_MESSAGE: &str = "start-message";
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

/// A process with a none start event and one end, of about this many elements.
pub fn random(id: &str, room: usize, chance: &mut Chance) -> String {
    let mut writer = Writer { builder: ProcessBuilder::new(id).start("start"), chance, count: 0, room };
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
    let builder = ProcessBuilder::new(VERSIONED).start("start").service_task("first", JOB_TYPE);
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

/// A process whose tasks nobody works on: they end together when the time of the sub-process around them is over.
pub const CROWD: &str = "crowd";
/// How many tasks there are, each with a timer that comes again and again: so often that it comes between two slices of the end.
const CROWD_TASKS: usize = 8;

/// Its only version.
pub fn crowd() -> String {
    let mut builder = ProcessBuilder::new(CROWD).start("start").sub_process("around").start("start-within");
    builder = builder.parallel_gateway("fork");
    for number in 0..CROWD_TASKS {
        let (task, timer) = (format!("task-{number}"), format!("timer-{number}"));
        builder = builder.move_to("fork").service_task(&task, "nobody").end(&format!("end-{number}"));
        builder = builder.boundary(&timer, &task, Event::Cycle("R9/PT0.15S")).non_interrupting();
        builder = builder.end(&format!("end-of-{timer}"));
    }
    let builder = builder.end_sub_process().move_to("around").boundary("over", "around", Event::Duration("PT1S"));
    builder.end("end-of-time").move_to("around").end("end").to_xml()
}

const DEPTH_MAX: usize = 3;

impl Writer<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        self.room = self.room.saturating_sub(1);
        format!("{kind}-{}", self.count)
    }

    fn add(&mut self, change: impl FnOnce(ProcessBuilder) -> ProcessBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    fn block(&mut self, depth: usize) {
        let choice = if depth >= DEPTH_MAX || self.room == 0 { self.chance.below(12) } else { self.chance.below(24) };
        match choice {
            0..=5 => self.task(),
            6 => self.catch("PT3S"),
            7 => self.catch_message(),
            8 => {
                let id = self.id("receive");
                self.add(|builder| builder.receive_task(&id, MESSAGE, "=key"));
            }
            9 => {
                let id = self.id("call");
                self.add(|builder| builder.call_activity(&id, CALLED));
                if self.chance.one_in(2) {
                    self.boundary(&id, Event::Error(ERROR), true);
                }
            }
            10 => {
                let id = self.id("throw");
                self.add(|builder| builder.throw(&id));
            }
            11 => self.task_with_boundary(),
            12..=13 => {
                self.block(depth + 1);
                self.block(depth + 1);
            }
            14..=15 => self.branches(ProcessBuilder::parallel_gateway, false, depth),
            16 => self.branches(ProcessBuilder::exclusive_gateway, true, depth),
            17 => self.branches(ProcessBuilder::inclusive_gateway, true, depth),
            18..=20 => self.sub_process(depth),
            21 => self.first_of_two(),
            _ => self.repeated(depth),
        }
    }

    fn task(&mut self) {
        let id = self.id("task");
        self.add(|builder| builder.service_task(&id, JOB_TYPE));
    }

    fn catch(&mut self, duration: &'static str) {
        let id = self.id("timer");
        self.add(|builder| builder.catch_event(&id, Event::Duration(duration)));
    }

    fn catch_message(&mut self) {
        let id = self.id("message");
        self.add(|builder| builder.catch_event(&id, Event::Message(MESSAGE, "=key")));
    }

    fn task_with_boundary(&mut self) {
        let id = self.id("task");
        self.add(|builder| builder.service_task(&id, JOB_TYPE));
        let (event, is_interrupting) = self.event();
        self.boundary(&id, event, is_interrupting);
    }

    fn event(&mut self) -> (Event<'static>, bool) {
        let is_interrupting = self.chance.one_in(2);
        match self.chance.below(4) {
            0 => (Event::Duration("PT2S"), is_interrupting),
            1 => (Event::Message(MESSAGE, "=key"), is_interrupting),
            2 => (Event::Cycle("R2/PT1S"), false),
            _ => (Event::Error(ERROR), true),
        }
    }

    fn boundary(&mut self, activity: &str, event: Event<'static>, is_interrupting: bool) {
        let (boundary, task, end) = (self.id("boundary"), self.id("task"), self.id("end"));
        self.add(|builder| {
            let builder = builder.boundary(&boundary, activity, event);
            let builder = if is_interrupting { builder } else { builder.non_interrupting() };
            builder.service_task(&task, JOB_TYPE).end(&end).move_to(activity)
        });
    }

    fn sub_process(&mut self, depth: usize) {
        let (id, start) = (self.id("sub"), self.id("start"));
        self.add(|builder| builder.sub_process(&id).start(&start));
        self.block(depth + 1);
        let end = self.id("end");
        let ends = self.chance.below(6);
        self.add(|builder| match ends {
            0 => builder.error_end(&end, ERROR),
            1 => builder.escalation_end(&end, "X"),
            2 => builder.terminate_end(&end),
            _ => builder.end(&end),
        });
        if self.chance.one_in(3) {
            let (sub, start, task, end) = (self.id("event-sub"), self.id("start"), self.id("task"), self.id("end"));
            let (event, is_interrupting) = self.event();
            self.add(|builder| {
                let builder = builder.event_sub_process(&sub).start_event(&start, event);
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
        let (id, start) = (self.id("loop"), self.id("start"));
        let (is_sequential, stops) = (self.chance.one_in(2), self.chance.one_in(3));
        self.add(|builder| {
            let builder = builder.sub_process(&id);
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
