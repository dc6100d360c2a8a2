//! The last line of small text files: a checksum over all lines before it.

/// What the line begins with.
pub(crate) const CHECKSUM: &str = "checksum";

/// Adds the last line, which is over all lines before it.
pub(crate) fn with_checksum(mut lines: String) -> String {
    let checksum = crc32fast::hash(lines.as_bytes());
    lines.push_str(&format!("{CHECKSUM} {checksum:08x}\n"));
    lines
}

pub(crate) fn check_checksum(content: &[u8]) -> Result<(), &'static str> {
    let whole = content.strip_suffix(b"\n").ok_or("its last line does not end")?;
    let last = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (lines, last) = whole.split_at(last);
    if !last.starts_with(CHECKSUM.as_bytes()) {
        return Err("its last line is no checksum");
    }
    match last == format!("{CHECKSUM} {:08x}", crc32fast::hash(lines)).as_bytes() {
        true => Ok(()),
        false => Err("its checksum does not fit the lines before it"),
    }
}
