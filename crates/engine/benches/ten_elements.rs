//! What an instance of ten elements costs the engine alone on one core: a task with a boundary timer that is opened and
//! cancelled, an exclusive gateway, a sub-process and events that pass at once.

#[path = "support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::Engine;
use model_builder::{Event, ProcessBuilder};
use support::{BATCH_INSTANCES, Run};

fn process() -> ProcessBuilder {
    ProcessBuilder::new("ten")
        .start("start")
        .throw("reached")
        .service_task("task", "work")
        .exclusive_gateway("choice")
        .condition("=payload = null")
        .end("other")
        .move_to("choice")
        .default_flow()
        .sub_process("sub")
        .start("sub-start")
        .manual_task("manual")
        .end("sub-end")
        .end_sub_process()
        .end("end")
        .boundary("late", "task", Event::Duration("PT1H"))
        .end("late-end")
}

fn ten_elements(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ten_elements");
    group.throughput(Throughput::Elements(BATCH_INSTANCES));
    let mut run = Run::new(Engine::in_memory);
    run.deploy(&process());
    group.bench_function("in_memory", |bencher| bencher.iter(|| run.run_batch("ten")));
    assert_eq!(run.engine.statistics().timers, 0, "every timer is cancelled");
    group.finish();
}

criterion_group!(benches, ten_elements);
criterion_main!(benches);
