//! How long a node took for single commands, from what it publishes.

use std::fmt;
use std::time::Duration;

use crate::node::Addresses;

/// The longest that the engine may compute for any one command.
pub(crate) const LONGEST_COMMAND_MAX: Duration = Duration::from_millis(100);

/// Upper bounds that the node counts by, in seconds, as it writes them; the last but one is the longest that a command may take.
const BOUNDS: [&str; 6] = ["0.0001", "0.001", "0.01", "0.05", "0.1", "+Inf"];

/// Times of the commands that nodes have applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandTimes {
    longest_command: Duration,
    longest_computing: Duration,
    longest_batch: Duration,
    /// Commands within each of the bounds.
    within: [f64; BOUNDS.len()],
}

impl CommandTimes {
    /// What a node has applied since its start; nothing if it does not say.
    pub fn of(addresses: &Addresses) -> Self {
        let metrics = addresses.metrics().unwrap_or_default();
        let longest = |name| {
            let seconds = metrics.of(name, "", f64::max).unwrap_or_default();
            Duration::try_from_secs_f64(seconds).unwrap_or_default()
        };
        let within = BOUNDS.map(|bound| {
            let (name, label) =
                ("zeebe_stream_processor_processing_duration_seconds_bucket", format!("le=\"{bound}\""));
            metrics.of(name, &label, |one, other| one + other).unwrap_or_default()
        });
        CommandTimes {
            longest_command: longest("osmia_command_application_longest_seconds"),
            longest_computing: longest("osmia_command_application_longest_processor_seconds"),
            longest_batch: longest("osmia_batch_processing_longest_seconds"),
            within,
        }
    }

    /// The times of one more node.
    pub fn add(&mut self, other: &CommandTimes) {
        self.longest_command = self.longest_command.max(other.longest_command);
        self.longest_computing = self.longest_computing.max(other.longest_computing);
        self.longest_batch = self.longest_batch.max(other.longest_batch);
        self.within.iter_mut().zip(other.within).for_each(|(sum, more)| *sum += more);
    }

    /// How many commands took longer than any may compute: while others had the processor, or because they do.
    fn too_long(&self) -> f64 {
        let [.., within_limit, all] = self.within;
        all - within_limit
    }

    /// The most processor time of one command. How long it took depends on who else wanted the processor, this program among them.
    pub fn longest_computing(&self) -> Duration {
        self.longest_computing
    }

    /// What took longer than everything before, and how much took too long, as the end of a line.
    pub fn longer_than(&self, before: &CommandTimes) -> String {
        let mut said = String::new();
        let too_long = self.too_long() - before.too_long();
        if too_long > 0.0 {
            let limit = LONGEST_COMMAND_MAX.as_millis();
            said.push_str(&format!(", commands longer than {limit} ms: {too_long}"));
        }
        let longest = [
            ("command", self.longest_command, before.longest_command),
            ("computing", self.longest_computing, before.longest_computing),
            ("batch with its records", self.longest_batch, before.longest_batch),
        ];
        for (what, now, before) in longest {
            if now > before {
                said.push_str(&format!(", longest {what} {:.0} ms", milliseconds(now)));
            }
        }
        said
    }
}

impl fmt::Display for CommandTimes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [all @ .., last] = &self.within;
        write!(formatter, "{last} commands")?;
        for (bound, within) in BOUNDS.iter().zip(all) {
            write!(formatter, ", {} longer than {bound} s", last - within)?;
        }
        let [command, computing, batch] =
            [self.longest_command, self.longest_computing, self.longest_batch].map(milliseconds);
        write!(
            formatter,
            "; the longest took {command:.0} ms, none computed for more than {computing:.0} ms, \
             the longest batch with its records took {batch:.0} ms"
        )
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
