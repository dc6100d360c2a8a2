use std::fs::File;

use super::*;

const LOW_BYTES: u64 = 100 * MEBIBYTE;
const RESERVE_BYTES: u64 = 80 * MEBIBYTE;

fn disk() -> Disk {
    Disk::measured(10 << 30, LOW_BYTES, RESERVE_BYTES)
}

#[test]
fn new_work_stops_below_the_low_mark_and_starts_a_little_above_it() {
    let disk = disk();
    assert_eq!(disk.note(LOW_BYTES, RESERVE_BYTES), None);
    assert_eq!(disk.note(LOW_BYTES - 1, RESERVE_BYTES), Some(DiskState::Low));
    assert_eq!(disk.note(LOW_BYTES, RESERVE_BYTES), None, "a byte more is no reason to change one's mind");
    assert_eq!(disk.note(LOW_BYTES + LOW_BYTES / 16, RESERVE_BYTES), Some(DiskState::Enough));
    assert_eq!(disk.note(LOW_BYTES, RESERVE_BYTES), None);
}

#[test]
fn the_disk_is_full_when_the_reserve_is_used_up() {
    let disk = disk();
    assert_eq!(disk.note(0, MEBIBYTE), Some(DiskState::Low));
    assert_eq!(disk.note(0, 0), Some(DiskState::Full));
    assert_eq!(disk.note(FULL_BYTES, 0), Some(DiskState::Low));
    assert_eq!(disk.note(LOW_BYTES + RESERVE_BYTES, 0), None, "the reserve comes first");
    assert_eq!(disk.note(2 * LOW_BYTES + RESERVE_BYTES, 0), Some(DiskState::Enough));
}

#[test]
fn without_a_low_mark_nothing_is_ever_refused() {
    let disk = Disk::measured(10 << 30, 0, 0);
    assert_eq!(disk.note(0, 0), None);
    assert_eq!(disk.plan(0, 0), Plan::Nothing);
}

#[test]
fn the_reserve_goes_in_pieces_and_comes_back_at_once() {
    let disk = disk();
    let piece = RESERVE_BYTES / 8;
    assert_eq!(disk.plan(piece, RESERVE_BYTES), Plan::Nothing);
    assert_eq!(disk.plan(piece - 1, RESERVE_BYTES), Plan::GiveUp(piece));
    assert_eq!(disk.plan(0, 5), Plan::GiveUp(5));
    assert_eq!(disk.plan(0, 0), Plan::Nothing);
    assert_eq!(disk.plan(LOW_BYTES + piece, RESERVE_BYTES - piece), Plan::Nothing, "it would make the disk low");
    assert_eq!(disk.plan(2 * LOW_BYTES, RESERVE_BYTES - piece), Plan::Allocate(RESERVE_BYTES));
    assert_eq!(disk.plan(2 * LOW_BYTES, RESERVE_BYTES + 7), Plan::GiveUp(7), "it was made larger than it is to be");
}

#[test]
fn the_reserve_is_a_file_that_takes_room() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(RESERVE_FILE);
    let mut reserve = Reserve::of(directory.path());
    assert_eq!(reserve.left_bytes(), 0);
    reserve.allocate(4 * MEBIBYTE).expect("there is room");
    assert_eq!(Reserve::of(directory.path()).left_bytes(), 4 * MEBIBYTE);
    reserve.give_up(3 * MEBIBYTE).expect("it is there");
    assert_eq!((reserve.left_bytes(), std::fs::metadata(&path).expect("there").len()), (MEBIBYTE, MEBIBYTE));
    reserve.give_up(3 * MEBIBYTE).expect("it is there");
    assert_eq!(reserve.left_bytes(), 0);
    // A copy may be a file with a hole.
    File::create(&path).and_then(|file| file.set_len(4 * MEBIBYTE)).expect("writable");
    assert_eq!(Reserve::of(directory.path()).left_bytes(), 0);
}

#[test]
fn a_reserve_that_does_not_fit_leaves_what_was_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut reserve = Reserve::of(directory.path());
    reserve.allocate(MEBIBYTE).expect("there is room");
    reserve.allocate(1 << 60).expect_err("no disk is so large");
    assert_eq!(Reserve::of(directory.path()).left_bytes(), MEBIBYTE);
}

#[test]
fn the_volume_is_measured() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let options = DiskOptions { free_space_low_bytes: Some(5), reserve_bytes: Some(7) };
    let view = Disk::measure(directory.path(), options).expect("it exists").view();
    assert_eq!((view.low_bytes, view.reserve_bytes, view.reserve_left_bytes), (5, 7, 0));
    assert!(view.free_bytes > 0 && view.free_bytes <= view.total_bytes, "{view:?}");
    let usual = Disk::measure(directory.path(), DiskOptions::default()).expect("it exists").view();
    let least = (view.total_bytes / 4).min(16 * MEBIBYTE);
    assert_eq!(usual.low_bytes, (view.total_bytes / 50).min(1 << 30).max(least));
    Disk::measure(&directory.path().join("nothing"), options).expect_err("it does not exist");
    let whole = DiskOptions { reserve_bytes: Some(view.total_bytes), ..options };
    let refused = Disk::measure(directory.path(), whole).expect_err("nothing else would fit").to_string();
    assert!(refused.contains("does not fit on the disk"), "{refused}");
}

#[test]
fn bytes_are_told_in_units_that_say_something() {
    assert_eq!(
        [0, 999_999, 1 << 20, 5 << 30, 20 << 30].map(|bytes| Bytes(bytes).to_string()).join(" "),
        "0 bytes 999999 bytes 1 MiB 5120 MiB 20 GiB"
    );
}
