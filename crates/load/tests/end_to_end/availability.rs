//! How long new instances take to be found.

use std::time::Duration;

use load::{AvailabilityOptions, AvailabilityReport, Database, History, Mode, Outcome, Profile, Report, Work};

use crate::fake::search::{FakeSearch, SearchFaults};
use crate::fake::{FakeGateway, Faults};
use crate::{LONG, at_rate, options};

async fn run(profile: Profile, database: Database, faults: SearchFaults, wanted_for: Duration) -> (Report, FakeSearch) {
    let (gateway, address) = FakeGateway::start(Faults::default()).await;
    let (search, search_address) = FakeSearch::start(&gateway, faults).await;
    let availability = AvailabilityOptions {
        samples_per_second: 40.0,
        give_up_after: wanted_for,
        ..AvailabilityOptions::new(database, vec![search_address])
    };
    let mode = at_rate(Work::new(profile), 100.0, LONG);
    let options = load::Options { availability: Some(availability), ..options(&address, mode) };
    (load::run(options).await.expect("the run succeeds"), search)
}

fn availability(report: &Report) -> &AvailabilityReport {
    let Outcome::Rate(rate) = &report.outcome else { panic!("a run at a fixed rate") };
    rate.availability.as_ref().expect("it was asked for")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_is_searched_until_it_is_found_by_key_and_by_filter() {
    for database in [Database::ReadModel, Database::Elasticsearch] {
        let faults = SearchFaults { in_vain: 3, ..SearchFaults::default() };
        let (report, search) = run(Profile::OneTask, database, faults, LONG).await;
        let found = availability(&report);
        assert_eq!((found.lost, found.failures.total()), (0, 0), "{found:?}");
        let sample = found.sum.by_key.count;
        assert_eq!(found.sum.by_filter.count, sample);
        assert_eq!(search.wanted() as u64, 2 * sample, "each is searched by its key and by its tag");
        // Of 200 instances a third, by a rule that chooses the same ones each time, if the machine left time to send them.
        let Outcome::Rate(rate) = &report.outcome else { panic!("a run at a fixed rate") };
        assert!((40..=100).contains(&(sample + found.left_out + rate.sum.skipped_sends)), "{found:?}");
        // Four searches with three pauses.
        assert!(sample == 0 || found.sum.by_key.min >= 3.0, "{found:?}");
        assert!(report.to_string().contains("found by filter"), "{report}");
        assert!(report.verdict().is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_process_of_a_mix_is_searched() {
    let (report, _) = run(Profile::Mixed, Database::ReadModel, SearchFaults::default(), LONG).await;
    let found = availability(&report);
    assert_eq!(found.by_process.len(), 3);
    let sum: u64 = found.by_process.iter().map(|part| part.found.by_key.count).sum();
    assert_eq!(sum, found.sum.by_key.count);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_never_found_makes_the_run_fail() {
    let faults = SearchFaults { lose_every: 2, ..SearchFaults::default() };
    let (report, _) = run(Profile::OneTask, Database::ReadModel, faults, Duration::from_millis(50)).await;
    let found = availability(&report);
    assert_eq!(found.lost > 0, report.verdict().is_err(), "{found:?}");
    assert!(found.lost > 0 || found.left_out > 0, "{found:?}");
    let says = report.to_string().contains("were not found in the read model at 127.0.0.1:");
    assert_eq!(says, found.lost > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_finds_another_instance_has_found_nothing() {
    let faults = SearchFaults { confuse: true, ..SearchFaults::default() };
    let (report, _) = run(Profile::OneTask, Database::Elasticsearch, faults, Duration::from_millis(1)).await;
    let found = availability(&report);
    assert_eq!(found.sum.by_key.count, 0);
    assert!(found.lost == 0 || found.failures.to_string().contains("DATA_LOSS (a search for "), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn availability_is_refused_where_nothing_is_created() {
    let wanted = AvailabilityOptions::new(Database::ReadModel, vec!["127.0.0.1:1".to_owned()]);
    let refusal = |mode: Mode, availability: AvailabilityOptions| {
        let options = load::Options { availability: Some(availability), ..options("127.0.0.1:1", mode) };
        options.check().expect_err("must be refused").to_string()
    };
    let messages = || at_rate(Work::new(Profile::Messages), 1.0, LONG);
    assert!(refusal(messages(), wanted.clone()).starts_with("The measurement of availability is wanted, but"));
    let none = AvailabilityOptions { samples_per_second: 0.0, ..wanted };
    let refused = refusal(at_rate(Work::new(Profile::OneTask), 1.0, LONG), none);
    assert!(refused.starts_with("The size of the sample is 0, but"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_appended_and_compared_with_those_of_the_same_settings() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history");
    let (_gateway, address) = FakeGateway::start(Faults::default()).await;
    let measure = async |rate: f64| {
        let mode = at_rate(Work::new(Profile::OneTask), rate, LONG);
        load::run(options(&address, mode)).await.expect("the run succeeds")
    };
    let append = |report: &Report, commit: &str| {
        let history = History::open(file.clone()).expect("it can be read");
        history.append(report, Some(commit.to_owned())).expect("it can be written")
    };
    let (slow, fast) = (measure(10.0).await, measure(20.0).await);
    assert_eq!(append(&slow, "a").to_string(), format!("{:<36} the first result of these settings\n", "history"));
    assert_eq!(append(&fast, "b").results, 0, "at another rate");
    for number in 0..12 {
        append(&slow, &format!("c{number}"));
    }
    let compared = append(&slow, "d");
    assert_eq!((compared.results, compared.commits), (10, Some(("c2".to_owned(), "c11".to_owned()))));
    let completed = compared.figures.iter().find(|figure| figure.name == "completed_per_second").expect("it is one");
    assert_eq!((completed.least, completed.median, completed.most), (completed.now, completed.now, completed.now));

    // What was cut by a crash is replaced; what is no result is refused by its line.
    let text = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, format!("{text}{{\"started")).expect("written");
    assert_eq!(append(&slow, "e").results, 10);
    assert_eq!(std::fs::read_to_string(&file).expect("text").lines().count(), 16);
    std::fs::write(&file, format!("{text}other\n")).expect("written");
    let refused = History::open(file.clone()).expect_err("no result").to_string();
    assert!(refused.contains("history cannot be used: line 16 is no result"), "{refused}");
    let refused = History::open(directory.path().to_owned()).expect_err("a directory").to_string();
    assert!(refused.contains("cannot be used"), "{refused}");
}
