//! The binary: one command runs a node, the others are its clients.

mod arguments;
mod client;
mod configuration;
mod demo;
mod doctor;
mod load;
mod management;
mod metrics;
mod node;

use std::io::Write;
use std::num::NonZero;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use client::Client;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Enough for the deepest call of the gateway; only the part that is used takes memory.
const STACK_BYTES: usize = 1 << 20;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the message cannot be written, the exit code still reports the failure.
            let _ = writeln!(std::io::stderr(), "osmia: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Outcome {
    if let Command::Doctor(arguments) = &command {
        return doctor::run(arguments);
    }
    // The partitions have threads of their own. With as many threads as cores here, a quarter of the time goes into
    // waking each other.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.div_ceil(2))
        .thread_name("gateway")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()?;
    match command {
        Command::Start(start) => runtime.block_on(node::start(start)),
        Command::Load(arguments) => load::run(&runtime, arguments),
        command => runtime.block_on(call(command)),
    }
}

async fn call(command: Command) -> Outcome {
    match command {
        Command::Topology { server } => Client::connect(&server).await?.topology().await?,
        Command::Deploy { files, server } => Client::connect(&server).await?.deploy(files).await?,
        Command::Create(create) => Client::connect(&create.server).await?.create(create).await?,
        Command::Cancel { key, server } => Client::connect(&server).await?.cancel(key).await?,
        Command::Activate(activate) => Client::connect(&activate.server).await?.activate(activate).await?,
        Command::Complete { key, variables, server } => {
            Client::connect(&server).await?.complete(key, variables).await?;
        }
        Command::Fail { key, retries, message, backoff, server } => {
            Client::connect(&server).await?.fail(key, retries, message, backoff).await?;
        }
        Command::ThrowError { key, code, message, server } => {
            Client::connect(&server).await?.throw_error(key, code, message).await?;
        }
        Command::UpdateRetries { key, retries, server } => {
            Client::connect(&server).await?.update_retries(key, retries).await?;
        }
        Command::SetVariables { key, variables, local, server } => {
            Client::connect(&server).await?.set_variables(key, variables, local).await?;
        }
        Command::Evaluate { id, variables, server } => {
            Client::connect(&server).await?.evaluate(id, variables).await?;
        }
        Command::Publish(publish) => Client::connect(&publish.server).await?.publish(publish).await?,
        Command::Modify(modify) => Client::connect(&modify.server).await?.modify(modify).await?,
        Command::Migrate(migrate) => Client::connect(&migrate.server).await?.migrate(migrate).await?,
        Command::Delete { key, server } => Client::connect(&server).await?.delete(key).await?,
        Command::Resolve { key, server } => Client::connect(&server).await?.resolve(key).await?,
        Command::Start(_) | Command::Load(_) | Command::Doctor(_) => unreachable!("these commands are no calls"),
    }
    Ok(())
}
