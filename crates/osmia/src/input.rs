//! What commands read besides their arguments.

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

/// Stands for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Variables as a JSON object: the text itself, `@FILE` for the content of a file, or `-` for standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables(String);

impl FromStr for Variables {
    type Err = String;

    fn from_str(text: &str) -> Result<Variables, String> {
        let read = match text.strip_prefix('@') {
            Some(path) => {
                std::fs::read_to_string(Path::new(path)).map_err(|error| format!("cannot read {path}: {error}"))
            }
            None if text == STANDARD_INPUT => {
                let mut read = String::new();
                let end = std::io::stdin().read_to_string(&mut read);
                end.map(|_| read).map_err(|error| format!("cannot read standard input: {error}"))
            }
            None => Ok(text.to_owned()),
        };
        read.map(Variables)
    }
}

impl From<Variables> for String {
    fn from(variables: Variables) -> String {
        variables.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_as_text_or_from_a_file() {
        assert_eq!("{\"a\":1}".parse(), Ok(Variables("{\"a\":1}".into())));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("variables.json");
        std::fs::write(&path, "{\"b\": 2}").unwrap();
        assert_eq!(format!("@{}", path.display()).parse(), Ok(Variables("{\"b\": 2}".into())));
        let missing = "@/no/such/file".parse::<Variables>().unwrap_err();
        assert!(missing.contains("/no/such/file"), "{missing}");
    }
}
