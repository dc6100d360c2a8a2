//! The profiles with timers and messages against a gateway in this process whose behaviour is known.

use std::time::Duration;

use osmia_load::{
    LoadError, MaximumOptions, MessageCounts, Mode, Outcome, Profile, RateOptions, RateReport, Report, TimersOptions,
    TimersReport, WaitingOptions, Work,
};

use crate::fake::{FakeGateway, Faults};
use crate::{TURN, options, run};

fn at_rate(work: Work, rate: f64) -> Mode {
    Mode::Rate(RateOptions {
        work,
        rate,
        warm_up: Duration::from_millis(200),
        duration: Duration::from_secs(2),
        drain_limit: Duration::from_secs(1),
    })
}

fn rate_report(report: Report) -> RateReport {
    match report.outcome {
        Outcome::Rate(report) => *report,
        other => panic!("a run at a fixed rate reports {other:?}"),
    }
}

async fn run_rate(faults: Faults, work: Work, rate: f64) -> (RateReport, Option<String>) {
    let (_gateway, address) = FakeGateway::start(faults).await;
    let report = run(&address, at_rate(work, rate)).await;
    let failure = report.failure.clone();
    (rate_report(report), failure)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_duration_of_a_timer_is_no_overhead() {
    let _turn = TURN.lock().await;
    let mut work = Work::new(Profile::TenTasksTwoTimers);
    work.timer = Duration::from_millis(200);
    work.worker.delay = Duration::from_millis(5);
    let (report, failure) = run_rate(Faults::default(), work, 50.0).await;
    assert_eq!(failure, None);
    let sum = &report.sum;
    assert_eq!((sum.process_latency.count, sum.unfinished), (100, 0));
    assert!(sum.process_latency.min >= 250.0, "{:?}", sum.process_latency);
    let difference = sum.process_latency.mean - sum.overhead.mean;
    assert!((250.0..500.0).contains(&difference), "the workers and the timer took {difference} ms");
    // One job of ten comes after the timer, which this gateway counts from the completion.
    assert!((80..=120).contains(&sum.activation_after_timer.count), "{:?}", sum.activation_after_timer);
    assert!(sum.activation_after_timer.mean < 100.0, "{:?}", sum.activation_after_timer);
    assert!(sum.activation_from_command.count >= 720, "{:?}", sum.activation_from_command);
    assert!(sum.activation_from_command.mean < 100.0, "{:?}", sum.activation_from_command);
    assert_eq!((report.messages, report.by_process.len()), (None, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mix_is_reported_by_process_and_in_sum() {
    let _turn = TURN.lock().await;
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let report = run(&address, at_rate(Work::new(Profile::Mixed), 100.0)).await;
    assert_eq!(report.failure, None);
    assert_eq!(report.context.process_ids.len(), 3);
    let text = report.to_string();
    for process in ["one-task ", "ten-tasks-two-timers ", "task-message-task "] {
        assert!(text.lines().any(|line| line.starts_with(process)), "{process} has a section in\n{text}");
    }
    let report = rate_report(report);
    let shares: Vec<(&str, u64)> =
        report.by_process.iter().map(|part| (part.process.as_str(), part.measured.process_latency.count)).collect();
    assert_eq!(shares, [("one-task", 120), ("ten-tasks-two-timers", 40), ("task-message-task", 40)]);
    assert_eq!(report.sum.process_latency.count, 200);
    assert_eq!(report.sum.unfinished, 0);
    assert_eq!((report.irregularities.unknown_jobs, report.irregularities.unexpected_jobs), (0, 0));
    let tasks_and_message = &report.by_process[2].measured;
    // Half of the messages come with the creation and are buffered.
    assert!((15..=25).contains(&tasks_and_message.activation_after_buffered_message.count), "{tasks_and_message:?}");
    assert!((15..=25).contains(&tasks_and_message.activation_after_message.count), "{tasks_and_message:?}");
    assert!(tasks_and_message.overhead.p50 < tasks_and_message.process_latency.p99 - 40.0, "{tasks_and_message:?}");
    let created = 220 / 5;
    assert_eq!(report.messages, Some(MessageCounts { published: created, correlated: created, lost: 0, repeated: 0 }));
    // Two instances of the test before the measurement have messages as well.
    assert_eq!(gateway.publications(), created + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_reaches_an_instance_that_waits() {
    let _turn = TURN.lock().await;
    let work = Work { waiting: 300, ..Work::new(Profile::Messages) };
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let report = run(&address, at_rate(work, 200.0)).await;
    assert_eq!(report.failure, None);
    let report = rate_report(report);
    assert_eq!((report.sum.process_latency.count, report.sum.unfinished), (400, 0));
    // On a busy machine an acknowledgement may come after what it acknowledges has completed.
    assert!((360..=400).contains(&report.sum.publication_latency.count), "{}", report.sum.publication_latency.count);
    // Each job comes after a message; activations and completions are counted by when they happen, so that those
    // near the ends of the measured time are in one count alone.
    let activations = report.sum.activation_after_message.count;
    assert!((360..=440).contains(&activations), "{activations}");
    assert!(report.sum.jobs_completed.abs_diff(activations) <= 40, "{activations}, {}", report.sum.jobs_completed);
    assert_eq!(report.messages, Some(MessageCounts { published: 440, correlated: 440, lost: 0, repeated: 0 }));
    // Those that were asked for still wait.
    assert_eq!(report.waiting, 300);
    // Two more are for the test before the measurement.
    assert_eq!(gateway.creations(), 2 + 440 + 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_repeated_correlations_fail_the_run() {
    let _turn = TURN.lock().await;
    let faults = Faults { lose_event_every: 50, repeat_event_every: 40, ..Faults::default() };
    let (report, failure) = run_rate(faults, Work::new(Profile::Messages), 200.0).await;
    let messages = report.messages.expect("messages are counted");
    assert_eq!(messages.published, 440);
    // Of 442 events every 50th is lost, of the others every 40th (but for two) comes twice.
    assert_eq!((messages.lost, messages.correlated), (8, 432));
    assert!((8..=9).contains(&messages.repeated), "{messages:?}");
    assert_eq!(report.sum.unfinished, 8);
    let failure = failure.expect("the run fails");
    assert!(failure.starts_with("Of 440 published messages 8 were not correlated"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_publications_leave_the_instance_waiting() {
    let _turn = TURN.lock().await;
    let faults = Faults { refuse_publication_every: 10, ..Faults::default() };
    let (report, failure) = run_rate(faults, Work::new(Profile::Messages), 200.0).await;
    assert_eq!(failure, None);
    let refused = report.irregularities.rejected_publications.total();
    assert!((43..=45).contains(&refused), "{refused}");
    assert_eq!(report.messages.map(|messages| messages.correlated), Some(440 - refused));
    assert_eq!((report.waiting as u64, report.sum.unfinished), (refused, 0));

    // In a mix an instance would wait for ever, so the publication is sent again.
    let (report, failure) = run_rate(faults, Work::new(Profile::Mixed), 200.0).await;
    assert_eq!((failure, report.sum.unfinished), (None, 0));
    assert_eq!(report.irregularities.rejected_publications.total(), 0);
    assert!((8..=11).contains(&report.irregularities.repeated_publications), "{:?}", report.irregularities);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_highest_rate_of_messages_is_searched_with_enough_instances() {
    let _turn = TURN.lock().await;
    let (_gateway, address) = FakeGateway::start(Faults::default()).await;
    let mode = Mode::Maximum(MaximumOptions {
        start_rate: 200.0,
        warm_up: Duration::from_millis(200),
        trial: Duration::from_secs(1),
        duration: Duration::from_secs(1),
        // So strict that a few trials are enough.
        overhead_limit: Duration::from_micros(1_500),
        resolution: 1.0,
        ..MaximumOptions::new(Work::new(Profile::Messages))
    });
    let report = run(&address, mode).await;
    assert_eq!(report.failure, None);
    let Outcome::Maximum(maximum) = report.outcome else {
        panic!("a search reports a maximum");
    };
    assert!(!maximum.trials.is_empty());
    for trial in &maximum.trials {
        let messages = trial.messages.expect("messages are counted in every trial");
        assert_eq!((messages.lost, messages.repeated), (0, 0), "{trial:?}");
        assert_eq!(messages.published, messages.correlated, "{trial:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_can_be_left_waiting_for_messages() {
    let _turn = TURN.lock().await;
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let mode = Mode::Waiting(WaitingOptions { profile: Profile::Messages, ..WaitingOptions::new(250) });
    let report = run(&address, mode).await;
    assert!(report.context.process_ids[0].contains("message-task"), "{:?}", report.context);
    assert_eq!((gateway.creations(), gateway.subscriptions()), (250, 250));
}

async fn run_timers(faults: Faults, change: impl FnOnce(&mut TimersOptions)) -> (TimersReport, Option<String>) {
    let (_gateway, address) = FakeGateway::start(faults).await;
    let mut timers = TimersOptions {
        due_in: Duration::from_millis(2_500),
        warm_up: Duration::from_secs(1),
        limit: Duration::from_secs(2),
        ..TimersOptions::new(Work::new(Profile::Timers), 1_000)
    };
    change(&mut timers);
    let report = run(&address, Mode::Timers(timers)).await;
    let failure = report.failure.clone();
    match report.outcome {
        Outcome::Timers(report) => (*report, failure),
        other => panic!("a run with timers reports {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_fire_while_other_instances_go_on() {
    let _turn = TURN.lock().await;
    let (report, failure) = run_timers(Faults { refuse_every: 9, ..Faults::default() }, |_| ()).await;
    assert_eq!(failure, None);
    assert_eq!(report.created, 1_000);
    let fired = &report.fired;
    assert_eq!((fired.fired, fired.completed, fired.lost, fired.repeated, fired.early), (1_000, 1_000, 0, 0, 0));
    assert_eq!((fired.fired_after.count, fired.completed_after.count), (1_000, 1_000));
    let (first, last) = (fired.first_fired.expect("a first"), fired.last_fired.expect("a last"));
    let completed = fired.last_completed.expect("all completed");
    assert!(-2.0 < first && first <= last && last <= completed && completed < 2_000.0, "{fired:?}");
    // 150 in the second before, but for those that were refused or on their way at its end.
    let before = report.before.measured.process_latency.count;
    assert!((90..=170).contains(&before), "{before}");
    assert!((0.9..=1.2).contains(&report.before.seconds), "{}", report.before.seconds);
    let watched = (report.while_firing.seconds + report.while_completing.seconds) * 1e3;
    assert!(watched >= completed && report.while_firing.seconds * 1e3 >= last, "{report:?}");
    assert_eq!(report.series.iter().map(|second| second.fired).sum::<u64>(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_repeated_timers_fail_the_run() {
    let _turn = TURN.lock().await;
    let faults = Faults { lose_event_every: 100, repeat_event_every: 70, ..Faults::default() };
    let (report, failure) = run_timers(faults, |timers| timers.rate = 20.0).await;
    // Every 700th is lost instead of repeated.
    assert_eq!((report.fired.fired, report.fired.lost, report.fired.repeated), (990, 10, 13));
    assert_eq!((report.fired.last_fired, report.fired.last_completed), (None, None));
    let failure = failure.expect("the run fails");
    assert!(failure.starts_with("Of 1000 timers 990 fired and 990"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_is_refused_with_a_reason() {
    let _turn = TURN.lock().await;
    let (_gateway, address) =
        FakeGateway::start(Faults { creation_takes: Some(Duration::from_millis(20)), ..Faults::default() }).await;
    let timers = TimersOptions {
        due_in: Duration::from_secs(2),
        warm_up: Duration::from_secs(1),
        ..TimersOptions::new(Work::new(Profile::Timers), 1_000)
    };
    let error = osmia_load::run(options(&address, Mode::Timers(timers))).await.expect_err("creating takes 20 s");
    assert!(matches!(error, LoadError::DueTooSoon { wanted: 1_000, .. }), "{error}");
    assert!(error.to_string().contains("--due-in"), "{error}");

    // Of a mix the process that does not complete is named.
    let (_gateway, address) = FakeGateway::start(Faults { refuse_publication_every: 1, ..Faults::default() }).await;
    let mode = at_rate(Work::new(Profile::Mixed), 10.0);
    let error = osmia_load::run(options(&address, mode)).await.expect_err("no message is ever published");
    let text = error.to_string();
    assert!(matches!(error, LoadError::NothingCompletes { .. }), "{text}");
    assert!(text.contains("task-message-task") && text.contains("RESOURCE_EXHAUSTED"), "{text}");
}
