//! An allocator that counts, so that the memory of one command is known.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use mimalloc::MiMalloc;

/// The allocator of the server, with a count for each thread.
#[derive(Debug)]
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { living: 0, most: 0, taken: 0, times: 0 }) };
}

#[derive(Clone, Copy)]
struct Counts {
    /// Bytes that this thread took and gave back; fewer than none where it gave back what others took.
    living: i64,
    /// The most of them since the start of the measurement.
    most: i64,
    /// Bytes taken since then.
    taken: u64,
    /// How often.
    times: u64,
}

/// What was taken of the memory from a start to an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that were in use at once, beyond those at the start.
    pub peak_bytes: u64,
    /// Bytes that were taken in all.
    pub taken_bytes: u64,
    /// How often memory was taken.
    pub times: u64,
}

/// Measures the memory that this thread takes meanwhile.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Memory) {
    let start = COUNTS.with(|counts| {
        let start = counts.get().living;
        counts.set(Counts { living: start, most: start, taken: 0, times: 0 });
        start
    });
    let result = work();
    let counts = COUNTS.with(Cell::get);
    let peak_bytes = u64::try_from(counts.most - start).unwrap_or(0);
    (result, Memory { peak_bytes, taken_bytes: counts.taken, times: counts.times })
}

fn count(taken: usize, given: usize) {
    // A thread that ends has no counts any more.
    let _ = COUNTS.try_with(|cell| {
        let mut counts = cell.get();
        counts.living += taken as i64 - given as i64;
        counts.most = counts.most.max(counts.living);
        if taken > 0 {
            counts.taken += taken as u64;
            counts.times += 1;
        }
        cell.set(counts);
    });
}

// SAFETY: every call goes to the allocator of the server unchanged; the counts are of the thread alone and take no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { MiMalloc.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it is moved, both are there.
        count(size, 0);
        count(0, layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { MiMalloc.realloc(memory, layout, size) }
    }
}
