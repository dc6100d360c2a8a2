//! The whole tool against a gateway in this process whose behaviour is known.
//!
//! On a machine with other work a run sends less than it was to, and all takes longer; so these tests compare counts with
//! each other and with what the gateway counted. What needs a quiet machine is in `timing`, and not run with the others.

mod availability;
mod events;
mod fake;
mod overload;
mod several;
mod timing;

use std::time::Duration;

use fake::{FakeGateway, Faults};
use load::{
    Delivery, DrainOptions, IdleOptions, LoadError, MaximumOptions, Measured, Mode, Options, Outcome, Profile,
    RateOptions, RateReport, Report, WaitingOptions, Work,
};

/// For what happens sooner or later.
const LONG: Duration = Duration::from_secs(120);
/// For what never happens.
const SHORT: Duration = Duration::from_secs(3);

fn options(address: &str, mode: Mode) -> Options {
    Options {
        progress: false,
        fsync_directory: None,
        request_timeout: LONG,
        settle_limit: LONG,
        server_pids: vec![std::process::id()],
        ..Options::new(address, mode)
    }
}

async fn run(address: &str, mode: Mode) -> Report {
    let report = load::run(options(address, mode)).await.expect("the run succeeds");
    // Whatever was measured can be printed and read by a program.
    assert!(report.to_string().contains("(version fake, 1 nodes, 1 partitions"));
    let json = serde_json::to_value(&report).expect("a report serializes");
    assert_eq!(json["settings"]["addresses"][0], address);
    assert!(json["outcome"].is_object());
    // A failure is seen by programs and by readers.
    assert_eq!(json["failure"].is_string(), report.verdict().is_err(), "{json}");
    assert_eq!(report.to_string().contains("FAILED"), report.verdict().is_err(), "{report}");
    report
}

/// Two seconds at this rate, after a tenth of them to warm up.
fn at_rate(work: Work, rate: f64, drain_limit: Duration) -> Mode {
    Mode::Rate(RateOptions {
        work,
        rate,
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(2),
        drain_limit,
    })
}

async fn run_rate(faults: Faults, work: Work, rate: f64, drain_limit: Duration) -> (RateReport, FakeGateway) {
    let (gateway, address) = FakeGateway::start(faults).await;
    match run(&address, at_rate(work, rate, drain_limit)).await.outcome {
        Outcome::Rate(report) => (*report, gateway),
        other => panic!("a run at a fixed rate reports {other:?}"),
    }
}

/// Instances that completed, and those for which the machine left no time.
fn intended(measured: &Measured) -> u64 {
    measured.process_latency.count + measured.skipped_sends
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_sequences_complete_and_the_overhead_leaves_the_delay_out() {
    let mut work = Work::new(Profile::TenTasks);
    work.worker.delay = Duration::from_millis(10);
    let (report, _) = run_rate(Faults::default(), work, 50.0, LONG).await;
    assert_eq!((intended(&report.sum), report.sum.unfinished), (100, 0));
    assert_eq!(report.irregularities.duplicate_jobs, 0);
    assert_eq!(report.irregularities.unknown_jobs, 0);
    assert_eq!(report.irregularities.rejected_completions.total(), 0);
    if report.sum.process_latency.count > 0 {
        assert!(report.sum.process_latency.min >= 100.0, "{:?}", report.sum.process_latency);
        let difference = report.sum.process_latency.mean - report.sum.overhead.mean;
        assert!(difference >= 100.0, "the workers took {difference} ms");
    }
    assert_eq!(report.server_cpu_microseconds_per_instance.is_some(), report.sum.completed > 0);
    assert!(report.series.len() >= 2, "{:?}", report.series);
}

#[tokio::test(flavor = "multi_thread")]
async fn polled_parallel_tasks_complete() {
    let mut work = Work::new(Profile::Parallel { tasks: 4 });
    work.worker.delivery = Delivery::Poll { max_jobs: 8 };
    work.worker.delay = Duration::from_millis(20);
    let (report, _) = run_rate(Faults::default(), work, 50.0, LONG).await;
    assert_eq!((intended(&report.sum), report.sum.unfinished), (100, 0));
    assert_eq!(report.irregularities.failed_streams.total(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_lost_and_repeated_work_is_counted() {
    let faults = Faults { refuse_every: 7, deliver_twice_every: 10, lose_every: 25, ..Faults::default() };
    let (report, gateway) = run_rate(faults, Work::new(Profile::OneTask), 200.0, Duration::from_secs(1)).await;
    let found = &report.irregularities;
    // A seventh of the creations is refused; of the jobs of the others a 25th is lost and a tenth comes twice (each
    // fifth of those is lost instead). A few more or less belong to the instances of the test before the run.
    let (creations, jobs) = (gateway.creations(), gateway.jobs());
    let near = |value: u64, expected: u64| value.abs_diff(expected) <= 6;
    assert!(near(found.rejected_creations.total(), creations / 7), "{found:?} of {creations}");
    assert_eq!(found.completed_twice, 0);
    assert!(report.sum.unfinished + 6 >= jobs / 25, "{} unfinished of {jobs}", report.sum.unfinished);
    assert!(near(found.duplicate_jobs, jobs / 10 - jobs / 50), "{found:?} of {jobs}");
    assert!(found.rejected_completions.total() <= found.duplicate_jobs, "{found:?}");
    let text = found.rejected_completions.to_string();
    assert_eq!(text.contains("NOT_FOUND"), found.rejected_completions.total() > 0, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_shows_in_all_sends_that_were_intended_meanwhile() {
    let faults = Faults { stall_at: Some((150, Duration::from_millis(500))), ..Faults::default() };
    let mut work = Work::new(Profile::OneTask);
    // Fewer than are intended during the stall: the bound must not hide them.
    work.creations_in_flight = 10;
    let (report, gateway) = run_rate(faults, work, 200.0, LONG).await;
    let sum = &report.sum;
    assert_eq!((intended(sum), sum.unfinished), (400, 0));
    if gateway.creations() > 150 {
        assert!(sum.late_sends + sum.skipped_sends >= 50, "{} late, {} skipped", sum.late_sends, sum.skipped_sends);
        assert!(sum.process_latency.max >= 500.0, "{:?}", sum.process_latency);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rate_is_found_that_the_server_cannot_take() {
    let faults = Faults { creation_takes: Some(Duration::from_millis(9)), ..Faults::default() };
    let (_gateway, address) = FakeGateway::start(faults).await;
    let mode = Mode::Maximum(MaximumOptions {
        start_rate: 25.0,
        warm_up: Duration::from_millis(300),
        trial: Duration::from_secs(1),
        duration: Duration::from_secs(1),
        resolution: 0.2,
        drain_limit: LONG,
        ..MaximumOptions::new(Work::new(Profile::OneTask))
    });
    let Outcome::Maximum(report) = run(&address, mode).await.outcome else {
        panic!("a search reports a maximum");
    };
    // One creation takes 9 ms or longer.
    assert!(report.sustainable_rate <= 115.0, "{report:?}");
    assert!(report.trials.iter().any(|trial| trial.failed.is_some()), "{report:?}");
    assert_eq!(report.confirmation.is_some(), report.sustainable_rate > 0.0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_instances_are_created_and_drained_in_order() {
    let faults = Faults { refuse_every: 9, ..Faults::default() };
    let (gateway, address) = FakeGateway::start(faults).await;
    let report = run(&address, Mode::Waiting(WaitingOptions::new(1_000))).await;
    let Outcome::Waiting(waiting) = report.outcome else {
        panic!("waiting instances are reported");
    };
    // Exactly as many as asked for, though some creations had to be made up for.
    assert_eq!(waiting.created, 1_000);
    assert_eq!(gateway.creations(), 1_000 + waiting.rejected_creations.total());

    let job_type = report.context.job_type.expect("the job type is reported");
    for delivery in [Delivery::Push, Delivery::Poll { max_jobs: 100 }] {
        let mut drain = DrainOptions::new(job_type.clone());
        drain.worker.delivery = delivery;
        drain.worker.workers = 1;
        // The second time nothing is left.
        let expected = if delivery == Delivery::Push { 1_000 } else { 0 };
        drain.jobs = (expected > 0).then_some(expected);
        drain.silence = if expected > 0 { LONG } else { Duration::from_millis(500) };
        let Outcome::Drain(drained) = run(&address, Mode::Drain(drain)).await.outcome else {
            panic!("a drained backlog is reported");
        };
        assert_eq!((drained.received, drained.completed), (expected, expected));
        assert_eq!((drained.out_of_order, drained.duplicate_jobs), (0, 0));
        assert_eq!(drained.first_job_milliseconds.is_some(), expected > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_clients_stay_connected() {
    let (_gateway, address) = FakeGateway::start(Faults::default()).await;
    let mode = Mode::Idle(IdleOptions { streams: 150, polls: 150, duration: Duration::from_secs(1) });
    let Outcome::Idle(report) = run(&address, mode).await.outcome else {
        panic!("idle clients are reported");
    };
    assert_eq!(report.failures.total(), 0, "{}", report.failures);
    assert!(report.server.is_some());
}

#[tokio::test]
async fn what_cannot_run_says_why() {
    let short = |address: &str| {
        let mode = Mode::Rate(RateOptions::new(Work::new(Profile::OneTask), 10.0));
        Options { settle_limit: SHORT, ..options(address, mode) }
    };
    let error = load::run(short("127.0.0.1:1")).await.expect_err("nothing listens on port 1");
    assert!(matches!(&error, LoadError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");

    let faults = Faults { lose_every: 1, ..Faults::default() };
    let (_gateway, address) = FakeGateway::start(faults).await;
    let error = load::run(short(&address)).await.expect_err("no job ever comes");
    assert!(matches!(error, LoadError::NothingCompletes { created, .. } if created > 0), "{error}");
}
