//! What two listeners of an element cost beside their jobs: a task with them, one without, and three tasks in sequence, which
//! have as many jobs.

#[path = "support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::Engine;
use model_builder::ProcessBuilder;
use support::{BATCH_INSTANCES, Run};

fn listeners(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("listeners");
    group.throughput(Throughput::Elements(BATCH_INSTANCES));
    let task = |process: ProcessBuilder, id: &str| process.service_task(id, "work");
    let begin = |id: &str| ProcessBuilder::new(id).start("s");
    let listened =
        task(begin("listened"), "t").execution_listener("start", "work").execution_listener("end", "work").end("e");
    let sequence = task(task(task(begin("sequence"), "t1"), "t2"), "t3").end("e");
    let mut run = Run::new(Engine::in_memory);
    run.deploy(&listened);
    run.deploy(&sequence);
    for (name, id, jobs) in
        [("one_job", "one", 1), ("two_listeners_and_one_job", "listened", 3), ("three_jobs", "sequence", 3)]
    {
        group.bench_function(name, |bencher| bencher.iter(|| run.run_batch_with_jobs(id, jobs)));
    }
    group.finish();
}

criterion_group!(benches, listeners);
criterion_main!(benches);
