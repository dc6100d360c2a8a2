//! Creates instances that wait: at a task without a worker, or for a message that nobody publishes.

use serde::Serialize;
use tonic::Status;

use crate::beforehand::{Beforehand, Tags};
use crate::connection::{connect, describe_server};
use crate::error::LoadError;
use crate::figures::{Failures, Quantiles};
use crate::model::{RunNames, Tag};
use crate::options::{Options, WaitingOptions};
use crate::process_statistics::{ProcessUse, Usage};
use crate::profile::{Kind, Profile};
use crate::report::Context;
use crate::schedule::{FOR_EVER, Timeline};
use crate::session::{creator, deploy};

/// What creating the waiting instances took.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingReport {
    /// Instances acknowledged.
    pub created: u64,
    /// Creations that failed; each was replaced by another.
    pub rejected_creations: Failures,
    /// In seconds.
    pub seconds: f64,
    /// Instances per second.
    pub created_per_second: f64,
    /// From sending to acknowledgement, in a closed loop: a slow server gets fewer requests.
    pub creation_latency: Quantiles,
    /// Processor time and memory of the server.
    pub server: Option<ProcessUse>,
    /// Microseconds of processor time of the server for each instance.
    pub server_cpu_microseconds_per_instance: Option<f64>,
    /// Processor time and memory of the load generator.
    pub own: Option<ProcessUse>,
}

/// Numbers the instances. Nothing in this run works on their jobs or sends their messages.
#[derive(Clone)]
struct Numbered;

impl Tags for Numbered {
    fn begin(&self, number: u64) -> Option<Tag> {
        Some(Tag(number))
    }

    fn created(&self, _tag: Tag) {}

    fn failed(&self, _tag: Tag, _status: &Status) {}
}

pub(crate) async fn run(options: &Options, waiting: &WaitingOptions) -> Result<(Context, WaitingReport), LoadError> {
    let clients = connect(options, options.connections).await?;
    let server = describe_server(clients.any(), options.request_timeout).await?;
    let kind = match waiting.profile {
        Profile::Messages => Kind::MessageTask,
        _ => Kind::OneTask,
    };
    let names = RunNames::unique();
    let process_ids = deploy(clients.any(), &[kind], &names, options.request_timeout).await?;
    let beforehand = Beforehand {
        creator: creator(options, clients, process_ids.clone(), waiting.payload_bytes),
        kind: 0,
        timeline: Timeline::start_now(),
        in_flight: waiting.in_flight,
        end: FOR_EVER,
        progress: options.progress,
    };
    let before = Usage::take(&options.server_pids)?;
    let made = beforehand.create(waiting.instances, &Numbered).await;
    let (server_use, own) = Usage::take(&options.server_pids)?.since(&before);
    let report = WaitingReport {
        created: made.created,
        created_per_second: made.created as f64 / made.seconds,
        rejected_creations: made.rejected,
        seconds: made.seconds,
        creation_latency: made.latency.quantiles(),
        server_cpu_microseconds_per_instance: server_use.and_then(|server| server.cpu_microseconds_per(made.created)),
        server: server_use,
        own,
    };
    Ok((Context::new(server, &process_ids, Some(&names), created_nothing(&report)), report))
}

/// A hint for the reader when the run gave up.
fn created_nothing(report: &WaitingReport) -> Option<String> {
    (report.created == 0).then(|| "No creation succeeded; see the failures.".to_owned())
}
