//! Whether a file that is shorter than its tree counts lacks anything.
//!
//! A transaction of LMDB counts the pages that it takes at the end of the file, also those that it gives back before it commits.
//! These are never written, so its file is shorter than it counts, until it is lengthened after the commit. A process that ends
//! between the two leaves a good file that is too short, and so does nobody else: LMDB writes and syncs every page in use before
//! the page that makes the transaction count. A file that was cut off lacks pages in use. Which of both it is, the trees say: every
//! page behind the two first ones is either used by one of them once, or free. So they are walked, with plain reads of the file, because
//! a read of the mapped memory behind its end would end the process.
//!
//! Considered and left: to lengthen before the commit, because how many pages the commit itself takes for its list of free ones is known
//! only afterwards; and to go back to the snapshot before (`MDB_PREVSNAPSHOT`), whose next transaction overwrites pages of the
//! newest one while that still counts, so that a second kill would leave a mixture.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Layout of LMDB's files of version 1, with numbers as the machine has them.
const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_PAGES: u64 = 2;
const PAGE_HEADER_BYTES: usize = 16;
/// In the page after its header: magic, version, address, size of the map, two trees, last page, transaction.
const TREE_ROOTS: [usize; 2] = [PAGE_HEADER_BYTES + 24 + 40, PAGE_HEADER_BYTES + 24 + 48 + 40];
const LAST_PAGE: usize = PAGE_HEADER_BYTES + 24 + 2 * 48;
const TRANSACTION: usize = LAST_PAGE + 8;
const NO_PAGE: u64 = u64::MAX;
const IS_BRANCH: u16 = 0x01;
const IS_LEAF: u16 = 0x02;
const NODE_HEADER_BYTES: usize = 8;
const HAS_BIG_DATA: u16 = 0x01;

/// The newest transaction of a file, as LMDB knows it.
pub(crate) struct Newest {
    pub transaction: u64,
    pub last_page: u64,
    pub page_bytes: usize,
}

/// Why a file lacks something that its newest transaction uses; nothing if all of that is there.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn missing(path: &Path, newest: &Newest) -> Result<Option<String>> {
    let file = File::open(path)?;
    let pages = file.metadata()?.len() / newest.page_bytes as u64;
    match (Walk { file, pages, newest }).run() {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

struct Walk<'a> {
    file: File,
    /// Whole pages that the file has.
    pages: u64,
    newest: &'a Newest,
}

fn unfit(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, reason.into())
}

impl Walk<'_> {
    fn run(&self) -> Result<()> {
        // Of a tree that does not fit, no page is visited more often than there are pages.
        let mut visits_left = self.pages;
        let mut waiting = self.roots()?;
        while let Some(number) = waiting.pop() {
            visits_left = visits_left.checked_sub(1).ok_or_else(|| unfit("its tree has more pages than the file"))?;
            self.visit(number, &mut waiting)?;
        }
        Ok(())
    }

    /// Of the tree of free pages, and of that with the entries.
    fn roots(&self) -> Result<Vec<u64>> {
        let page = self.page(self.newest.transaction % META_PAGES)?;
        let is_newest = page.at::<4>(PAGE_HEADER_BYTES).map(u32::from_ne_bytes)? == MAGIC
            && page.at::<4>(PAGE_HEADER_BYTES + 4).map(u32::from_ne_bytes)? == VERSION
            && page.number(TRANSACTION)? == self.newest.transaction
            && page.number(LAST_PAGE)? == self.newest.last_page;
        if !is_newest {
            return Err(unfit("the page of its newest transaction has another layout"));
        }
        let roots = TREE_ROOTS.into_iter().map(|place| page.number(place)).collect::<Result<Vec<_>>>()?;
        Ok(roots.into_iter().filter(|root| *root != NO_PAGE).collect())
    }

    /// Looks at a page of a tree; those below it wait.
    fn visit(&self, number: u64, waiting: &mut Vec<u64>) -> Result<()> {
        let page = self.page(number)?;
        let (is_branch, is_leaf) = (page.flags()? & IS_BRANCH != 0, page.flags()? & IS_LEAF != 0);
        if page.number(0)? != number || is_branch == is_leaf {
            return Err(unfit(format!("its page {number} is none of a tree")));
        }
        for place in page.nodes()? {
            let (low, high) = (page.short(place)?, page.short(place + 2)?);
            let (low, high) = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
            let (flags, key_bytes) = (page.short(place + 4)?, page.short(place + 6)?);
            let size = u64::from(low) | u64::from(high) << 16;
            if is_branch {
                waiting.push(size | u64::from(flags) << 32);
            } else if flags & HAS_BIG_DATA != 0 {
                let first = page.number(place + NODE_HEADER_BYTES + usize::from(key_bytes))?;
                let bytes = size + PAGE_HEADER_BYTES as u64;
                self.check_there(first, bytes.div_ceil(self.newest.page_bytes as u64))?;
            }
        }
        Ok(())
    }

    fn check_there(&self, first: u64, pages: u64) -> Result<()> {
        match first.checked_add(pages) {
            Some(end) if first >= META_PAGES && end <= self.pages => Ok(()),
            _ => {
                Err(unfit(format!("its tree uses page {first} and {} behind it, and the file ends before", pages - 1)))
            }
        }
    }

    fn page(&self, number: u64) -> Result<Page> {
        if number >= META_PAGES {
            self.check_there(number, 1)?;
        }
        let mut bytes = vec![0; self.newest.page_bytes];
        self.file.read_exact_at(&mut bytes, number * self.newest.page_bytes as u64)?;
        Ok(Page(bytes))
    }
}

struct Page(Vec<u8>);

impl Page {
    fn at<const BYTES: usize>(&self, place: usize) -> Result<[u8; BYTES]> {
        let bytes = self.0.get(place..place + BYTES).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| unfit("a page of its tree points outside of itself"))
    }

    fn number(&self, place: usize) -> Result<u64> {
        self.at(place).map(u64::from_ne_bytes)
    }

    fn short(&self, place: usize) -> Result<u16> {
        self.at(place).map(u16::from_ne_bytes)
    }

    fn flags(&self) -> Result<u16> {
        self.short(10)
    }

    /// Where its nodes are.
    fn nodes(&self) -> Result<Vec<usize>> {
        let end = usize::from(self.short(12)?);
        let places = (PAGE_HEADER_BYTES..end).step_by(2);
        places.map(|place| self.short(place).map(usize::from)).collect()
    }
}
