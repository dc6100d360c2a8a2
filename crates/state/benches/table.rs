//! What a table operation costs, with its undo, at the size that a busy partition has; and the worst pauses of a checkpoint.

#![allow(missing_docs, reason = "the macros of the benchmark generate items")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use state::{Queue, Store, StoreOptions, Table};

#[derive(Clone, Debug, minicbor::Encode, minicbor::Decode)]
struct Instance {
    #[n(0)]
    parent: u64,
    #[n(1)]
    element: Box<str>,
    #[n(2)]
    children: u32,
}

state::cbor_values!(Instance => |instance| instance.element.len());

type JobType = (Arc<str>, Arc<str>);

state::tables! {
    struct Tables {
        instances: Table<u64, Instance> = 1,
        texts: Table<(Arc<str>, u64), u64> = 2,
        jobs: Queue<JobType, u64, ()> = 3,
    }
}

const LIVE_ENTRIES: u64 = 5_000;

fn instance(key: u64) -> Instance {
    Instance { parent: key, element: "task".into(), children: 0 }
}

fn job_type(name: &str) -> JobType {
    ("<default>".into(), name.into())
}

/// Keys in an order that misses the processor's caches as real work does.
fn next(key: &mut u64) -> u64 {
    *key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*key >> 33) % LIVE_ENTRIES
}

fn operations(criterion: &mut Criterion, layer: &str, mut tables: Tables) {
    let mut group = criterion.benchmark_group(layer);
    let mut seed = 1;
    group.bench_function("get", |bencher| bencher.iter(|| black_box(tables.instances.get(&next(&mut seed)))));
    let mut key = LIVE_ENTRIES;
    group.bench_function("insert_new + commit + delete of the oldest + commit", |bencher| {
        bencher.iter(|| {
            tables.instances.insert_new(key, instance(key));
            tables.commit().expect("no fault");
            tables.instances.delete(&(key - LIVE_ENTRIES));
            tables.commit().expect("no fault");
            key += 1;
        });
    });
    group.bench_function("put + commit", |bencher| {
        bencher.iter(|| {
            let key = key - 1 - next(&mut seed);
            tables.instances.put(key, instance(key));
            tables.commit().expect("no fault");
        });
    });
    group.bench_function("update + commit", |bencher| {
        bencher.iter(|| {
            let key = key - 1 - next(&mut seed);
            tables.instances.update(&key, |instance| instance.children += 1);
            tables.commit().expect("no fault");
        });
    });
    group.bench_function("update + rollback", |bencher| {
        bencher.iter(|| {
            let key = key - 1 - next(&mut seed);
            tables.instances.update(&key, |instance| instance.children += 1);
            tables.rollback();
        });
    });
    let (kind, other) = (job_type("payment"), job_type("shipping"));
    tables.jobs.insert(other, 1, ());
    group.bench_function("queue: insert, first, remove, is_empty", |bencher| {
        bencher.iter(|| {
            tables.jobs.insert(kind.clone(), key, ());
            let (first, _) = tables.jobs.first(&kind).expect("it was just inserted");
            tables.jobs.remove(&kind, &first);
            assert!(tables.jobs.is_empty(&kind));
            tables.commit().expect("no fault");
            key += 1;
        });
    });
    group.finish();
}

fn overlay(criterion: &mut Criterion) {
    let mut tables = Tables::in_memory();
    for key in 0..LIVE_ENTRIES {
        tables.instances.insert_new(key, instance(key));
    }
    tables.commit().expect("no fault");
    operations(criterion, "overlay", tables);
}

fn file(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut tables = Tables::open(&Store::open(directory.path(), &StoreOptions::default()).expect("it opens"));
    for key in 0..LIVE_ENTRIES.max(1_000_000) {
        tables.instances.insert_new(key, instance(key));
    }
    for key in 0..1_000_000 {
        tables.jobs.insert(job_type("waiting"), key, ());
    }
    tables.commit().expect("no fault");
    let checkpoint = tables.freeze(1, vec![]).expect("it freezes");
    let retired = tables.release(checkpoint.write().expect("it is written")).expect("it is released");
    drop((checkpoint, retired));
    println!("checkpoint of 2,000,000 entries: {:?}", tables.statistics());

    let kind = job_type("waiting");
    let mut seed = 1;
    let mut group = criterion.benchmark_group("file of a million");
    group.bench_function("get", |bencher| {
        bencher.iter(|| black_box(tables.instances.get(&(next(&mut seed) * 199))));
    });
    group.bench_function("queue: first and remove", |bencher| {
        bencher.iter(|| {
            if let Some((first, _)) = tables.jobs.first(&kind) {
                tables.jobs.remove(&kind, &first);
                tables.commit().expect("no fault");
            }
        });
    });
    group.bench_function("queue: first", |bencher| bencher.iter(|| black_box(tables.jobs.first(&kind).is_some())));
    group.finish();
}

criterion_group!(benches, overlay, file);
criterion_main!(benches);
