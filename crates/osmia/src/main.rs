//! The binary: one command runs a node, the others are its clients.

mod arguments;
mod ask;
mod call;
mod check;
mod client;
mod cluster;
mod configuration;
mod demo;
mod doctor;
mod exporting;
mod feature_level;
mod health;
mod input;
mod json_body;
mod load;
mod management;
mod management_server;
mod metrics;
mod models;
mod node;
mod nodes;
mod outcome;
mod output;
mod problem;
mod profiles;
mod purge;
mod readiness;
mod settings;
mod signals;
mod variables;
mod waiting;

use std::io::{self, ErrorKind, Write};
use std::num::NonZero;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use arguments::{Arguments, Command};
use client::ClientError;
use outcome::Outcome;
use output::Output;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Enough for the deepest call of the gateway; only the part that is used takes memory.
const STACK_BYTES: usize = 1 << 20;

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads the output has seen enough, `head` for example.
        Err(error) if is_closed_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) if error.is::<node::Logged>() => ExitCode::FAILURE,
        Err(error) => {
            // If nobody can read it, the exit code still says that it failed.
            if let Some(problem) = problem::of(error.as_ref()).filter(|_| wants_json(&matches)) {
                let _ = output::print_line(problem);
            }
            // It may quote what others say.
            let _ = writeln!(io::stderr(), "osmia: {}", ask::plain_lines(&error.to_string()));
            match error.downcast_ref() {
                Some(ClientError::Ended { code, .. }) => ExitCode::from(*code),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Whether programs read the answer of the command.
fn wants_json(matches: &ArgMatches) -> bool {
    let is_given = matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
    is_given || matches.subcommand().is_some_and(|(_, of_command)| wants_json(of_command))
}

/// Whether it is the output that nobody reads. A connection that breaks has the same cause, deeper inside.
fn is_closed_pipe(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let written = match error.downcast_ref::<ClientError>() {
        Some(ClientError::Output(error)) => Some(error),
        Some(_) => None,
        None => error.downcast_ref::<io::Error>(),
    };
    written.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// The commands that need an asynchronous runtime.
enum Asynchronous {
    Start(Box<arguments::Start>),
    Load(load::Load),
    Call(call::Call),
}

fn run(Arguments { server, command }: Arguments) -> Outcome {
    if server.is_given() && !matches!(command, Command::Call(_) | Command::Ask(_)) {
        return Err(
            "--address, --rest-address, --profile, --ca-certificate, --timeout and --json before the command are for \
                    commands that call a node. Give what this command takes after it; osmia help lists it."
                .into(),
        );
    }
    let command = match command {
        Command::Doctor(arguments) => return doctor::run(&arguments),
        Command::Check(arguments) => return check::run(&arguments),
        Command::Health(arguments) => return health::run(&arguments),
        Command::Cluster(command) => return cluster::run(&command),
        Command::Settings(settings) => return settings::run(settings),
        Command::Ask(ask) => return Ok(ask.ask(server)?),
        Command::Version { json } => return Ok(tell_version(json)?),
        Command::Completions { shell } => return complete(shell),
        Command::Man { command } => return tell_manual(&command),
        Command::Start(start) => Asynchronous::Start(start),
        Command::Load(arguments) => Asynchronous::Load(arguments),
        Command::Call(call) => Asynchronous::Call(call),
    };
    // The partitions have threads of their own. With as many threads as cores here, a quarter of the time goes into
    // waking each other.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.div_ceil(2))
        // Answers come from the partitions' threads by the queue of all threads. By default it is looked at after every 61
        // tasks of the thread's own, so a flood of requests would hold up the answers to everybody else.
        .global_queue_interval(7)
        .thread_name("gateway")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()?;
    match command {
        Asynchronous::Start(start) => {
            let outcome = runtime.block_on(node::start(*start));
            // A node that was to stop before it had started may still wait for others there.
            runtime.shutdown_background();
            outcome
        }
        Asynchronous::Load(load) => load::run(&runtime, load),
        Asynchronous::Call(call) => Ok(runtime.block_on(call.carry_out(server))?),
    }
}

fn tell_version(json: bool) -> io::Result<()> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let level = engine::FeatureLevel::NEWEST.number();
    Output::new(json)
        .say(format_args!("osmia {VERSION}"), || json!({ "version": VERSION, "newestFeatureLevel": level }))
}

/// Prints the manual page of a command, made as a whole first like the scripts.
fn tell_manual(words: &[String]) -> Outcome {
    let mut osmia = Arguments::command();
    // Names the commands below it as their pages are called.
    osmia.build();
    let mut command = &osmia;
    for word in words {
        let below = command.find_subcommand(word);
        command =
            below.ok_or_else(|| format!("There is no command '{}'. 'osmia help' lists them.", words.join(" ")))?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(io::stdout().write_all(&page)?)
}

/// Prints the script of a shell. It is made as a whole first: the library panics if it cannot write.
fn complete(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "osmia", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
