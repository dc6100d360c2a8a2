//! What a server does that has too much to do, or workers that misbehave, against a gateway in this process whose behaviour
//! is known.

use std::time::Duration;

use load::{
    DrainBeside, DrainOptions, MisbehavingOptions, MisbehavingReport, Misbehaviour, Mode, Outcome, Phase, PhaseReport,
    Profile, SurgeOptions, SurgeReport, WaitingOptions, Work,
};

use crate::fake::{FakeGateway, Faults};
use crate::{LONG, intended, options, run};

fn surge(profile: Profile) -> SurgeOptions {
    SurgeOptions {
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(2),
        surge_duration: Duration::from_secs(1),
        drain_limit: LONG,
        ..SurgeOptions::new(Work::new(profile), 50.0, 5.0)
    }
}

async fn run_surge(faults: Faults, surge: SurgeOptions) -> (SurgeReport, Option<String>) {
    let (_gateway, address) = FakeGateway::start(faults).await;
    let report = run(&address, Mode::Surge(surge)).await;
    let failure = report.failure.clone();
    match report.outcome {
        Outcome::Surge(report) => (*report, failure),
        other => panic!("a surge reports {other:?}"),
    }
}

fn phase(report: &SurgeReport, phase: Phase) -> &PhaseReport {
    report.phases.iter().find(|part| part.phase == phase).expect("every phase is reported")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surge_that_the_server_can_take_is_accepted_whole() {
    let (report, failure) = run_surge(Faults::default(), surge(Profile::TenTasks)).await;
    assert_eq!(failure, None);
    let counts: Vec<u64> = report.phases.iter().map(|part| part.sent).collect();
    assert_eq!(counts, [35, 70, 50, 250, 70]);
    assert_eq!((report.sent, report.accepted, report.completed), (475, 475, 475));
    assert_eq!((report.unfinished, report.unanswered, report.completed_though_failed), (0, 0, 0));
    let surge = phase(&report, Phase::Surge);
    assert_eq!((surge.process_latency.count, surge.acceptance_latency.count), (250, 250));
    // The time from the intended moment is never less than that from the sending.
    assert!(surge.process_latency.p50 >= surge.process_latency_since_sent.p50, "{surge:?}");
    assert!(surge.server.is_some() && surge.own.is_some());
    let memory = report.memory.expect("the process is known");
    assert!(memory.start > 0 && memory.surge_maximum >= memory.surge_start && memory.end > 0, "{memory:?}");
    assert_eq!(report.series.len(), 7);
    assert!(report.series.iter().map(|second| second.sent).sum::<u64>() <= 475);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_counted_and_not_sent_again() {
    let faults = Faults { refuse_sends_every: 4, ..Faults::default() };
    let (report, failure) = run_surge(faults, surge(Profile::OneTask)).await;
    assert_eq!(failure, None);
    let refused: u64 = report.phases.iter().map(|part| part.refused.total()).sum();
    assert_eq!((report.sent, report.accepted + refused), (475, 475));
    assert_eq!(refused, 475 / 4);
    assert_eq!(report.completed, report.accepted);
    let surge = phase(&report, Phase::Surge);
    // Every fourth of those from number 155 to 404; the first of them is number 155, the fourth of its four.
    assert_eq!(surge.refused.total(), 63, "{:?}", surge.refused);
    assert_eq!(surge.refusal_latency.count, surge.refused.total());
    let reasons: Vec<String> = report.phases.iter().map(|part| part.refused.to_string()).collect();
    assert!(reasons.iter().all(|reason| reason.contains("RESOURCE_EXHAUSTED")), "{reasons:?}");
    // A sentence is read occasionally.
    assert!(reasons.iter().any(|reason| reason.contains("(every nth is refused)")), "{reasons:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_room_is_held_back() {
    let faults = Faults { creation_takes: Some(Duration::from_millis(4)), ..Faults::default() };
    let options = SurgeOptions { in_flight: 20, rate: 50.0, factor: 40.0, ..surge(Profile::OneTask) };
    let (report, failure) = run_surge(faults, options).await;
    assert_eq!(failure, None);
    let surge = phase(&report, Phase::Surge);
    // Of 2,000 a second the server takes 250 at most.
    assert_eq!(surge.sent + surge.held_back, 2_000);
    assert!(surge.held_back > 1_000, "{surge:?}");
    assert_eq!(report.accepted, report.sent);
    assert!(report.series.iter().all(|second| second.unanswered <= 24), "{:?}", report.series);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_lost_fails_the_run() {
    let faults = Faults { lose_every: 20, ..Faults::default() };
    let options = SurgeOptions { drain_limit: Duration::from_secs(3), ..surge(Profile::OneTask) };
    let (report, failure) = run_surge(faults, options).await;
    assert_eq!(report.completed + report.unfinished, report.accepted);
    assert!(report.unfinished >= report.accepted / 20, "{}", report.unfinished);
    let failure = failure.expect("the run fails");
    assert!(failure.starts_with(&format!("Of 475 accepted instances {} did not", report.unfinished)), "{failure}");
}

#[tokio::test]
async fn a_surge_needs_sensible_options() {
    let refused = |change: fn(&mut SurgeOptions)| {
        let mut surge = surge(Profile::OneTask);
        change(&mut surge);
        options("127.0.0.1:26500", Mode::Surge(surge)).check().expect_err("must be refused").to_string()
    };
    assert!(refused(|surge| surge.factor = 0.5).contains("The factor of the surge is 0.5"));
    assert!(refused(|surge| surge.normal_share = 0.0).contains("The normal share is 0"));
    assert!(refused(|surge| surge.work.profile = Profile::Messages).contains("one-task or ten-tasks"));
    assert!(refused(|surge| surge.work.payload_bytes = 20_000).contains("The payload is 20000"));
    assert!(refused(|surge| (surge.rate, surge.factor) = (1_000_000.0, 1_000.0)).contains("500 million"));
}

async fn run_misbehaving(behaviour: Misbehaviour) -> (MisbehavingReport, FakeGateway) {
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let misbehaving = MisbehavingOptions {
        rate_beside: 20.0,
        warm_up: Duration::from_millis(500),
        duration: Duration::from_secs(2),
        ..MisbehavingOptions::new(Work::new(Profile::OneTask), 50.0, behaviour)
    };
    let report = run(&address, Mode::Misbehaving(misbehaving)).await;
    assert_eq!(report.context.process_ids.len(), 2);
    let failure = report.failure.clone();
    match report.outcome {
        Outcome::Misbehaving(report) => {
            let says_nothing = report.worker.received == 0 && report.worker.created > 0;
            assert_eq!(failure.is_some(), says_nothing, "{failure:?}");
            (*report, gateway)
        }
        other => panic!("a worker that misbehaves reports {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_fails_every_job_is_measured_beside_others() {
    let (report, gateway) = run_misbehaving(Misbehaviour::Failing).await;
    for part in [&report.before, &report.while_there] {
        assert!(intended(&part.measured) <= 100, "{part:?}");
    }
    let worker = &report.worker;
    // What was on its way at the end is not counted.
    assert!(worker.created <= 40 && worker.failed <= 120 && worker.failed <= worker.received, "{worker:?}");
    assert!(worker.incidents <= gateway.incidents(), "{worker:?}");
    assert_eq!((worker.rejected_failures.total(), worker.failure_latency.count), (0, worker.failed));
    assert!((0.0..=1.0).contains(&report.share_of_jobs), "{}", report.share_of_jobs);
    assert!(report.series.len() >= 4, "{:?}", report.series);
    assert!(report.server_before.is_some() && report.server_while_there.is_some() && report.own.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_ignores_every_job_is_measured_beside_others() {
    let (report, gateway) = run_misbehaving(Misbehaviour::Ignoring).await;
    let worker = &report.worker;
    // This gateway hands a job out once.
    assert!(worker.received <= 40, "{worker:?}");
    assert_eq!((worker.failed, worker.incidents, gateway.incidents()), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_drained_beside_other_instances() {
    let (_gateway, address) = FakeGateway::start(Faults::default()).await;
    let report = run(&address, Mode::Waiting(WaitingOptions::new(1_000))).await;
    let job_type = report.context.job_type.expect("the job type is reported");
    let drain = DrainOptions {
        silence: LONG,
        jobs: Some(1_000),
        beside: Some(DrainBeside {
            work: Work::new(Profile::OneTask),
            rate: 50.0,
            warm_up: Duration::from_millis(500),
            duration: Duration::from_secs(1),
        }),
        ..DrainOptions::new(job_type)
    };
    let Outcome::Drain(drained) = run(&address, Mode::Drain(drain)).await.outcome else {
        panic!("a drained backlog is reported");
    };
    assert_eq!((drained.received, drained.completed, drained.duplicate_jobs), (1_000, 1_000, 0));
    assert_eq!(drained.series.iter().sum::<u64>(), 1_000);
    assert_eq!(drained.slowest_second.is_some(), drained.seconds >= 1.0);
    let beside = drained.beside.expect("what ran beside is reported");
    assert_eq!(intended(&beside.before.measured), 50);
    assert!(beside.while_draining.seconds >= drained.seconds, "{beside:?}");
}

#[tokio::test]
async fn what_runs_beside_needs_a_schedule_of_creations() {
    let work = || Work::new(Profile::Messages);
    let misbehaving = Mode::Misbehaving(MisbehavingOptions::new(work(), 10.0, Misbehaviour::Failing));
    let refused = |mode| options("127.0.0.1:26500", mode).check().expect_err("must be refused").to_string();
    assert!(refused(misbehaving).contains("The profile is messages"));
    let beside = DrainBeside { work: work(), rate: 10.0, warm_up: Duration::ZERO, duration: Duration::from_secs(1) };
    let drain = DrainOptions { beside: Some(beside), ..DrainOptions::new("type") };
    assert!(refused(Mode::Drain(drain)).contains("The profile is messages"));
}
