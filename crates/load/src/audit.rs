//! The audit of a run: its ledger against what every node finds.
//!
//! Jobs of the run that are left are completed meanwhile, so that what is still active in the end cannot go on.

mod compare;
mod view;

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;
use tonic::Status;

use crate::error::LoadError;
use crate::ledger::{Book, Header, Outcome};
use crate::schedule::unix_milliseconds;
use crate::silence::moment;
use crate::table::row;
use compare::{Comparison, Findings};
use view::{Node, State, View};

pub use compare::{Finding, FindingKind};

/// Between two looks at all nodes.
const PAUSE: Duration = Duration::from_millis(500);
/// Nodes that are compared.
const ADDRESSES_MAX: usize = 64;
/// How long a poll for jobs that are left waits, and how long its jobs are locked.
const POLL: Duration = Duration::from_secs(1);
const JOB_TIMEOUT: Duration = Duration::from_secs(10);
const JOBS_PER_POLL: u16 = 100;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What is compared.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The file that a run wrote.
    pub ledger: PathBuf,
    /// The REST ports of all nodes, as `host:port` or with `http://` before.
    pub addresses: Vec<String>,
    /// How long something may be wrong without a change before it counts.
    pub settle: Duration,
    /// Whether to say on standard error what is waited for.
    pub progress: bool,
}

/// What an audit found. As text it is a table and a sentence for each of the first findings.
#[derive(Clone, Debug, Serialize)]
pub struct AuditReport {
    /// The file.
    pub ledger: PathBuf,
    /// Creations that were about to be sent.
    pub creations: u64,
    /// Those that were acknowledged.
    pub creations_acknowledged: u64,
    /// Those that were refused. Nobody knows the outcome of the others.
    pub creations_refused: u64,
    /// Jobs whose completion was about to be sent.
    pub completions: u64,
    /// Those that were acknowledged.
    pub completions_acknowledged: u64,
    /// Jobs that the audit itself completed, because the run had left them.
    pub completed_by_audit: u64,
    /// What each node finds.
    pub nodes: Vec<NodeReport>,
    /// Acknowledged and not there.
    pub lost: u64,
    /// There more often than sent.
    pub doubled: u64,
    /// Active without progress.
    pub stuck: u64,
    /// Not the same at all nodes.
    pub disagreeing: u64,
    /// Not in the ledger, or terminated.
    pub unexpected: u64,
    /// The first findings in sentences.
    pub findings: Vec<Finding>,
}

/// What one node finds.
#[derive(Clone, Debug, Serialize)]
pub struct NodeReport {
    /// Its address.
    pub address: String,
    /// Process instances of the run.
    pub instances: u64,
    /// Those that are completed.
    pub completed: u64,
    /// Those that are active.
    pub active: u64,
    /// Jobs of the run.
    pub jobs: u64,
}

impl AuditOptions {
    fn check(&self) -> Result<(), LoadError> {
        let addresses = self.addresses.len();
        match addresses {
            1..=ADDRESSES_MAX => Ok(()),
            _ => Err(LoadError::Option {
                what: "The number of addresses",
                value: addresses.to_string(),
                expected: "from 1 to 64",
            }),
        }
    }
}

/// Compares a ledger with what every node finds.
pub async fn audit(options: &AuditOptions) -> Result<AuditReport, LoadError> {
    options.check()?;
    let book = Book::read(&options.ledger)?;
    let nodes: Vec<Node> = options.addresses.iter().map(|address| Node::new(address)).collect();
    let completed = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for node in &nodes {
        workers.spawn(complete_what_is_left(node.rest().clone(), book.header.clone(), Arc::clone(&completed)));
    }
    let mut said = String::new();
    let mut patience = Patience::new(&book, options.settle);
    loop {
        let done = completed.load(Ordering::Relaxed);
        let found = match views(&nodes, &book.header).await {
            Ok(views) => {
                let findings = Comparison { book: &book, nodes: &views }.findings();
                let is_over = findings.total() == 0 || patience.is_over(&findings, done);
                if is_over {
                    let done = completed.load(Ordering::Relaxed);
                    return Ok(report(options, &book, &views, findings, done));
                }
                format!("{} findings", findings.total())
            }
            Err(error) if patience.is_over_after_failure() => return Err(error),
            Err(error) => error.to_string(),
        };
        let state = format!("{found}; {done} jobs that were left are completed");
        if options.progress && state != said {
            eprintln!("{state}; waiting for a change");
            said = state;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn views(nodes: &[Node], header: &Header) -> Result<Vec<(String, View)>, LoadError> {
    let mut views = Vec::with_capacity(nodes.len());
    for node in nodes {
        let failed = |status: Status| LoadError::Search {
            address: node.address.clone(),
            reason: format!("{} {}", gateway_interface::code_name(status.code()), status.message()),
        };
        views.push((node.address.clone(), node.view(header).await.map_err(failed)?));
    }
    Ok(views)
}

/// Says how long findings may still pass by themselves.
struct Patience {
    settle: Duration,
    /// When the locks of all jobs of the run have ended, in milliseconds since the Unix epoch.
    unlocked_at: u64,
    /// Findings and completed jobs at the last change.
    last: Option<(u64, u64)>,
    since: Instant,
}

impl Patience {
    fn new(book: &Book, settle: Duration) -> Self {
        let lock = u64::try_from(book.header.job_timeout.as_millis()).unwrap_or(u64::MAX);
        Patience { settle, unlocked_at: book.last_at.saturating_add(lock), last: None, since: Instant::now() }
    }

    /// Whether nothing has changed for long enough, and no lock of a job explains what is active.
    fn is_over(&mut self, findings: &Findings, completed: u64) -> bool {
        let now = Some((findings.total(), completed));
        if self.last != now {
            (self.last, self.since) = (now, Instant::now());
        }
        let is_locked = findings.count(FindingKind::Stuck) > 0 && {
            let settle = u64::try_from(self.settle.as_millis()).unwrap_or(u64::MAX);
            unix_milliseconds() < self.unlocked_at.saturating_add(settle)
        };
        self.since.elapsed() >= self.settle && !is_locked
    }

    fn is_over_after_failure(&self) -> bool {
        self.since.elapsed() >= self.settle
    }
}

/// Completes the jobs of the run that are left.
async fn complete_what_is_left(rest: crate::rest::Rest, header: Header, completed: Arc<AtomicU64>) {
    let names = (header.job_type.as_str(), "osmia-load-audit");
    loop {
        let limit = POLL + REQUEST_TIMEOUT;
        let Ok(jobs) = rest.activate(names, JOB_TIMEOUT, JOBS_PER_POLL, Some(POLL), limit).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for job in jobs {
            // One that fails comes again.
            let result = rest.complete(job.key, REQUEST_TIMEOUT).await;
            completed.fetch_add(u64::from(result.is_ok()), Ordering::Relaxed);
        }
    }
}

fn report(
    options: &AuditOptions,
    book: &Book,
    views: &[(String, View)],
    findings: Findings,
    completed_by_audit: u64,
) -> AuditReport {
    let creations = |holds: fn(&Outcome) -> bool| {
        book.creations.values().filter(|creation| holds(&creation.outcome)).count() as u64
    };
    let node = |(address, view): &(String, View)| {
        let of = |state| view.instances.values().filter(|instance| instance.state == state).count() as u64;
        NodeReport {
            address: address.clone(),
            instances: view.instances.len() as u64,
            completed: of(State::Completed),
            active: of(State::Active),
            jobs: view.jobs.len() as u64,
        }
    };
    AuditReport {
        ledger: options.ledger.clone(),
        creations: book.creations.len() as u64,
        creations_acknowledged: creations(|outcome| matches!(outcome, Outcome::Acknowledged(_))),
        creations_refused: creations(|outcome| *outcome == Outcome::Refused),
        completions: book.completions.len() as u64,
        completions_acknowledged: book.completions.values().filter(|of| of.is_acknowledged).count() as u64,
        completed_by_audit,
        nodes: views.iter().map(node).collect(),
        lost: findings.count(FindingKind::Lost),
        doubled: findings.count(FindingKind::Doubled),
        stuck: findings.count(FindingKind::Stuck),
        disagreeing: findings.count(FindingKind::Disagreeing),
        unexpected: findings.count(FindingKind::Unexpected),
        findings: findings.first,
    }
}

impl AuditReport {
    /// How many findings there are.
    pub fn total(&self) -> u64 {
        self.lost + self.doubled + self.stuck + self.disagreeing + self.unexpected
    }

    /// An error when something is wrong.
    pub fn verdict(&self) -> Result<(), LoadError> {
        match self.total() {
            0 => Ok(()),
            total => Err(LoadError::Wrong(format!("The audit has {total} findings."))),
        }
    }
}

impl Display for AuditReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        row(formatter, "ledger", self.ledger.display())?;
        let unknown = self.creations - self.creations_acknowledged - self.creations_refused;
        row(
            formatter,
            "creations",
            format_args!(
                "{}: {} acknowledged, {} refused, {unknown} of unknown outcome",
                self.creations, self.creations_acknowledged, self.creations_refused
            ),
        )?;
        row(
            formatter,
            "completions",
            format_args!(
                "{}: {} acknowledged; {} more by this audit",
                self.completions, self.completions_acknowledged, self.completed_by_audit
            ),
        )?;
        for node in &self.nodes {
            row(
                formatter,
                &node.address,
                format_args!(
                    "{} instances: {} completed, {} active; {} jobs",
                    node.instances, node.completed, node.active, node.jobs
                ),
            )?;
        }
        for (name, count) in [
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("stuck", self.stuck),
            ("disagreeing", self.disagreeing),
            ("unexpected", self.unexpected),
        ] {
            row(formatter, name, count)?;
        }
        for finding in &self.findings {
            writeln!(formatter, "{}: {}", finding.kind, finding.sentence)?;
        }
        let left_out = self.total() - self.findings.len() as u64;
        if left_out > 0 {
            writeln!(formatter, "and {left_out} more")?;
        }
        row(formatter, "audited at", moment(unix_milliseconds()))
    }
}
