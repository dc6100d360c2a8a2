//! What the tool measures, against a gateway whose behaviour is known, on a machine without other work: `make timing`.

use std::time::Duration;

use load::{Delivery, MaximumOptions, MisbehavingOptions, Misbehaviour, Mode, Outcome, Profile, SurgeOptions, Work};

use crate::events::run_timers;
use crate::fake::{FakeGateway, Faults};
use crate::{LONG, run, run_rate};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn the_time_of_workers_and_timers_is_no_overhead() {
    let mut work = Work::new(Profile::TenTasks);
    work.worker.delay = Duration::from_millis(10);
    let (report, _) = run_rate(Faults::default(), work, 50.0, LONG).await;
    assert_eq!((report.sum.process_latency.count, report.sum.skipped_sends, report.series.len()), (100, 0, 2));
    let difference = report.sum.process_latency.mean - report.sum.overhead.mean;
    assert!((100.0..300.0).contains(&difference), "the workers took {difference} ms");
    assert!(report.sum.activation_from_command.count >= 800);

    let mut work = Work::new(Profile::Parallel { tasks: 4 });
    work.worker.delivery = Delivery::Poll { max_jobs: 8 };
    work.worker.delay = Duration::from_millis(20);
    let (report, _) = run_rate(Faults::default(), work, 50.0, LONG).await;
    // In parallel the longest job counts, not the sum.
    let difference = report.sum.process_latency.mean - report.sum.overhead.mean;
    assert!((20.0..150.0).contains(&difference), "the workers took {difference} ms");

    let mut work = Work::new(Profile::TenTasksTwoTimers);
    work.timer = Duration::from_millis(200);
    work.worker.delay = Duration::from_millis(5);
    let (report, _) = run_rate(Faults::default(), work, 50.0, LONG).await;
    let sum = &report.sum;
    let difference = sum.process_latency.mean - sum.overhead.mean;
    assert!((250.0..500.0).contains(&difference), "the workers and the timer took {difference} ms");
    // One job of ten comes after the timer, which this gateway counts from the completion.
    assert!((80..=120).contains(&sum.activation_after_timer.count), "{:?}", sum.activation_after_timer);
    assert!(sum.activation_after_timer.mean < 100.0, "{:?}", sum.activation_after_timer);
    assert!(sum.activation_from_command.count >= 720, "{:?}", sum.activation_from_command);
    assert!(sum.activation_from_command.mean < 100.0, "{:?}", sum.activation_from_command);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn a_stall_shows_in_the_latencies_of_what_was_intended_meanwhile() {
    let faults = Faults { stall_at: Some((150, Duration::from_millis(500))), ..Faults::default() };
    let mut work = Work::new(Profile::OneTask);
    work.creations_in_flight = 10;
    let (report, _) = run_rate(faults, work, 200.0, LONG).await;
    assert_eq!(report.sum.process_latency.count, 400);
    // A quarter of the instances were intended during the stall and waited for half of it in the mean.
    assert!(report.sum.process_latency.p90 > 250.0, "{:?}", report.sum.process_latency);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn messages_are_measured_where_they_are_correlated() {
    let (report, gateway) = run_rate(Faults::default(), Work::new(Profile::Mixed), 100.0, LONG).await;
    let tasks_and_message = &report.by_process[2].measured;
    // Half of the messages come with the creation and are buffered.
    assert!((15..=25).contains(&tasks_and_message.activation_after_buffered_message.count), "{tasks_and_message:?}");
    assert!((15..=25).contains(&tasks_and_message.activation_after_message.count), "{tasks_and_message:?}");
    assert!(tasks_and_message.overhead.p50 < tasks_and_message.process_latency.p99 - 40.0, "{tasks_and_message:?}");
    assert_eq!(gateway.publications(), 220 / 5 + 2);

    let work = Work { waiting: 300, ..Work::new(Profile::Messages) };
    let (report, gateway) = run_rate(Faults::default(), work, 200.0, LONG).await;
    assert!((360..=400).contains(&report.sum.publication_latency.count), "{}", report.sum.publication_latency.count);
    // Each job comes after a message; activations and completions are counted by when they happen, so that those
    // near the ends of the measured time are in one count alone.
    let activations = report.sum.activation_after_message.count;
    assert!((360..=440).contains(&activations), "{activations}");
    assert!(report.sum.jobs_completed.abs_diff(activations) <= 40, "{activations}, {}", report.sum.jobs_completed);
    assert_eq!((report.waiting, gateway.creations()), (300, 2 + 440 + 300));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn what_is_lost_and_repeated_is_found_in_time() {
    let faults = Faults { lose_event_every: 50, repeat_event_every: 40, ..Faults::default() };
    let (report, _) = run_rate(faults, Work::new(Profile::Messages), 200.0, Duration::from_secs(1)).await;
    let messages = report.messages.expect("messages are counted");
    // Of 442 events every 50th is lost, of the others every 40th (but for two) comes twice.
    assert_eq!((messages.published, messages.lost, messages.correlated), (440, 8, 432));
    assert!((8..=9).contains(&messages.repeated), "{messages:?}");
    assert_eq!(report.sum.unfinished, 8);

    let faults = Faults { lose_event_every: 100, repeat_event_every: 70, ..Faults::default() };
    let (report, failure, _) = run_timers(faults, Duration::from_secs(2), 20.0).await;
    // Every 700th is lost instead of repeated.
    assert_eq!((report.fired.fired, report.fired.lost, report.fired.repeated), (990, 10, 13));
    let failure = failure.expect("the run fails");
    assert!(failure.starts_with("Of 1000 timers 990 fired and 990"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn timers_fire_soon() {
    let (report, _, _) = run_timers(Faults { refuse_every: 9, ..Faults::default() }, LONG, 150.0).await;
    assert!(report.fired.last_completed.is_some_and(|completed| completed < 2_000.0), "{:?}", report.fired);
    // 150 in the second before, but for those that were refused or on their way at its end.
    let before = report.before.measured.process_latency.count;
    assert!((90..=170).contains(&before), "{before}");
    assert!((0.9..=1.2).contains(&report.before.seconds), "{}", report.before.seconds);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn the_highest_rate_is_found() {
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
    assert!((20.0..=115.0).contains(&report.sustainable_rate), "{report:?}");
    assert!(report.confirmation.is_some());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: make timing"]
async fn a_surge_and_a_worker_that_fails_are_measured_by_phase() {
    let (_gateway, address) = FakeGateway::start(Faults::default()).await;
    let surge = SurgeOptions {
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(2),
        surge_duration: Duration::from_secs(1),
        ..SurgeOptions::new(Work::new(Profile::OneTask), 50.0, 5.0)
    };
    let Outcome::Surge(report) = run(&address, Mode::Surge(surge)).await.outcome else {
        panic!("a surge is reported");
    };
    assert!(report.goodput_share > 0.0, "{}", report.goodput_share);
    assert_eq!(report.series.iter().map(|second| second.sent).sum::<u64>(), 475);

    let misbehaving = MisbehavingOptions {
        rate_beside: 20.0,
        warm_up: Duration::from_millis(500),
        duration: Duration::from_secs(2),
        ..MisbehavingOptions::new(Work::new(Profile::OneTask), 50.0, Misbehaviour::Failing)
    };
    let Outcome::Misbehaving(report) = run(&address, Mode::Misbehaving(misbehaving)).await.outcome else {
        panic!("a worker that misbehaves is reported");
    };
    for part in [&report.before, &report.while_there] {
        assert_eq!(part.measured.process_latency.count, 100, "{part:?}");
    }
    let worker = &report.worker;
    assert!((20..=40).contains(&worker.created) && worker.failed > 40 && worker.incidents > 10, "{worker:?}");
    assert!((0.2..0.7).contains(&report.share_of_jobs), "{}", report.share_of_jobs);
}
