//! How long a file takes from bytes to the executable model: `cargo bench -p bpmn`.

use std::hint::black_box;

use bpmn::parse;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use model_builder::ProcessBuilder;

fn sequence(tasks: usize) -> String {
    let mut builder = ProcessBuilder::new("sequence").start("start");
    for number in 0..tasks {
        builder = builder
            .service_task(&format!("task{number}"), "work")
            .header("number", &number.to_string())
            .input("= total + 1", "total")
            .output("= result", "result");
    }
    builder.end("end").to_xml()
}

fn parsing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse a sequence of service tasks");
    for tasks in [1, 10, 100, 1_000, 5_000] {
        let xml = sequence(tasks);
        group.throughput(Throughput::Elements(tasks as u64));
        group.bench_with_input(BenchmarkId::from_parameter(tasks), &xml, |bencher, xml| {
            bencher.iter(|| parse("sequence.bpmn", black_box(xml.as_bytes())).expect("the model is valid"));
        });
    }
    group.finish();
}

criterion_group!(benches, parsing);
criterion_main!(benches);
