//! Names that become keys of tables: how long they may be.

/// Characters of a name that is too long, where it is refused.
const SHOWN_CHARACTERS: usize = 40;

/// Bytes that a text takes in the key of a table, but for its end.
pub(crate) fn key_bytes(text: &str) -> usize {
    // The store ends texts with a 0, and so writes the bytes 0 and 1 as two.
    text.len() + text.bytes().filter(|byte| *byte <= 1).count()
}

/// What is too long to be a key, as in "at most 512 bytes, but it has 600".
pub(crate) fn too_long(text: &str, bytes_max: usize) -> Option<String> {
    let bytes = key_bytes(text);
    (bytes > bytes_max).then(|| format!("at most {bytes_max} bytes, but it has {bytes}"))
}

/// The beginning of a text that is too long to be said.
pub(crate) fn start_of(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARACTERS).map_or(text, |(end, _)| &text[..end])
}
