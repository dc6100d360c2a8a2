//! The profiles with timers and messages against a gateway in this process whose behaviour is known.

use std::time::Duration;

use load::{
    LoadError, MaximumOptions, MessageCounts, Mode, Options, Outcome, Profile, RateReport, Report, TimersOptions,
    TimersReport, WaitingOptions, Work,
};

use crate::fake::{FakeGateway, Faults};
use crate::{LONG, SHORT, at_rate, intended, options, run};

fn rate_report(report: Report) -> RateReport {
    match report.outcome {
        Outcome::Rate(report) => *report,
        other => panic!("a run at a fixed rate reports {other:?}"),
    }
}

/// What the run reports, why it failed if it did, and the gateway.
async fn run_rate(
    faults: Faults,
    work: Work,
    rate: f64,
    drain_limit: Duration,
) -> (RateReport, Option<String>, FakeGateway) {
    let (gateway, address) = FakeGateway::start(faults).await;
    let report = run(&address, at_rate(work, rate, drain_limit)).await;
    let failure = report.failure.clone();
    (rate_report(report), failure, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_duration_of_a_timer_is_no_overhead() {
    let mut work = Work::new(Profile::TenTasksTwoTimers);
    work.timer = Duration::from_millis(200);
    work.worker.delay = Duration::from_millis(5);
    let (report, failure, _) = run_rate(Faults::default(), work, 50.0, LONG).await;
    assert_eq!(failure, None);
    let sum = &report.sum;
    assert_eq!((intended(sum), sum.unfinished), (100, 0));
    if sum.process_latency.count > 0 {
        assert!(sum.process_latency.min >= 250.0, "{:?}", sum.process_latency);
        let difference = sum.process_latency.mean - sum.overhead.mean;
        assert!(difference >= 250.0, "the workers and the timer took {difference} ms");
    }
    assert_eq!((report.messages, report.by_process.len()), (None, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mix_is_reported_by_process_and_in_sum() {
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let report = run(&address, at_rate(Work::new(Profile::Mixed), 100.0, LONG)).await;
    assert_eq!(report.failure, None);
    assert_eq!(report.context.process_ids.len(), 3);
    let text = report.to_string();
    for process in ["one-task ", "ten-tasks-two-timers ", "task-message-task "] {
        assert!(text.lines().any(|line| line.starts_with(process)), "{process} has a section in\n{text}");
    }
    let report = rate_report(report);
    let shares: Vec<(&str, u64)> =
        report.by_process.iter().map(|part| (part.process.as_str(), intended(&part.measured))).collect();
    assert_eq!(shares, [("one-task", 120), ("ten-tasks-two-timers", 40), ("task-message-task", 40)]);
    assert_eq!((intended(&report.sum), report.sum.unfinished), (200, 0));
    assert_eq!((report.irregularities.unknown_jobs, report.irregularities.unexpected_jobs), (0, 0));
    let published = report.messages.expect("messages are counted").published;
    assert!(published <= 220 / 5, "{published}");
    assert_eq!(report.messages, Some(MessageCounts { published, correlated: published, lost: 0, repeated: 0 }));
    // The instances of the test before the measurement have messages as well.
    assert!(gateway.publications() >= published + 2, "{}", gateway.publications());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_reaches_an_instance_that_waits() {
    let work = Work { waiting: 300, ..Work::new(Profile::Messages) };
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let report = run(&address, at_rate(work, 200.0, LONG)).await;
    assert_eq!(report.failure, None);
    let report = rate_report(report);
    assert_eq!((intended(&report.sum), report.sum.unfinished), (400, 0));
    let published = report.messages.expect("messages are counted").published;
    assert_eq!(report.messages, Some(MessageCounts { published, correlated: published, lost: 0, repeated: 0 }));
    // Those that were asked for still wait.
    assert_eq!(report.waiting as u64 + published, 300 + 440);
    // Two more, or more attempts, are for the test before the measurement.
    assert!(gateway.creations() >= 2 + 440 + 300, "{}", gateway.creations());
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_repeated_correlations_fail_the_run() {
    let faults = Faults { lose_event_every: 50, repeat_event_every: 40, ..Faults::default() };
    let work = Work::new(Profile::Messages);
    let (report, failure, gateway) = run_rate(faults, work, 200.0, Duration::from_secs(1)).await;
    let messages = report.messages.expect("messages are counted");
    assert_eq!(messages.published, messages.correlated + messages.lost);
    // Every 50th event is lost, of the others every 40th comes twice. What is not acknowledged in time is neither.
    let events = gateway.events();
    let too_late = events.saturating_sub(messages.published);
    assert!(messages.lost + too_late >= events / 50, "{messages:?} of {events}");
    assert!(messages.repeated <= events / 40, "{messages:?} of {events}");
    assert_eq!(failure.is_some(), messages.lost + messages.repeated > 0, "{failure:?}");
    if let Some(failure) = failure {
        let sentence = format!("Of {} published messages {} were not correlated", messages.published, messages.lost);
        assert!(failure.starts_with(&sentence), "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_publications_leave_the_instance_waiting() {
    let faults = Faults { refuse_publication_every: 10, ..Faults::default() };
    let (report, failure, gateway) = run_rate(faults, Work::new(Profile::Messages), 200.0, LONG).await;
    assert_eq!(failure, None);
    let refused = report.irregularities.rejected_publications.total();
    // One may have been refused in the test before the measurement.
    assert!((gateway.publications() / 10).abs_diff(refused) <= 1, "{refused} of {}", gateway.publications());
    let messages = report.messages.expect("messages are counted");
    assert_eq!((messages.published, messages.lost, messages.repeated), (messages.correlated, 0, 0));
    assert_eq!((report.waiting as u64, report.sum.unfinished), (440 - messages.correlated, 0));

    // In a mix an instance would wait for ever, so the publication is sent again.
    let (report, failure, gateway) = run_rate(faults, Work::new(Profile::Mixed), 200.0, LONG).await;
    assert_eq!((failure, report.sum.unfinished), (None, 0));
    assert_eq!(report.irregularities.rejected_publications.total(), 0);
    let repeated = report.irregularities.repeated_publications;
    assert!((gateway.publications() / 10).abs_diff(repeated) <= 2, "{repeated} of {}", gateway.publications());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_highest_rate_of_messages_is_searched_with_enough_instances() {
    let (_gateway, address) = FakeGateway::start(Faults::default()).await;
    let mode = Mode::Maximum(MaximumOptions {
        start_rate: 200.0,
        warm_up: Duration::from_millis(200),
        trial: Duration::from_secs(1),
        duration: Duration::from_secs(1),
        // So strict that a few trials are enough.
        overhead_limit: Duration::from_micros(1_500),
        resolution: 1.0,
        drain_limit: LONG,
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
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let mode = Mode::Waiting(WaitingOptions { profile: Profile::Messages, ..WaitingOptions::new(250) });
    let report = run(&address, mode).await;
    assert!(report.context.process_ids[0].contains("message-task"), "{:?}", report.context);
    assert_eq!((gateway.creations(), gateway.subscriptions()), (250, 250));
}

/// A thousand timers, which come due late enough for this machine to create their instances before.
pub async fn run_timers(faults: Faults, limit: Duration, rate: f64) -> (TimersReport, Option<String>, FakeGateway) {
    let mut due_in = Duration::from_millis(2_500);
    loop {
        let (gateway, address) = FakeGateway::start(faults).await;
        let timers = TimersOptions {
            due_in,
            warm_up: Duration::from_secs(1),
            limit,
            rate,
            ..TimersOptions::new(Work::new(Profile::Timers), 1_000)
        };
        let report = match load::run(options(&address, Mode::Timers(timers))).await {
            Err(LoadError::DueTooSoon { .. }) if due_in < 2 * LONG => {
                due_in *= 3;
                continue;
            }
            report => report.expect("the run succeeds"),
        };
        let failure = report.failure.clone();
        match report.outcome {
            Outcome::Timers(report) => return (*report, failure, gateway),
            other => panic!("a run with timers reports {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_fire_while_other_instances_go_on() {
    let faults = Faults { refuse_every: 9, ..Faults::default() };
    let (report, failure, _) = run_timers(faults, LONG, 150.0).await;
    assert_eq!(failure, None);
    assert_eq!(report.created, 1_000);
    let fired = &report.fired;
    assert_eq!((fired.fired, fired.completed, fired.lost, fired.repeated, fired.early), (1_000, 1_000, 0, 0, 0));
    assert_eq!((fired.fired_after.count, fired.completed_after.count), (1_000, 1_000));
    let (first, last) = (fired.first_fired.expect("a first"), fired.last_fired.expect("a last"));
    let completed = fired.last_completed.expect("all completed");
    assert!(-2.0 < first && first <= last && last <= completed, "{fired:?}");
    let watched = (report.while_firing.seconds + report.while_completing.seconds) * 1e3;
    assert!(watched >= completed && report.while_firing.seconds * 1e3 >= last, "{report:?}");
    assert_eq!(report.series.iter().map(|second| second.fired).sum::<u64>(), 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_repeated_timers_fail_the_run() {
    let faults = Faults { lose_event_every: 100, repeat_event_every: 70, ..Faults::default() };
    let (report, failure, gateway) = run_timers(faults, Duration::from_secs(2), 20.0).await;
    let fired = &report.fired;
    assert_eq!(fired.fired + fired.lost, 1_000);
    // Every 700th is lost instead of repeated. What is too late for the run is lost for it.
    let events = gateway.events();
    assert!(fired.lost >= events / 100, "{fired:?} of {events}");
    assert!(fired.repeated <= events / 70 - events / 700, "{fired:?} of {events}");
    assert_eq!((fired.last_fired, fired.last_completed), (None, None));
    let failure = failure.expect("the run fails");
    assert!(failure.starts_with(&format!("Of 1000 timers {} fired and", fired.fired)), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_is_refused_with_a_reason() {
    let (_gateway, address) =
        FakeGateway::start(Faults { creation_takes: Some(Duration::from_millis(20)), ..Faults::default() }).await;
    let timers = TimersOptions {
        due_in: Duration::from_secs(2),
        warm_up: Duration::from_secs(1),
        ..TimersOptions::new(Work::new(Profile::Timers), 1_000)
    };
    let error = load::run(options(&address, Mode::Timers(timers))).await.expect_err("creating takes 20 s");
    assert!(matches!(error, LoadError::DueTooSoon { wanted: 1_000, .. }), "{error}");
    assert!(error.to_string().contains("Give more time until they are due"), "{error}");

    // Of a mix the process that does not complete is named.
    let (_gateway, address) = FakeGateway::start(Faults { refuse_publication_every: 1, ..Faults::default() }).await;
    let mode = at_rate(Work::new(Profile::Mixed), 10.0, SHORT);
    let short = Options { settle_limit: 5 * SHORT, ..options(&address, mode) };
    let error = load::run(short).await.expect_err("no message is ever published");
    let text = error.to_string();
    assert!(matches!(error, LoadError::NothingCompletes { .. }), "{text}");
    assert!(text.contains("task-message-task") && text.contains("RESOURCE_EXHAUSTED"), "{text}");
}
