//! What is refused, and what is changed.

use super::*;

#[test]
fn connections_and_workers_are_spread_evenly() {
    let mode = Mode::Rate(RateOptions::new(Work::new(Profile::OneTask), 10.0));
    let addresses = ["a:1", "b:1", "c:1"].map(str::to_owned).to_vec();
    let options = Options { addresses, connections: 4, ..Options::new("", mode) }.spread();
    let Mode::Rate(rate) = &options.mode else { panic!("a rate stays one") };
    assert_eq!((options.connections, rate.work.worker.workers), (6, 3));
    options.check().expect("it can run");
}

#[test]
fn a_ledger_has_no_messages() {
    let with = |mode| Options { ledger: Some("ledger".into()), ..Options::new("127.0.0.1:26500", mode) }.check();
    with(Mode::Maximum(MaximumOptions::new(Work::new(Profile::TenTasks)))).expect("it can run");
    for mode in [Mode::Rate(RateOptions::new(Work::new(Profile::Mixed), 10.0)), Mode::Waiting(WaitingOptions::new(1))] {
        let error = with(mode).expect_err("must be refused").to_string();
        assert!(error.starts_with("The ledger is wanted, but must be left out"), "{error}");
    }
}

#[test]
fn senseless_options_are_refused_by_name() {
    let mut rate = RateOptions::new(Work::new(Profile::OneTask), f64::NAN);
    let refused = |mode: &RateOptions| {
        Options::new("127.0.0.1:26500", Mode::Rate(mode.clone())).check().expect_err("must be refused").to_string()
    };
    assert!(refused(&rate).starts_with("The rate is NaN, but must be from 0.01"));
    rate.rate = 10.0;
    rate.work.worker.delay = Duration::from_secs(61);
    assert!(refused(&rate).contains("The delay of workers is 61s"));
    rate.work.payload_bytes = 3;
    assert!(refused(&rate).contains("The payload is 3"));
}

fn refusal(mode: Mode) -> String {
    Options::new("127.0.0.1:26500", mode).check().expect_err("must be refused").to_string()
}

#[test]
fn options_that_contradict_the_profile_are_refused() {
    let with = |profile, change: fn(&mut Work)| {
        let mut work = Work::new(profile);
        change(&mut work);
        refusal(Mode::Rate(RateOptions::new(work, 10.0)))
    };
    assert!(with(Profile::OneTask, |work| work.waiting = 5).contains("The number of waiting instances is 5"));
    assert!(
        with(Profile::Mixed, |work| work.message_ttl = Duration::ZERO).contains("The time to live of messages is 0ns")
    );
    assert!(
        with(Profile::TenTasksTwoTimers, |work| work.timer = Duration::ZERO).contains("The time of the timer is 0ns")
    );
    assert!(with(Profile::Timers, |_| ()).contains("timers"));
    assert!(refusal(Mode::Maximum(MaximumOptions::new(Work::new(Profile::Timers)))).contains("The profile is timers"));
    let waiting = WaitingOptions { profile: Profile::Mixed, ..WaitingOptions::new(1) };
    assert!(refusal(Mode::Waiting(waiting)).contains("The profile is mixed"));
    let timers = TimersOptions::new(Work::new(Profile::Timers), 1);
    let hurried = TimersOptions { due_in: timers.warm_up, ..timers.clone() };
    assert!(refusal(Mode::Timers(hurried)).contains("The time until the timers are due is 5s"));
    assert!(refusal(Mode::Timers(TimersOptions { timers: 0, ..timers.clone() })).contains("The number of timers is 0"));
    assert!(Options::new("127.0.0.1:26500", Mode::Timers(timers)).check().is_ok());
}
