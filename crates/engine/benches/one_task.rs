//! How many one-task instances the engine alone runs per second on one core: create with 0.5 KB of variables, push to a
//! stream, complete. In memory; with the encoding of the records to bytes; and on a state file in which other instances
//! wait (`OSMIA_BENCH_WAITING` of them, a million unless it is said otherwise).

#[path = "support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::Engine;
use support::{BATCH_INSTANCES, Run};

fn one_task(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one_task");
    group.throughput(Throughput::Elements(BATCH_INSTANCES));
    let mut run = Run::new(Engine::in_memory);
    group.bench_function("in_memory", |bencher| bencher.iter(|| run.run_batch("one")));
    let mut run = Run::new(Engine::in_memory);
    let mut bytes = Vec::new();
    group.bench_function("in_memory_with_records_of_the_completions_encoded", |bencher| {
        bencher.iter(|| {
            run.run_batch("one");
            bytes.clear();
            for record in &run.output.records {
                protocol::encode(record, &mut bytes);
            }
            black_box(bytes.len())
        });
    });
    let waiting = std::env::var("OSMIA_BENCH_WAITING").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    for instances in [0, waiting] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut run = Run::with_waiting(directory.path(), instances);
        group.bench_function(format!("on_file_with_{instances}_waiting"), |bencher| {
            bencher.iter(|| run.run_batch("one"))
        });
    }
    group.finish();
}

criterion_group!(benches, one_task);
criterion_main!(benches);
