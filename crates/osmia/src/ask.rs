//! Commands that ask a running node over REST: what is, what was, and what to do about it.

mod advice;
mod describe;
mod history;
mod instance;
mod joins;
mod list;
mod question;
mod rest;
mod run;
mod table;
mod time;
mod watch;

use clap::{Args, Subcommand};

use question::Question;

use crate::client::{Outcome, Server};
use crate::output::Output;
pub(crate) use rest::{Rest, RestError, configured_address};
pub(crate) use table::{lines as table_lines, plain_lines};

/// A question and the server to send it to.
#[derive(Debug, Args)]
pub(crate) struct Of<T: Args> {
    #[command(flatten)]
    question: T,
    #[command(flatten)]
    server: Server,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Ask {
    /// List process instances.
    Instances(Of<list::Instances>),
    /// List incidents.
    Incidents(Of<list::Incidents>),
    /// List jobs.
    Jobs(Of<list::Jobs>),
    /// List user tasks.
    Tasks(Of<list::Tasks>),
    /// List process definitions.
    Definitions(Of<list::Definitions>),
    /// List variables.
    Variables(Of<list::Variables>),
    /// Show what has this key, of a process instance all of its elements, with active incidents and what to do about them.
    Describe(Of<describe::Describe>),
    /// Show what happened to a process instance, in order.
    History(Of<history::History>),
    /// Deploy a model, start an instance, follow it to its end or to what it waits for, and show it.
    ///
    /// Ends with 0 when the instance is completed, with 3 when it is terminated, with 4 when it has an incident, with 5 when it
    /// waits, and with 1 when it could not be begun.
    Run(Of<run::Run>),
}

impl Ask {
    /// Asks. Server options that the command does not have come before it on the command line.
    pub(crate) fn ask(self, before: Server) -> Outcome {
        match self {
            Ask::Instances(of) => of.ask(before),
            Ask::Incidents(of) => of.ask(before),
            Ask::Jobs(of) => of.ask(before),
            Ask::Tasks(of) => of.ask(before),
            Ask::Definitions(of) => of.ask(before),
            Ask::Variables(of) => of.ask(before),
            Ask::Describe(of) => of.ask(before),
            Ask::History(of) => of.ask(before),
            Ask::Run(of) => of.ask(before),
        }
    }
}

impl<T: Args + Question> Of<T> {
    fn ask(self, before: Server) -> Outcome {
        let server = self.server.or(before);
        let output = Output::new(server.json);
        self.question.ask(&Rest::new(&server)?, &output)
    }
}
