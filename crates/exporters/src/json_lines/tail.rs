//! What of a file that an earlier life of the node wrote to is whole.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use memchr::memmem::FinderRev;
use serde::de::IgnoredAny;

/// So many bytes are searched at a time, from the end of the file.
const SEARCH_BYTES: u64 = 64 << 10;
/// The last record begins so many bytes before the end at the earliest. A file without one there is not ours.
const TAIL_BYTES_MAX: u64 = 1 << 30;
/// How the line of every record begins.
const RECORD_BEGINS: &[u8] = b"{\"position\":";
const LINE_WITH_RECORD: &[u8] = b"\n{\"position\":";

/// The length of the file up to which its lines are whole: a record that a crash cut off is written again. None when what
/// would be cut off is no record.
///
/// The last record is found by its beginning. A line break alone says nothing of what is before it.
pub(super) fn whole_length(file: &mut File) -> io::Result<Option<u64>> {
    let end = file.seek(SeekFrom::End(0))?;
    let Some(begin) = last_record(file, end)? else { return without_record(file, 0, end) };
    file.seek(SeekFrom::Start(begin))?;
    let reader = BufReader::new(Read::by_ref(file).take(end - begin));
    let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {}
        Some(Err(error)) if error.is_io() => return Err(error.into()),
        // Cut off, or with zeros where bytes were not on disk yet at a power loss.
        Some(Err(_)) | None => return Ok(Some(begin)),
    }
    let behind = begin + values.byte_offset() as u64;
    drop(values);
    let mut line_end = [0];
    let has_next = behind < end;
    if has_next {
        file.seek(SeekFrom::Start(behind))?;
        file.read_exact(&mut line_end)?;
    }
    match line_end[0] {
        b'\n' => without_record(file, behind + 1, end),
        0 => Ok(Some(begin)),
        _ => Ok(None),
    }
}

/// The same of a file in which no record begins from a line on.
fn without_record(file: &mut File, line: u64, end: u64) -> io::Result<Option<u64>> {
    let last_line = last_place(file, line, end, b"\n")?.map_or(line, |at| at + 1);
    Ok(is_begun_record(file, last_line)?.then_some(last_line))
}

/// Where the line begins that is the last one to begin as records do.
fn last_record(file: &mut File, end: u64) -> io::Result<Option<u64>> {
    let floor = end.saturating_sub(TAIL_BYTES_MAX);
    if let Some(at) = last_place(file, floor, end, LINE_WITH_RECORD)? {
        return Ok(Some(at + 1));
    }
    let mut beginning = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    Read::by_ref(file).take(RECORD_BEGINS.len() as u64).read_to_end(&mut beginning)?;
    Ok((floor == 0 && beginning == RECORD_BEGINS).then_some(0))
}

/// Where something comes last in a part of a file.
fn last_place(file: &mut File, floor: u64, end: u64, what: &[u8]) -> io::Result<Option<u64>> {
    let finder = FinderRev::new(what);
    let overlap = what.len() as u64 - 1;
    let mut block = Vec::new();
    let mut searched = end;
    while searched > floor {
        let start = searched.saturating_sub(SEARCH_BYTES).max(floor);
        let block_end = (searched + overlap).min(end);
        block.clear();
        file.seek(SeekFrom::Start(start))?;
        Read::by_ref(file).take(block_end - start).read_to_end(&mut block)?;
        if let Some(at) = finder.rfind(&block) {
            return Ok(Some(start + at as u64));
        }
        searched = start;
    }
    Ok(None)
}

/// Whether from there on there is nothing, or the beginning of a record's line. After a power loss there may be zeros where
/// bytes were not on disk yet.
fn is_begun_record(file: &mut File, line: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(line))?;
    let mut rest = Vec::new();
    Read::by_ref(file).take(RECORD_BEGINS.len() as u64).read_to_end(&mut rest)?;
    let written = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    Ok(RECORD_BEGINS.starts_with(&rest[..written]))
}
