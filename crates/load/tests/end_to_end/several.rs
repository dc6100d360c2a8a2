//! Several addresses, of which some are away, and the ledger of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

/// Leads to a gateway, until it is closed with all of its connections.
struct Door {
    address: String,
    accepted: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Door {
    async fn open(at: &str, to: &str) -> Door {
        let listener = TcpListener::bind(at).await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (accepted, to) = (Arc::new(AtomicU64::new(0)), to.to_owned());
        let counter = Arc::clone(&accepted);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let mut server = TcpStream::connect(&to).await.expect("the gateway listens");
                connections.spawn(async move {
                    // It ends when either side does.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Door { address, accepted, _tasks: tasks }
    }
}

fn at(addresses: &[&str], mode: Mode) -> Options {
    Options { addresses: addresses.iter().map(|&address| address.to_owned()).collect(), ..options("", mode) }
}

async fn report_of(options: Options) -> RateReport {
    let report = load::run(options).await.expect("the run succeeds");
    match report.outcome {
        Outcome::Rate(rate) => *rate,
        other => panic!("a run at a fixed rate reports {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_down_stops_nothing() {
    let (gateway, first) = FakeGateway::start(Faults::default()).await;
    let second = gateway.listen().await;
    let mode = at_rate(Work::new(Profile::OneTask), 100.0, LONG);
    let report = report_of(at(&[&first, "127.0.0.1:1", &second], mode)).await;
    assert_eq!((intended(&report.sum), report.sum.unfinished), (200, 0));
    let [one, down, other] = &report.by_address[..] else { panic!("{:?}", report.by_address) };
    assert_eq!((down.acknowledged, down.refused, down.unknown), (0, 0, 0), "it is known to be away");
    let acknowledged = report.sum.created + report.sum.jobs_completed;
    assert!(one.acknowledged + other.acknowledged >= acknowledged, "{:?}", report.by_address);
    assert!(one.acknowledged > 0 && other.acknowledged > 0, "{:?}", report.by_address);
    let longest = report.silence.longest.expect("something was acknowledged");
    assert!(longest.milliseconds > 0.0 && longest.partition.is_none(), "{longest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_comes_back_is_used_again() {
    let (_gateway, first) = FakeGateway::start(Faults::default()).await;
    let door = Door::open("127.0.0.1:0", &first).await;
    let second = door.address.clone();
    let mut work = Work::new(Profile::OneTask);
    work.worker.delay = Duration::from_millis(20);
    let mode = Mode::Rate(RateOptions {
        work,
        rate: 100.0,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(6),
        drain_limit: SHORT,
    });
    let run = tokio::spawn(report_of(at(&[&first, &second], mode)));
    // While the load comes: each side has a stream, and connections for creations.
    while door.accepted.load(Ordering::Relaxed) < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(door);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let door = Door::open(&second, &first).await;
    let report = run.await.expect("it does not panic");
    assert!(door.accepted.load(Ordering::Relaxed) >= 2, "creations and workers come back");
    let lost = report.irregularities.unknown_creations.total() + report.irregularities.unknown_completions.total();
    let counted: u64 = report.by_address.iter().map(|address| address.unknown).sum();
    assert!(counted <= lost, "{:?} {:?}", report.by_address, report.irregularities);
    assert_eq!(report.irregularities.rejected_creations.total(), 0, "{:?}", report.irregularities);
    assert_eq!(report.irregularities.completed_twice, 0);
    // Meanwhile the other address took everything.
    let sent = report.sum.creation_latency.count + report.irregularities.unknown_creations.total();
    let creations = sent + report.sum.skipped_sends;
    assert_eq!(creations, 600, "{:?}", report.irregularities);
    assert!(report.sum.created > 300, "{:?}", report.sum);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_names_everything_that_the_server_was_sent() {
    let (gateway, address) = FakeGateway::start(Faults { refuse_every: 7, ..Faults::default() }).await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ledger");
    let mode = at_rate(Work::new(Profile::TenTasks), 50.0, LONG);
    let with_ledger = Options { ledger: Some(path.clone()), ..options(&address, mode) };
    let report = load::run(with_ledger.clone()).await.expect("the run succeeds");
    let waits = report.ledger.expect("there is a ledger");
    let text = std::fs::read_to_string(&path).expect("it was written");
    let count = |sign: &str| text.lines().filter(|line| line.split(' ').nth(1) == Some(sign)).count() as u64;
    assert!(text.starts_with("osmia-load-ledger 1\njob-type osmia-load-"), "{}", &text[..100]);
    assert_eq!(count("+"), gateway.creations());
    assert_eq!(count("("), gateway.jobs());
    assert_eq!(waits.count, count("+") + count("("));
    assert_eq!((count("=") + count("-"), count("?")), (count("+"), 0));
    assert_eq!((count(")"), count("!"), count("~")), (count("("), 0, 0));
    assert!(count("-") >= count("+") / 7, "{} refused", count("-"));
    let error = load::run(with_ledger).await.expect_err("a ledger has one run").to_string();
    assert!(error.contains("exists"), "{error}");
}
