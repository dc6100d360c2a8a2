//! Commands that call a running node: each is an [`Action`] on a connection.

mod action;
mod conditional;
mod decision;
mod deployment;
mod incident;
mod instance;
mod job;
mod message;
mod modification;
mod signal;
mod topology;

use clap::{Args, Subcommand};

use action::Action;

use crate::client::{Client, Outcome, Server};
use crate::output::Output;

/// An action and the server to send it to.
#[derive(Debug, Args)]
pub(crate) struct On<T: Args> {
    #[command(flatten)]
    action: T,
    #[command(flatten)]
    server: Server,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Call {
    /// Show the cluster: nodes, partitions, leaders.
    Topology(On<topology::Topology>),
    /// Deploy models, forms and other resources, all or none.
    Deploy(On<deployment::Deploy>),
    /// Create a process instance.
    Create(On<instance::Create>),
    /// Cancel a process instance.
    Cancel(On<instance::Cancel>),
    /// Activate jobs and print each as a line of JSON.
    Activate(On<job::Activate>),
    /// Complete a job.
    Complete(On<job::Complete>),
    /// Give a job back as failed.
    Fail(On<job::Fail>),
    /// Throw a BPMN error from a job.
    ThrowError(On<job::ThrowError>),
    /// Set the attempts left of a job.
    UpdateRetries(On<job::UpdateRetries>),
    /// Set variables in a scope.
    SetVariables(On<instance::SetVariables>),
    /// Evaluate a deployed decision and print its output.
    Evaluate(On<decision::Evaluate>),
    /// Start an instance for each conditional start event whose condition holds.
    EvaluateConditions(On<conditional::EvaluateConditions>),
    /// Publish a message.
    Publish(On<message::Publish>),
    /// Broadcast a signal.
    Broadcast(On<signal::Broadcast>),
    /// Modify a process instance: end elements and start others. Either all of it happens or nothing.
    Modify(On<modification::Modify>),
    /// Migrate a process instance to another process definition.
    Migrate(On<instance::Migrate>),
    /// Delete a deployed resource.
    Delete(On<deployment::Delete>),
    /// Resolve an incident.
    Resolve(On<incident::Resolve>),
}

impl Call {
    /// Carries the command out. Server options that it does not have come before it on the command line.
    pub(crate) async fn carry_out(self, before: Server) -> Outcome {
        match self {
            Call::Topology(on) => on.carry_out(before).await,
            Call::Deploy(on) => on.carry_out(before).await,
            Call::Create(on) => on.carry_out(before).await,
            Call::Cancel(on) => on.carry_out(before).await,
            Call::Activate(on) => on.carry_out(before).await,
            Call::Complete(on) => on.carry_out(before).await,
            Call::Fail(on) => on.carry_out(before).await,
            Call::ThrowError(on) => on.carry_out(before).await,
            Call::UpdateRetries(on) => on.carry_out(before).await,
            Call::SetVariables(on) => on.carry_out(before).await,
            Call::Evaluate(on) => on.carry_out(before).await,
            Call::EvaluateConditions(on) => on.carry_out(before).await,
            Call::Publish(on) => on.carry_out(before).await,
            Call::Broadcast(on) => on.carry_out(before).await,
            Call::Modify(on) => on.carry_out(before).await,
            Call::Migrate(on) => on.carry_out(before).await,
            Call::Delete(on) => on.carry_out(before).await,
            Call::Resolve(on) => on.carry_out(before).await,
        }
    }
}

impl<T: Args + Action> On<T> {
    async fn carry_out(self, before: Server) -> Outcome {
        let server = self.server.or(before);
        let output = Output::new(server.json);
        let client = Client::connect(&server).await?;
        self.action.carry_out(client, &output).await
    }
}
