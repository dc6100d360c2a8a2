//! What a disk may hold when the power fails, from a journal of everything that a process did to its files.
//!
//! Content counts as kept when its file was synced behind it, a name when its directory was, and nothing else does: stricter
//! than most file systems, as strict as what they promise. Of the rest everything, nothing or any part is there. A move is there
//! or not, as journals of file systems have it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chance::Chance;

const LIBRARY: &str = include_str!("journal.c");
/// What a disk writes completely or not at all.
const SECTOR_BYTES: usize = 512;

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tearing {
    /// It is all there.
    Keeps,
    /// All of it is lost.
    Loses,
    /// Any part of it is there.
    Mixes,
}

/// A directory on a disk that loses power.
pub struct Disk {
    directory: tempfile::TempDir,
    library: PathBuf,
    /// What is on the disk for sure since it was written again.
    kept: Tree,
}

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Directory,
    File(u64),
}

/// Files by their numbers, and names. A number is given once: a file system gives that of a file which is gone to another one,
/// while the name of the first may be there again after a loss of power.
#[derive(Default)]
struct Tree {
    files: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<PathBuf, Entry>,
}

enum Change {
    Write(usize, Vec<u8>),
    /// To this length, or at least to it.
    Resize(usize, bool),
}

/// Names that change together.
struct Renaming {
    /// The directory whose sync keeps it.
    directory: PathBuf,
    names: Vec<(PathBuf, Option<Entry>)>,
}

/// What was done and is not kept yet: numbered, so that a sync keeps what came before it began.
struct Pending<T> {
    changes: VecDeque<(u64, T)>,
    syncs: VecDeque<u64>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Pending { changes: VecDeque::new(), syncs: VecDeque::new() }
    }
}

impl<T> Pending<T> {
    /// What is kept when the sync that began first ends.
    fn synced(&mut self) -> Vec<T> {
        let until = self.syncs.pop_front().expect("a sync begins before it ends");
        let mut kept = Vec::new();
        while let Some((_, change)) = self.changes.pop_front_if(|(number, _)| *number < until) {
            kept.push(change);
        }
        kept
    }
}

/// A process that works with its files.
#[derive(Default)]
struct Replay {
    kept: Tree,
    /// Names as the process sees them.
    seen: BTreeMap<PathBuf, Entry>,
    contents: BTreeMap<u64, Pending<Change>>,
    renamings: BTreeMap<PathBuf, Pending<Renaming>>,
    /// The numbers of files that were made meanwhile, by those of the file system.
    numbers: BTreeMap<u64, u64>,
    count: u64,
}

impl Disk {
    /// None, with a reason, where this cannot be done.
    pub fn new() -> Option<Disk> {
        let mut directory = tempfile::tempdir().unwrap();
        // For those who look for the cause of a failure.
        directory.disable_cleanup(std::env::var_os("OSMIA_POWER_LOSS_KEEP").is_some());
        let (source, library) = (directory.path().join("journal.c"), directory.path().join("journal.so"));
        fs::write(&source, LIBRARY).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).args([&library, &source]).arg("-ldl");
        if !cfg!(target_os = "linux")
            || !compiler.stderr(Stdio::inherit()).status().is_ok_and(|status| status.success())
        {
            println!("skipped: there is no C compiler on Linux to build the library that takes down writes and syncs");
            return None;
        }
        let disk = Disk { directory, library, kept: Tree::default() };
        fs::create_dir(disk.root()).unwrap();
        Some(disk)
    }

    /// Where everything is that loses power.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("disk")
    }

    fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    /// Lets a process work on the disk.
    pub fn watch(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library);
        command.env("POWER_LOSS_BELOW", self.root()).env("POWER_LOSS_JOURNAL", self.journal());
    }

    /// The power has failed and the process is gone: leaves what may be there. Returns how many changes of contents and
    /// names were not kept for sure.
    pub fn settle(&mut self, tearing: Tearing, random: &mut Chance) -> (usize, usize) {
        let journal = fs::read(self.journal()).unwrap_or_default();
        let mut replay = Replay { kept: std::mem::take(&mut self.kept), ..Replay::default() };
        replay.seen = replay.kept.names.clone();
        replay.run(&journal);
        let unsynced = (
            replay.contents.values().map(|pending| pending.changes.len()).sum(),
            replay.renamings.values().map(|pending| pending.changes.len()).sum(),
        );
        let tree = replay.settle(tearing, random);
        self.write(&tree);
        unsynced
    }

    /// Writes the tree and remembers it by the numbers that its files have now.
    fn write(&mut self, tree: &Tree) {
        let root = self.root();
        fs::remove_dir_all(&root).unwrap();
        fs::create_dir(&root).unwrap();
        let _ = fs::remove_file(self.journal());
        self.kept = Tree::default();
        // Parents come before what is in them.
        for (path, entry) in &tree.names {
            if !path.parent().is_some_and(Path::is_dir) {
                continue;
            }
            let number = match entry {
                Entry::Directory => {
                    fs::create_dir(path).unwrap();
                    self.kept.names.insert(path.clone(), Entry::Directory);
                    continue;
                }
                Entry::File(number) => number,
            };
            let content = tree.files.get(number).cloned().unwrap_or_default();
            fs::write(path, &content).unwrap();
            let number = fs::metadata(path).unwrap().ino();
            self.kept.names.insert(path.clone(), Entry::File(number));
            self.kept.files.insert(number, content);
        }
    }
}

/// Reads entries as `journal.c` writes them.
struct Reader<'a>(&'a [u8]);

struct Noted<'a> {
    kind: u8,
    one: u64,
    two: u64,
    text: PathBuf,
    data: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const BYTES: usize>(&mut self) -> Option<u64> {
        let mut number = [0; 8];
        number[..BYTES].copy_from_slice(self.take(BYTES)?);
        Some(u64::from_le_bytes(number))
    }

    /// None at the end, also in the middle of an entry: there the process was killed.
    fn next(&mut self) -> Option<Noted<'a>> {
        let kind = self.take(1)?[0];
        let (one, two) = (self.number::<8>()?, self.number::<8>()?);
        let (text, data) = (self.number::<4>()?, self.number::<4>()?);
        let text = String::from_utf8_lossy(self.take(usize::try_from(text).ok()?)?).into_owned();
        Some(Noted { kind, one, two, text: PathBuf::from(text), data: self.take(usize::try_from(data).ok()?)? })
    }
}

impl Replay {
    fn run(&mut self, journal: &[u8]) {
        let mut reader = Reader(journal);
        while let Some(noted) = reader.next() {
            self.step(noted);
            self.count += 1;
        }
    }

    fn step(&mut self, noted: Noted<'_>) {
        let count = self.count;
        let number = self.number(noted.one);
        let length = || usize::try_from(noted.two).expect("a small file");
        match noted.kind {
            b'o' => self.opened(noted.text, noted.one, noted.two == 1),
            b'w' => self.change(number, Change::Write(length(), noted.data.to_vec())),
            b't' => self.change(number, Change::Resize(length(), false)),
            b'g' => self.change(number, Change::Resize(length(), true)),
            b's' => self.contents.entry(number).or_default().syncs.push_back(count),
            b'S' => {
                let file = self.kept.files.entry(number).or_default();
                let kept = self.contents.entry(number).or_default().synced();
                kept.iter().for_each(|change| change.apply(file));
            }
            b'd' => self.renamings.entry(noted.text).or_default().syncs.push_back(count),
            b'D' => {
                let kept = self.renamings.entry(noted.text).or_default().synced();
                kept.iter().for_each(|renaming| renaming.apply(&mut self.kept.names));
            }
            b'm' => self.rename(vec![(noted.text, Some(Entry::Directory))]),
            b'u' => self.rename(vec![(noted.text, None)]),
            b'r' => {
                let to = PathBuf::from(String::from_utf8_lossy(noted.data).into_owned());
                let entry = self.seen.get(&noted.text).copied();
                assert_ne!(
                    entry,
                    Some(Entry::Directory),
                    "directories keep their names here: {}",
                    noted.text.display()
                );
                self.rename(vec![(to, entry), (noted.text, None)]);
            }
            kind => panic!("the journal has an entry of kind {kind}"),
        }
    }

    /// A file's own number: until a new one has its number of the file system, that of the beginning.
    fn number(&self, of_file_system: u64) -> u64 {
        self.numbers.get(&of_file_system).copied().unwrap_or(of_file_system)
    }

    fn opened(&mut self, path: PathBuf, of_file_system: u64, is_truncated: bool) {
        let number = self.number(of_file_system);
        if self.seen.get(&path) != Some(&Entry::File(number)) {
            // From the other end, where no file system is.
            let number = u64::MAX - self.count;
            self.numbers.insert(of_file_system, number);
            self.kept.files.insert(number, Vec::new());
            self.rename(vec![(path, Some(Entry::File(number)))]);
        } else if is_truncated {
            self.change(number, Change::Resize(0, false));
        }
    }

    fn change(&mut self, number: u64, change: Change) {
        self.contents.entry(number).or_default().changes.push_back((self.count, change));
    }

    fn rename(&mut self, names: Vec<(PathBuf, Option<Entry>)>) {
        let directory = names[0].0.parent().expect("it is below the root").to_path_buf();
        let renaming = Renaming { directory: directory.clone(), names };
        renaming.apply(&mut self.seen);
        self.renamings.entry(directory).or_default().changes.push_back((self.count, renaming));
    }

    /// What is there when the power fails.
    fn settle(self, tearing: Tearing, random: &mut Chance) -> Tree {
        let mut tree = self.kept;
        let mut renamings: Vec<_> = self.renamings.into_values().flat_map(|pending| pending.changes).collect();
        renamings.sort_by_key(|(number, _)| *number);
        for (_, renaming) in renamings {
            let is_there = match tearing {
                Tearing::Keeps => true,
                Tearing::Loses => false,
                Tearing::Mixes => random.below(2) == 0,
            };
            let has_place = tree.names.get(&renaming.directory) == Some(&Entry::Directory) || renaming.is_at_the_top();
            if is_there && has_place {
                renaming.apply(&mut tree.names);
            }
        }
        for (number, pending) in self.contents {
            let file = tree.files.entry(number).or_default();
            for (_, change) in pending.changes {
                match tearing {
                    Tearing::Keeps => change.apply(file),
                    Tearing::Loses => {}
                    Tearing::Mixes => change.tear(file, random),
                }
            }
        }
        tree
    }
}

impl Renaming {
    fn is_at_the_top(&self) -> bool {
        self.directory.file_name().is_some_and(|name| name == "disk")
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Entry>) {
        for (path, entry) in &self.names {
            match entry {
                Some(entry) => names.insert(path.clone(), *entry),
                None => names.remove(path),
            };
        }
    }
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Change::Write(at, bytes) => {
                let end = at + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*at..end].copy_from_slice(bytes);
            }
            Change::Resize(length, only_grows) => {
                if !only_grows || file.len() < *length {
                    file.resize(*length, 0);
                }
            }
        }
    }

    /// Some of its sectors are there.
    fn tear(&self, file: &mut Vec<u8>, random: &mut Chance) {
        let Change::Write(at, bytes) = self else {
            if random.below(2) == 0 {
                self.apply(file);
            }
            return;
        };
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min((at + start) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - at);
            if random.below(2) == 0 {
                Change::Write(at + start, bytes[start..end].to_vec()).apply(file);
            }
            start = end;
        }
    }
}
