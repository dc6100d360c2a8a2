//! What a node that is alone in its groups costs: proposals per second, CPU per proposal, time per round, time to start.
//! Prints figures; beside them, those of a bare file with the same writes and syncs in the same minute.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use replication::{GroupId, LogOptions, LogStore, MemoryLog, Message, NodeId, Options, RaftEngineLog, Replicas};

const ME: NodeId = NodeId(1);
const PAYLOAD_BYTES: usize = 1024;
const RUN: Duration = Duration::from_secs(2);

/// CPU time of this thread.
fn cpu() -> Duration {
    let schedule = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedule.split_whitespace().next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

struct Run {
    name: String,
    rounds: Vec<Duration>,
    proposals: usize,
    elapsed: Duration,
    cpu: Duration,
}

fn measure(name: String, proposals_per_round: usize, mut round: impl FnMut()) {
    let (start, cpu_start) = (Instant::now(), cpu());
    let mut rounds = Vec::new();
    while start.elapsed() < RUN {
        let round_start = Instant::now();
        round();
        rounds.push(round_start.elapsed());
    }
    let (elapsed, cpu) = (start.elapsed(), cpu() - cpu_start);
    let proposals = rounds.len() * proposals_per_round;
    print(Run { name, rounds, proposals, elapsed, cpu });
}

fn print(mut run: Run) {
    run.rounds.sort_unstable();
    let percentile = |hundredth: usize| run.rounds[(run.rounds.len() - 1) * hundredth / 100].as_secs_f64() * 1e3;
    let seconds = run.elapsed.as_secs_f64();
    println!(
        "{:<44} {:>8.0} rounds/s {:>9.0} proposals/s  round p50 {:>6.3} ms  p99 {:>6.3} ms  CPU {:>6.2} us/proposal",
        run.name,
        run.rounds.len() as f64 / seconds,
        run.proposals as f64 / seconds,
        percentile(50),
        percentile(99),
        run.cpu.as_secs_f64() * 1e6 / run.proposals as f64,
    );
}

fn fresh(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("the old run can be removed");
    }
    directory
}

fn open<L: LogStore>(log: Arc<L>, groups: u32, applied: u64) -> Replicas<L> {
    let mut replicas = Replicas::open(ME, log, Options::default()).expect("the options are fine");
    for group in 0..groups {
        replicas.create_group(GroupId(group), &[ME], applied).expect("the group opens");
    }
    let mut outbox: Vec<Message> = Vec::new();
    while replicas.round(&mut outbox).expect("the log works").more {}
    replicas
}

fn drive<L: LogStore>(name: &str, log: Arc<L>, groups: u32, proposals_per_group: usize) {
    let mut replicas = open(log, groups, 0);
    let payload = bytes::Bytes::from(vec![0x61; PAYLOAD_BYTES]);
    let mut outbox: Vec<Message> = Vec::new();
    let total = groups as usize * proposals_per_group;
    let mut since_compaction = 0;
    measure(format!("{name}, {groups} groups x {proposals_per_group}"), total, || {
        for group in 0..groups {
            for _ in 0..proposals_per_group {
                replicas.propose(GroupId(group), payload.clone()).expect("it leads");
            }
        }
        let round = replicas.round(&mut outbox).expect("the log works");
        let handed_out: usize = round.committed.iter().map(|committed| committed.entries.len()).sum();
        assert_eq!(handed_out, total, "everything is committed in the round that proposed it");
        since_compaction += total;
        if since_compaction > 50_000 {
            since_compaction = 0;
            for committed in round.committed {
                replicas.applied(committed.group, committed.up_to).expect("it was handed out");
                replicas.compact(committed.group, committed.up_to).expect("the log works");
            }
            replicas.log().reclaim_space().expect("the log works");
        }
    });
}

fn bare_file(proposals: usize) {
    let directory = fresh("bare-file");
    fs::create_dir_all(&directory).expect("creatable");
    let mut file = File::create(directory.join("log")).expect("creatable");
    let batch = vec![0x61; PAYLOAD_BYTES * proposals];
    measure(format!("bare file, write + fdatasync, x {proposals}"), proposals, || {
        file.write_all(&batch).expect("writable");
        file.sync_data().expect("syncable");
    });
}

fn start(groups: u32) {
    let directory = fresh("start");
    let time = |what: &str| {
        let start = Instant::now();
        let log = Arc::new(RaftEngineLog::open(&directory, LogOptions::default()).expect("the log opens"));
        let mut replicas = open(log, groups, 0);
        println!("{what} until {groups} groups lead: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
        replicas.propose(GroupId(0), vec![1]).expect("it leads");
    };
    time("empty start");
    time("restart");
}

fn main() {
    for groups in [3, 30] {
        start(groups);
    }
    for proposals in [1, 64] {
        bare_file(proposals);
        let log = RaftEngineLog::open(&fresh("one-voter"), LogOptions::default()).expect("the log opens");
        drive("raft-engine", Arc::new(log), 1, proposals);
        drive("memory", Arc::new(MemoryLog::new()), 1, proposals);
    }
    let log = RaftEngineLog::open(&fresh("one-voter"), LogOptions::default()).expect("the log opens");
    drive("raft-engine", Arc::new(log), 3, 64);
    let log = RaftEngineLog::open(&fresh("one-voter"), LogOptions::default()).expect("the log opens");
    drive("raft-engine", Arc::new(log), 30, 1);
}
