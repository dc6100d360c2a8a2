//! What timers cost the engine alone on one core, on a state file with and without a million others that wait
//! (`OSMIA_BENCH_WAITING` says another number): instances that wait for their timer and end with it, and a task with a
//! boundary timer that is opened and cancelled. At the end the clock passes the due date of all that waited: how long the
//! longest batch takes then, behind which other work of the partition waits, and how long all of them.

#[path = "support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model_builder::{Event, ProcessBuilder};
use support::{BATCH_INSTANCES, Run};

/// As the broker takes them.
const DUE_COMMANDS: usize = 128;
const A_SECOND: i64 = 1_000;
const A_YEAR: i64 = 366 * 24 * 3_600 * A_SECOND;

fn timer(id: &str, duration: &str) -> ProcessBuilder {
    ProcessBuilder::new(id).start("s").catch_event("t", Event::Duration(duration)).end("e")
}

fn boundary() -> ProcessBuilder {
    let process = ProcessBuilder::new("boundary").start("s").service_task("t", "work").end("e");
    process.boundary("late", "t", Event::Duration("PT1H")).end("late-end")
}

/// Applies one batch of what is due; returns how many commands it had.
fn fire(run: &mut Run) -> usize {
    let due = run.engine.due_commands(run.time, DUE_COMMANDS);
    let count = due.len();
    if count > 0 {
        run.apply(due);
    }
    count
}

fn wait_and_fire(run: &mut Run) {
    run.create("short");
    run.time += A_SECOND;
    assert_eq!(fire(run), BATCH_INSTANCES as usize, "what is due fires, and nothing else");
}

fn all_at_once(run: &mut Run, expected: u64) {
    run.time += A_YEAR;
    let (begin, mut fired, mut longest) = (Instant::now(), 0, Duration::ZERO);
    loop {
        let batch = Instant::now();
        match fire(run) {
            0 => break,
            count => fired += count as u64,
        }
        longest = longest.max(batch.elapsed());
    }
    assert_eq!((fired, run.engine.statistics().timers), (expected, 0));
    let per_timer = begin.elapsed().div_f64(fired.max(1) as f64);
    println!("timers/all_at_once: {fired} due, {per_timer:?} each, longest batch of {DUE_COMMANDS} {longest:?}");
}

fn timers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("timers");
    group.throughput(Throughput::Elements(BATCH_INSTANCES));
    let waiting = std::env::var("OSMIA_BENCH_WAITING").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    for instances in [0, waiting] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = Run::with_waiting_at(&timer("waiting", "P365D"), directory.path(), instances);
        let open = run.engine.statistics().timers;
        assert_eq!(open, instances / BATCH_INSTANCES * BATCH_INSTANCES);
        run.deploy(&timer("short", "PT1S"));
        run.deploy(&boundary());
        let name = format!("wait_and_fire_with_{instances}_open");
        group.bench_function(name, |bencher| bencher.iter(|| wait_and_fire(&mut run)));
        let name = format!("open_and_cancel_with_{instances}_open");
        group.bench_function(name, |bencher| bencher.iter(|| run.run_batch("boundary")));
        all_at_once(&mut run, open);
    }
    group.finish();
}

criterion_group!(benches, timers);
criterion_main!(benches);
