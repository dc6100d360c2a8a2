//! The whole tool against a gateway in this process whose behaviour is known.

mod events;
mod fake;
mod overload;

use std::time::Duration;

use fake::{FakeGateway, Faults};
use osmia_load::{
    Delivery, DrainOptions, IdleOptions, LoadError, MaximumOptions, Mode, Options, Outcome, Profile, RateOptions,
    RateReport, Report, WaitingOptions, Work,
};
use tokio::sync::Mutex;

fn options(address: &str, mode: Mode) -> Options {
    Options {
        progress: false,
        fsync_directory: None,
        settle_limit: Duration::from_secs(3),
        server_pids: vec![std::process::id()],
        ..Options::new(address, mode)
    }
}

async fn run(address: &str, mode: Mode) -> Report {
    let report = osmia_load::run(options(address, mode)).await.expect("the run succeeds");
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

/// Timing is tested here, so that one test runs at a time.
static TURN: Mutex<()> = Mutex::const_new(());

async fn run_rate(faults: Faults, work: Work, rate: f64) -> RateReport {
    let (_gateway, address) = FakeGateway::start(faults).await;
    let mode = Mode::Rate(RateOptions {
        work,
        rate,
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(2),
        drain_limit: Duration::from_secs(1),
    });
    match run(&address, mode).await.outcome {
        Outcome::Rate(report) => *report,
        other => panic!("a run at a fixed rate reports {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_sequences_complete_and_the_overhead_leaves_the_delay_out() {
    let _turn = TURN.lock().await;
    let mut work = Work::new(Profile::TenTasks);
    work.worker.delay = Duration::from_millis(10);
    let report = run_rate(Faults::default(), work, 50.0).await;
    assert_eq!(report.sum.process_latency.count, 100);
    assert_eq!((report.sum.unfinished, report.sum.skipped_sends), (0, 0));
    assert_eq!(report.irregularities.duplicate_jobs, 0);
    assert_eq!(report.irregularities.unknown_jobs, 0);
    assert_eq!(report.irregularities.rejected_completions.total(), 0);
    assert!(report.sum.process_latency.min >= 100.0, "{:?}", report.sum.process_latency);
    let difference = report.sum.process_latency.mean - report.sum.overhead.mean;
    assert!((100.0..300.0).contains(&difference), "the workers took {difference} ms");
    assert!(report.sum.activation_from_command.count >= 800);
    assert!(report.server_cpu_microseconds_per_instance.is_some_and(|cpu| cpu > 0.0));
    assert_eq!(report.series.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn polled_parallel_tasks_complete() {
    let _turn = TURN.lock().await;
    let mut work = Work::new(Profile::Parallel { tasks: 4 });
    work.worker.delivery = Delivery::Poll { max_jobs: 8 };
    work.worker.delay = Duration::from_millis(20);
    let report = run_rate(Faults::default(), work, 50.0).await;
    assert_eq!((report.sum.process_latency.count, report.sum.unfinished), (100, 0));
    // In parallel the longest job counts, not the sum.
    let difference = report.sum.process_latency.mean - report.sum.overhead.mean;
    assert!((20.0..150.0).contains(&difference), "the workers took {difference} ms");
    assert_eq!(report.irregularities.failed_streams.total(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_lost_and_repeated_work_is_counted() {
    let _turn = TURN.lock().await;
    let faults = Faults { refuse_every: 7, deliver_twice_every: 10, lose_every: 25, ..Faults::default() };
    let report = run_rate(faults, Work::new(Profile::OneTask), 200.0).await;
    let found = &report.irregularities;
    // 440 creations with the warm-up, of which a seventh is refused; of the jobs of the others a 25th is lost and
    // a tenth comes twice (each fifth of those is lost instead).
    let near = |value: u64, expected: u64| value.abs_diff(expected) <= 6;
    assert!(near(found.rejected_creations.total(), 63), "{found:?}");
    assert_eq!(found.completed_twice, 0);
    assert!(near(report.sum.unfinished, 15), "{} unfinished", report.sum.unfinished);
    assert!(near(found.duplicate_jobs, 30), "{found:?}");
    assert!(near(found.rejected_completions.total(), 30), "{found:?}");
    assert!(found.rejected_completions.to_string().contains("NOT_FOUND"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_shows_in_all_sends_that_were_intended_meanwhile() {
    let _turn = TURN.lock().await;
    let faults = Faults { stall_at: Some((150, Duration::from_millis(500))), ..Faults::default() };
    let mut work = Work::new(Profile::OneTask);
    // Fewer than are intended during the stall: the bound must not hide them.
    work.creations_in_flight = 10;
    let report = run_rate(faults, work, 200.0).await;
    assert_eq!(report.sum.process_latency.count, 400);
    assert!(report.sum.late_sends >= 50, "{} late", report.sum.late_sends);
    // A quarter of the instances were intended during the stall and waited for half of it in the mean.
    assert!(report.sum.process_latency.p90 > 250.0, "{:?}", report.sum.process_latency);
    assert!(report.sum.process_latency.max >= 500.0, "{:?}", report.sum.process_latency);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_highest_rate_is_found() {
    let _turn = TURN.lock().await;
    let faults = Faults { creation_takes: Some(Duration::from_millis(9)), ..Faults::default() };
    let (_gateway, address) = FakeGateway::start(faults).await;
    let mode = Mode::Maximum(MaximumOptions {
        start_rate: 25.0,
        warm_up: Duration::from_millis(300),
        trial: Duration::from_secs(1),
        duration: Duration::from_secs(1),
        resolution: 0.2,
        ..MaximumOptions::new(Work::new(Profile::OneTask))
    });
    let Outcome::Maximum(report) = run(&address, mode).await.outcome else {
        panic!("a search reports a maximum");
    };
    // One creation takes 9 ms or, by the resolution of timers, 10 or 11.
    let rate = report.sustainable_rate;
    assert!((20.0..=115.0).contains(&rate), "{report:?}");
    assert!(report.trials.iter().any(|trial| trial.failed.is_some()), "{report:?}");
    assert!(report.confirmation.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_instances_are_created_and_drained_in_order() {
    let _turn = TURN.lock().await;
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
        drain.silence = Duration::from_millis(500);
        let Outcome::Drain(drained) = run(&address, Mode::Drain(drain)).await.outcome else {
            panic!("a drained backlog is reported");
        };
        // The second time nothing is left.
        let expected = if delivery == Delivery::Push { 1_000 } else { 0 };
        assert_eq!((drained.received, drained.completed), (expected, expected));
        assert_eq!((drained.out_of_order, drained.duplicate_jobs), (0, 0));
        assert_eq!(drained.first_job_milliseconds.is_some(), expected > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_clients_stay_connected() {
    let _turn = TURN.lock().await;
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
    let _turn = TURN.lock().await;
    let mode = || Mode::Rate(RateOptions::new(Work::new(Profile::OneTask), 10.0));
    let error = osmia_load::run(options("127.0.0.1:1", mode())).await.expect_err("nothing listens on port 1");
    assert!(matches!(&error, LoadError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");

    let faults = Faults { lose_every: 1, ..Faults::default() };
    let (_gateway, address) = FakeGateway::start(faults).await;
    let error = osmia_load::run(options(&address, mode())).await.expect_err("no job ever comes");
    assert!(matches!(error, LoadError::NothingCompletes { created, .. } if created > 0), "{error}");
}
