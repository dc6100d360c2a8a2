//! `osmia start --nodes N`: a cluster on one machine, for trying out.
//!
//! Each node is a process of its own, so that one may be killed while the others go on. This process only starts them,
//! passes on what they say, and stops them.

mod lines;
mod plan;

use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

use crate::configuration::{Configuration, Environment, LogFormat, Sources};
use crate::outcome::Outcome;
use crate::output::Output;
use crate::signals::Signals;
use lines::Lines;
use plan::NodePlan;

/// How often to look whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A node that was started here.
struct Running {
    number: u32,
    child: Child,
    /// Pass on what it says, until it has ended.
    lines: [JoinHandle<()>; 2],
    /// Starts it again.
    command: String,
}

/// Runs so many nodes with these flags and this file until all are asked to stop. `switches` are flags without a value;
/// `check` says what is wrong with the configuration of one of them.
pub(crate) async fn run(
    count: u32,
    flags: BTreeMap<&'static str, String>,
    file: Option<&Path>,
    switches: &[&str],
    check: impl Fn(&Configuration) -> Outcome,
) -> Outcome {
    let sources = Sources::new(flags.clone(), Environment::of_process(), file)?;
    let format = sources.get("log-format", LogFormat::read)?.unwrap_or_default();
    let plans = plan::plan(count, &sources, flags, file)?;
    // All of them before the first one starts, so that a mistake is said once.
    plans.iter().try_for_each(|plan| check(&plan.configuration))?;
    let mut signals = Signals::new()?;
    let program = std::env::current_exe()?;
    let output = Output::new(format == LogFormat::Json);
    let mut running = Vec::new();
    for plan in &plans {
        match start(&program, plan, file, switches, format) {
            Ok(node) => running.push(node),
            Err(error) => {
                stop(running, &mut signals, &output).await?;
                return Err(format!("Cannot start node {}: {error}", plan.number).into());
            }
        }
    }
    introduce(&plans, &output);
    let ended = tokio::select! {
        () = signals.next() => None,
        ended = watch(&mut running, &output) => Some(ended),
    };
    match ended {
        Some(outcome) => outcome,
        None => stop(running, &mut signals, &output).await,
    }
}

/// Says where the nodes are. Those whose ports are free ones say it themselves.
fn introduce(plans: &[NodePlan], output: &Output) {
    let text: Vec<_> = plans.iter().map(NodePlan::introduction).collect();
    let json = || json!({ "nodes": plans.iter().map(NodePlan::to_json).collect::<Vec<_>>() });
    let first = format!("Osmia starts {} nodes of one cluster; Ctrl-C stops all of them.", plans.len());
    // Without a reader, they work all the same.
    let _ = output.say(format!("{first}\n{}", text.join("\n")), json);
}

fn start(
    program: &Path,
    plan: &NodePlan,
    file: Option<&Path>,
    switches: &[&str],
    format: LogFormat,
) -> std::io::Result<Running> {
    let arguments = plan.arguments(file, switches);
    let mut command = Command::new(program);
    command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C reaches all processes of a terminal's group at once. They are to stop one after the other.
    command.process_group(0);
    // SAFETY: the call is one that may be made between fork and exec, and takes only numbers.
    unsafe {
        command.pre_exec(|| {
            // Nobody stops them when this process is killed. The thread that starts them lives as long as it does.
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn()?;
    let lines = Lines { number: plan.number, format };
    let (said, logged) = (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
    let lines = [
        std::thread::spawn(move || lines.pass_on(said, std::io::stdout)),
        std::thread::spawn(move || lines.pass_on(logged, std::io::stderr)),
    ];
    let command = plan::command_line(program, &arguments);
    Ok(Running { number: plan.number, child, lines, command })
}

/// Says which nodes end by themselves; ends when all have.
async fn watch(running: &mut Vec<Running>, output: &Output) -> Outcome {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let mut index = 0;
        while let Some(node) = running.get_mut(index) {
            match node.child.try_wait()? {
                None => index += 1,
                Some(status) => {
                    let node = running.remove(index);
                    let rest = running.len();
                    node.lines.into_iter().for_each(|lines| drop(lines.join()));
                    let (number, how, command) = (node.number, how(status), node.command);
                    let text = format!(
                        "node {number} {how} and is not started again; {rest} node(s) go on. This starts it: {command}"
                    );
                    let json = || json!({ "message": text, "node": number, "ended": how, "command": command });
                    let _ = output.say(&text, json);
                }
            }
        }
        if running.is_empty() {
            return Err("All nodes have ended by themselves. The lines before this one say why.".into());
        }
    }
}

/// Stops the nodes one after the other, the last one first: the others take over from it.
async fn stop(mut running: Vec<Running>, signals: &mut Signals, output: &Output) -> Outcome {
    let mut failed = Vec::new();
    let mut signal = libc::SIGTERM;
    while let Some(mut node) = running.pop() {
        send(&node.child, signal);
        let status = loop {
            if let Some(status) = node.child.try_wait()? {
                break status;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = signals.next() => {
                    // Who asks twice does not want to wait, and a kill costs nothing that was acknowledged.
                    signal = libc::SIGKILL;
                    send(&node.child, signal);
                }
            }
        };
        node.lines.into_iter().for_each(|lines| drop(lines.join()));
        let (number, how) = (node.number, how(status));
        let text = format!("node {number} {how}");
        let _ = output.say(&text, || json!({ "message": text, "node": number, "ended": how }));
        if !status.success() {
            failed.push(number.to_string());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("Of the nodes, {} did not stop as they should.", failed.join(" and ")).into()),
    }
}

/// Sends a signal to a process that was not waited for, so its number is not another one's.
fn send(child: &Child, signal: libc::c_int) {
    let Ok(process) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: the call takes numbers, and the process is a child of this one. That it has ended already is no harm.
    unsafe { libc::kill(process, signal) };
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "has stopped".to_owned(),
        (Some(code), _) => format!("has ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "has ended".to_owned(),
    }
}
