//! The file of a partition's state when the power fails in the middle of a checkpoint.

use std::fs;
use std::path::Path;

use crate::disk::Tearing;
use chance::Chance;

/// LMDB writes whole pages: first those with data, then, after a sync, one of the two pages that name the newest tree.
const PAGE_BYTES: usize = 4096;
const META_PAGES: usize = 2;
const FILE: &str = "data.mdb";

/// The file as it was before a checkpoint was written.
pub struct StateFile {
    before: Vec<u8>,
}

impl StateFile {
    /// Remembers the file in a directory.
    pub fn remember(directory: &Path) -> Self {
        StateFile { before: fs::read(directory.join(FILE)).unwrap_or_default() }
    }

    /// Leaves what the disk may hold if the power failed while the checkpoint was written: nothing of it, all pages but
    /// the one that makes them count, some of these pages, or all. These may be all without the length of the file, which comes last:
    /// it had `committed_bytes` before that.
    pub fn settle(&self, directory: &Path, committed_bytes: u64, tearing: Tearing, chance: &mut Chance) {
        let path = directory.join(FILE);
        let mut written = fs::read(&path).expect("the scratch directory is readable");
        if chance.one_in(2) {
            written.truncate(usize::try_from(committed_bytes).expect("a small file"));
        }
        let content = match tearing {
            Tearing::Keeps => written,
            Tearing::Loses => self.before.clone(),
            Tearing::Mixes => self.mix(&written, chance),
        };
        fs::write(path, content).expect("the scratch directory is writable");
    }

    /// Leaves what the disk may hold if the power failed after checkpoints that were never synced: all of them, nothing, or the
    /// pages that make them count and some of the others.
    pub fn lose(&self, directory: &Path, tearing: Tearing, chance: &mut Chance) {
        let path = directory.join(FILE);
        let written = fs::read(&path).expect("the scratch directory is readable");
        let content = match tearing {
            Tearing::Keeps => return,
            Tearing::Loses => self.before.clone(),
            Tearing::Mixes => {
                let mut content = self.mix(&written, chance);
                let meta_bytes = (META_PAGES * PAGE_BYTES).min(content.len()).min(written.len());
                content[..meta_bytes].copy_from_slice(&written[..meta_bytes]);
                content
            }
        };
        fs::write(path, content).expect("the scratch directory is writable");
    }

    fn mix(&self, written: &[u8], chance: &mut Chance) -> Vec<u8> {
        let mut content = self.before.clone();
        for (number, page) in written.chunks(PAGE_BYTES).enumerate().skip(META_PAGES) {
            let start = number * PAGE_BYTES;
            if self.before.get(start..start + page.len()) != Some(page) && chance.one_in(2) {
                if content.len() < start + page.len() {
                    content.resize(start + page.len(), 0);
                }
                content[start..start + page.len()].copy_from_slice(page);
            }
        }
        content
    }
}
