//! The shapes of processes that can be loaded, alone or mixed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::error::LoadError;

/// From the acknowledged completion that leads to a catch event to the publication of the message, so that the
/// subscription is most likely open.
pub(crate) const PAUSE_BEFORE_MESSAGE: Duration = Duration::from_millis(50);

/// What is loaded: one process or several, and how their instances are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Start, service task, end.
    OneTask,
    /// Ten service tasks in sequence.
    TenTasks,
    /// A parallel gateway that leads to this many service tasks, joined by another.
    Parallel {
        /// How many.
        tasks: u16,
    },
    /// Ten service tasks in sequence. The first has an interrupting boundary timer of an hour, which its completion
    /// cancels; after the fifth a timer catch event waits for the time that the options name.
    TenTasksTwoTimers,
    /// Of ten instances six of [`Profile::OneTask`], two of [`Profile::TenTasksTwoTimers`] and two of a task, a message
    /// catch event and another task. Every second message is published together with the creation, so that it is
    /// buffered, the others when the instance waits for them.
    Mixed,
    /// Instances wait at a message catch event, among others that keep waiting; the schedule is that of the messages.
    /// After each message a task shows that it was correlated.
    Messages,
    /// Instances whose timers are due at the same moment, while [`Profile::OneTask`] runs as well. Only of
    /// [`crate::TimersOptions`], so it is not read from text.
    Timers,
}

/// The process of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    OneTask,
    TenTasks,
    Parallel {
        tasks: u16,
    },
    TenTasksTwoTimers {
        /// What the catch event waits.
        timer: Duration,
    },
    TaskMessageTask,
    MessageTask,
    TimerTask {
        /// In seconds since the Unix epoch.
        due: u64,
    },
}

/// What an instance waits for besides its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// A timer of this duration.
    Timer(Duration),
    /// A message with the instance's tag as correlation key.
    Message,
    /// A date that all instances share, in seconds since the Unix epoch.
    DueDate(u64),
}

/// After the fifth of ten tasks.
const TASK_AFTER_TIMER: u16 = 6;

impl Kind {
    /// Jobs of one instance.
    pub fn tasks(self) -> u16 {
        match self {
            Kind::OneTask | Kind::MessageTask | Kind::TimerTask { .. } => 1,
            Kind::TaskMessageTask => 2,
            Kind::TenTasks | Kind::TenTasksTwoTimers { .. } => 10,
            Kind::Parallel { tasks } => tasks,
        }
    }

    /// Whether each task starts when the one before it is done.
    pub fn in_sequence(self) -> bool {
        !matches!(self, Kind::Parallel { .. })
    }

    /// The number of the task before which the instance waits at a catch event, and for what.
    pub fn waits_before(self) -> Option<(u16, WaitsFor)> {
        match self {
            Kind::OneTask | Kind::TenTasks | Kind::Parallel { .. } => None,
            Kind::TenTasksTwoTimers { timer } => Some((TASK_AFTER_TIMER, WaitsFor::Timer(timer))),
            Kind::TaskMessageTask => Some((2, WaitsFor::Message)),
            Kind::MessageTask => Some((1, WaitsFor::Message)),
            Kind::TimerTask { due } => Some((1, WaitsFor::DueDate(due))),
        }
    }

    pub fn waits_for_message(self) -> bool {
        matches!(self.waits_before(), Some((_, WaitsFor::Message)))
    }

    /// How long an instance lasts by its model alone, when workers hold each job for this long.
    pub fn lasts(self, delay: Duration) -> Duration {
        let steps = if self.in_sequence() { self.tasks() } else { 1 };
        let waits = match self.waits_before() {
            Some((_, WaitsFor::Timer(timer))) => timer,
            Some((2.., WaitsFor::Message)) => PAUSE_BEFORE_MESSAGE,
            _ => Duration::ZERO,
        };
        delay * u32::from(steps) + waits
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::OneTask => formatter.write_str("one-task"),
            Kind::TenTasks => formatter.write_str("ten-tasks"),
            Kind::Parallel { tasks } => write!(formatter, "parallel-{tasks}"),
            Kind::TenTasksTwoTimers { .. } => formatter.write_str("ten-tasks-two-timers"),
            Kind::TaskMessageTask => formatter.write_str("task-message-task"),
            Kind::MessageTask => formatter.write_str("message-task"),
            Kind::TimerTask { .. } => formatter.write_str("timer-task"),
        }
    }
}

impl Profile {
    /// The processes of its open loop, with a timer of this duration.
    pub(crate) fn kinds(self, timer: Duration) -> Vec<Kind> {
        match self {
            Profile::OneTask | Profile::Timers => vec![Kind::OneTask],
            Profile::TenTasks => vec![Kind::TenTasks],
            Profile::Parallel { tasks } => vec![Kind::Parallel { tasks }],
            Profile::TenTasksTwoTimers => vec![Kind::TenTasksTwoTimers { timer }],
            Profile::Mixed => vec![Kind::OneTask, Kind::TenTasksTwoTimers { timer }, Kind::TaskMessageTask],
            Profile::Messages => vec![Kind::MessageTask],
        }
    }

    /// The order in which instances of these processes begin, repeated for ever.
    pub(crate) fn turns(self) -> &'static [usize] {
        match self {
            Profile::Mixed => &[0, 1, 0, 2, 0],
            _ => &[0],
        }
    }

    /// Whether instances are made beforehand and each send of the schedule is a message for one of them.
    pub(crate) fn sends_messages(self) -> bool {
        self == Profile::Messages
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::OneTask => formatter.write_str("one-task"),
            Profile::TenTasks => formatter.write_str("ten-tasks"),
            Profile::Parallel { tasks } => write!(formatter, "parallel-{tasks}"),
            Profile::TenTasksTwoTimers => formatter.write_str("ten-tasks-two-timers"),
            Profile::Mixed => formatter.write_str("mixed"),
            Profile::Messages => formatter.write_str("messages"),
            Profile::Timers => formatter.write_str("timers"),
        }
    }
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Profile {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        match text {
            "one-task" => Ok(Profile::OneTask),
            "ten-tasks" => Ok(Profile::TenTasks),
            "ten-tasks-two-timers" => Ok(Profile::TenTasksTwoTimers),
            "mixed" => Ok(Profile::Mixed),
            "messages" => Ok(Profile::Messages),
            "parallel" => Ok(Profile::Parallel { tasks: 10 }),
            other => other
                .strip_prefix("parallel-")
                .and_then(|tasks| tasks.parse().ok())
                .map(|tasks| Profile::Parallel { tasks })
                .ok_or_else(|| LoadError::Option {
                    what: "The profile",
                    value: format!("\"{other}\""),
                    expected: "one-task, ten-tasks, ten-tasks-two-timers, parallel, parallel-N with a number of tasks, \
                               mixed or messages",
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_as_they_are_written() {
        for text in ["one-task", "ten-tasks", "ten-tasks-two-timers", "parallel-7", "mixed", "messages"] {
            assert_eq!(text.parse::<Profile>().expect("a known profile").to_string(), text);
        }
        assert_eq!("parallel".parse::<Profile>().expect("a known profile"), Profile::Parallel { tasks: 10 });
        let error = "two-tasks".parse::<Profile>().expect_err("an unknown profile");
        assert!(error.to_string().contains("\"two-tasks\""), "{error}");
    }

    #[test]
    fn a_mix_has_six_two_and_two_of_ten() {
        let turns = Profile::Mixed.turns();
        let share = |kind: usize| turns.iter().filter(|turn| **turn == kind).count() * 10 / turns.len();
        assert_eq!([share(0), share(1), share(2)], [6, 2, 2]);
        for profile in [Profile::OneTask, Profile::Mixed, Profile::Messages, Profile::Timers] {
            assert!(profile.turns().iter().all(|turn| *turn < profile.kinds(Duration::ZERO).len()));
        }
    }

    #[test]
    fn an_instance_lasts_as_long_as_its_jobs_and_its_timer() {
        let (delay, timer) = (Duration::from_millis(50), Duration::from_millis(200));
        assert_eq!(Kind::TenTasksTwoTimers { timer }.lasts(delay), Duration::from_millis(700));
        assert_eq!(Kind::Parallel { tasks: 5 }.lasts(delay), delay);
        assert_eq!(Kind::MessageTask.lasts(delay), delay);
    }
}
