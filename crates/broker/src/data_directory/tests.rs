use super::checksum::CHECKSUM;
use super::*;

fn options(directory: &Path) -> NodeOptions {
    NodeOptions { data_directory: directory.to_owned(), partition_count: 3, ..NodeOptions::default() }
}

/// As after a first start that came to its end.
fn made(directory: &Path) -> DataDirectory {
    let opened = DataDirectory::open(&options(directory)).expect("new");
    opened.confirm().expect("writable");
    opened
}

#[test]
fn what_a_first_start_could_not_open_is_not_kept() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let first = DataDirectory::open(&options(directory.path())).expect("new");
    std::fs::write(first.paths.log().join("half"), "made").expect("writable");
    assert_eq!(stored_partition_count(directory.path()), None);
    drop(first);
    let fewer = NodeOptions { partition_count: 2, ..options(directory.path()) };
    let second = DataDirectory::open(&fewer).expect("nothing is fixed yet");
    assert!(!second.paths.log().join("half").exists());
    second.confirm().expect("writable");
    assert_eq!(stored_partition_count(directory.path()), Some(2));
    drop(second);
    DataDirectory::open(&options(directory.path())).expect_err("it is fixed now");
}

#[test]
fn a_directory_that_lost_its_log_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let log = made(directory.path()).paths.log();
    std::fs::remove_dir_all(log).expect("there");
    let error = DataDirectory::open(&options(directory.path())).expect_err("the log is gone").to_string();
    assert!(error.contains("has lost its directory 'log'. Put it back"), "{error}");
}

#[test]
fn other_users_see_nothing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("data");
    drop(made(&path));
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    // As an older version made it.
    std::fs::set_permissions(path.join(LOG), Permissions::from_mode(0o755)).expect("ours");
    drop(made(&path));
    assert_eq!(mode(&path), 0o700);
    for entry in std::fs::read_dir(&path).expect("there") {
        let path = entry.expect("readable").path();
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn a_second_user_is_refused_by_process_number_and_starts_are_counted() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let first = made(directory.path());
    let error = DataDirectory::open(&options(directory.path())).expect_err("in use");
    assert!(error.to_string().contains(&format!("is in use by process {}", std::process::id())), "{error}");
    let cluster = first.cluster_id.clone();
    let starts = read_starts(directory.path());
    drop(first);
    let second = DataDirectory::open(&options(directory.path())).expect("free again");
    assert_eq!(second.cluster_id, cluster);
    assert_eq!(read_starts(directory.path()), starts, "it may still be refused");
    second.confirm().expect("writable");
    assert_eq!(read_starts(directory.path()), starts + 1);
}

#[test]
fn what_is_fixed_by_the_data_is_not_changed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(made(directory.path()));
    assert_eq!(stored_partition_count(directory.path()), Some(3));
    let more = NodeOptions { partition_count: 5, ..options(directory.path()) };
    let error = DataDirectory::open(&more).expect_err("3 partitions are there").to_string();
    assert!(error.contains("was made with partition count 3, and it cannot be changed to 5"), "{error}");
    std::fs::write(directory.path().join("FORMAT"), "data-format 9\n").expect("writable");
    let error = DataDirectory::open(&options(directory.path())).expect_err("unknown format").to_string();
    assert!(error.contains("has format 9, and this version understands format 1"), "{error}");
    // A newer version that changed nothing for older programs is read; one that did is refused, and says whose it is.
    let newer = |oldest_reader| {
        with_checksum(format!(
            "data-format 7\noldest-reader {oldest_reader}\nwritten-by osmia 2.1.0\ndraft {DRAFT}\nnode 0\nplace alone\ndirectory 7\npartitions 3\n\
             cluster c\nfeature-level 1\nsomething new\n"
        ))
    };
    std::fs::write(directory.path().join("FORMAT"), newer(1)).expect("writable");
    assert_eq!(stored_partition_count(directory.path()), Some(3));
    std::fs::write(directory.path().join("FORMAT"), newer(2)).expect("writable");
    let error = DataDirectory::open(&options(directory.path())).expect_err("a newer format").to_string();
    assert!(error.contains("has format 7 of osmia 2.1.0, and this version understands format 1"), "{error}");
    let unknown = format!(
        "data-format 1\ndraft {DRAFT}\nnode 0\nplace alone\ndirectory 7\npartitions 3\ncluster c\nfeature-level 999\n"
    );
    std::fs::write(directory.path().join("FORMAT"), with_checksum(unknown)).expect("writable");
    let error = DataDirectory::open(&options(directory.path())).expect_err("a newer level").to_string();
    let expected = format!(
        "The partitions of the data directory {} began at a feature level that this version does not have. Feature level \
         999 is not known: this build knows the levels up to 1",
        directory.path().display()
    );
    assert!(error.starts_with(&expected), "{error}");
    std::fs::remove_file(directory.path().join("FORMAT")).expect("there");
    let error = DataDirectory::open(&options(directory.path())).expect_err("foreign data").to_string();
    assert!(error.contains("a directory 'log' but no file 'FORMAT'"), "{error}");
}

/// As yesterday's build wrote it, and as tomorrow's will.
#[test]
fn a_directory_of_another_draft_is_refused_by_name_and_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(made(directory.path()));
    let format = directory.path().join("FORMAT");
    let fixed = "node 0\nplace alone\ndirectory 7\npartitions 3\ncluster c\nfeature-level 10\n";
    for (content, found) in [
        (
            format!("format 1\noldest-reader 1\nwritten-by osmia 0.1.0\n{fixed}"),
            "a line 'format' and none 'data-format'",
        ),
        (format!("data-format 1\noldest-reader 1\nwritten-by osmia 0.1.0\ndraft 999\n{fixed}"), "draft 999"),
        (format!("data-format 1\noldest-reader 1\nwritten-by osmia 1.0.0\n{fixed}"), "no draft"),
    ] {
        let content = with_checksum(content);
        std::fs::write(&format, &content).expect("writable");
        let error = DataDirectory::open(&options(directory.path())).expect_err("another draft").to_string();
        let expected = format!(
            "The data directory {} has {found}, and this development build reads draft {DRAFT} of format 1 alone. Nothing \
             brings it over. Choose an empty directory",
            directory.path().display()
        );
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(std::fs::read_to_string(&format).expect("there"), content);
    }
}

#[test]
fn a_check_refuses_what_a_start_would_and_leaves_no_trace() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path().join("data");
    let more = NodeOptions { partition_count: 5, ..options(&data) };
    check_data_directory(&more).expect("nothing is fixed yet");
    assert!(!data.exists());
    let running = made(&data);
    check_data_directory(&options(&data)).expect("a running node is in nobody's way");
    let error = check_data_directory(&more).expect_err("3 partitions are there").to_string();
    assert!(error.contains("partition count 3, and it cannot be changed to 5"), "{error}");
    drop(running);
    std::fs::remove_file(data.join(FORMAT_FILE)).expect("there");
    let error = check_data_directory(&options(&data)).expect_err("foreign data").to_string();
    assert!(error.contains("a directory 'log' but no file 'FORMAT'"), "{error}");
    assert_eq!(read_starts(&data), 1);
}

#[test]
fn a_changed_byte_of_what_is_fixed_is_refused_and_nothing_changes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(made(directory.path()));
    let format = directory.path().join("FORMAT");
    let kept = std::fs::read(&format).expect("there");
    for place in 0..kept.len() {
        let mut changed = kept.clone();
        changed[place] ^= 1;
        std::fs::write(&format, &changed).expect("writable");
        let error = DataDirectory::open(&options(directory.path())).expect_err("changed");
        let is_told = matches!(error, DataDirectoryError::Damaged { .. } | DataDirectoryError::UnknownFormat { .. });
        assert!(is_told, "byte {place}: {error}");
        assert_eq!(stored_partition_count(directory.path()), None, "byte {place}");
    }
    let text = String::from_utf8(kept.clone()).expect("text");
    let lines = text.rsplit_once(CHECKSUM).expect("the last line").0;
    let refused = [
        (text.replace("partitions 3", "partitions 2").into_bytes(), "its checksum does not fit the lines before it"),
        (lines.as_bytes().to_vec(), "its last line is no checksum"),
        (text.trim_end().as_bytes().to_vec(), "its last line does not end"),
        (vec![0xff; 100], "it has no valid line 'data-format'"),
        (Vec::new(), "it has no valid line 'data-format'"),
    ];
    for (changed, problem) in refused {
        std::fs::write(&format, changed).expect("writable");
        let expected = format!("The file {} is damaged: {problem}. It says for which node", format.display());
        let error = DataDirectory::open(&options(directory.path())).expect_err("changed").to_string();
        assert!(error.starts_with(&expected) && error.contains("Put the file back from a copy"), "{error}");
    }
    std::fs::write(&format, kept).expect("writable");
    DataDirectory::open(&options(directory.path())).expect("as it was");
}

#[test]
fn a_partition_beyond_their_number_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(made(directory.path()));
    let partition = |number: &str| directory.path().join(PARTITIONS).join(number);
    std::fs::create_dir(partition("3")).expect("writable");
    drop(DataDirectory::open(&options(directory.path())).expect("the last one"));
    std::fs::create_dir(partition("4")).expect("writable");
    let error = DataDirectory::open(&options(directory.path())).expect_err("one too many").to_string();
    assert!(error.contains("was made with 3 partitions") && error.contains("'partitions/4'"), "{error}");
}

#[test]
fn after_damage_starts_are_counted_from_a_number_that_none_had() {
    let directory = tempfile::tempdir().expect("temporary directory");
    drop(made(directory.path()));
    let mut before = 1_000_000_000;
    for damaged in [&b"\xff\xff"[..], b"", b"seven\n", b"99999999999999999999999\n"] {
        std::fs::write(directory.path().join(STARTS), damaged).expect("writable");
        drop(made(directory.path()));
        let starts = read_starts(directory.path());
        assert!(starts >= before, "{starts}");
        before = starts;
    }
}

#[test]
fn a_volume_that_is_too_small_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut options = options(directory.path());
    options.disk.free_space_low_bytes = Some(1 << 60);
    let error = DataDirectory::open(&options).expect_err("no volume is so large").to_string();
    assert!(error.contains("1152921504606846976 bytes of it are to stay free. Lower disk-free-space-low"), "{error}");
}
