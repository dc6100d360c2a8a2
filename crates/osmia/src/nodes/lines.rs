//! What the nodes say, on one terminal.

use std::io::{BufRead, BufReader, Read, Write};

use crate::configuration::LogFormat;

/// A longer line is shown in pieces.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Marks the lines of a node.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    pub number: u32,
    pub format: LogFormat,
}

impl Lines {
    /// Writes all lines until there are no more. A target that cannot be written loses them, and the node goes on.
    pub(super) fn pass_on<T: Write>(self, source: impl Read, target: impl Fn() -> T) {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            match source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let marked = self.marked(String::from_utf8_lossy(&line).trim_end_matches('\n'));
            // As one piece, so that lines of others do not come between.
            let _ = target().write_all(marked.as_bytes());
        }
    }

    /// Programs that read JSON get a member more, and people a column.
    fn marked(self, line: &str) -> String {
        let number = self.number;
        match (self.format, line.strip_prefix('{')) {
            (LogFormat::Json, Some("}")) => format!("{{\"node\":{number}}}\n"),
            (LogFormat::Json, Some(rest)) => format!("{{\"node\":{number},{rest}\n"),
            (LogFormat::Json | LogFormat::Text, _) => format!("node {number} | {line}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Shared<'a>(&'a Mutex<Vec<u8>>);

    impl Write for Shared<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nobody panics").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn passed_on(format: LogFormat, text: &[u8]) -> String {
        let written = Mutex::default();
        Lines { number: 2, format }.pass_on(text, || Shared(&written));
        String::from_utf8(written.into_inner().expect("nobody panics")).expect("text")
    }

    #[test]
    fn each_line_says_whose_it_is() {
        assert_eq!(passed_on(LogFormat::Text, b"a\n\nb\xffc"), "node 2 | a\nnode 2 | \nnode 2 | b\u{fffd}c\n");
        let json = passed_on(LogFormat::Json, b"{\"level\":\"INFO\"}\n{}\npanic\n");
        assert_eq!(json, "{\"node\":2,\"level\":\"INFO\"}\n{\"node\":2}\nnode 2 | panic\n");
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_memory() {
        let long = vec![b'x'; 3 * usize::try_from(LINE_BYTES_MAX).expect("small")];
        let passed = passed_on(LogFormat::Text, &long);
        assert_eq!(passed.lines().count(), 3);
        assert_eq!(passed.matches('x').count(), long.len());
    }
}
