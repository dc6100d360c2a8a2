//! Variables as one JSON text.

/// Appends a variable to an unfinished JSON object, which starts with its brace.
pub(crate) fn append_variable(joined: &mut String, name: &str, value: &str) {
    if joined.len() > 1 {
        joined.push(',');
    }
    feel::json::write_string(name, joined);
    joined.push(':');
    joined.push_str(value);
}
