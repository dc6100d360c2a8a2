//! Takes the body of a request: JSON, or a form, within limits.

use std::pin::Pin;
use std::time::Duration;

use http_body::Body;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap};
use hyper::{StatusCode, Version};

use super::problem::Problem;
use crate::intake::{ArrivalError, Arriving};
use crate::options::MESSAGE_BYTES_MAX;
use crate::outcome::Failure;

/// A body that is too large, or that nobody wants, is read up to here: a client that is still sending would find its connection
/// closed before it reads why.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    /// Files and other fields.
    Form,
}

impl Kind {
    fn media_type(self) -> &'static str {
        match self {
            Kind::Json => "application/json",
            Kind::Form => "multipart/form-data",
        }
    }
}

/// Why a body was not taken.
pub(super) enum NotTaken {
    Problem(Problem),
    Failure(Failure),
}

/// What the headers say about a body before any of it is read.
///
/// # Errors
/// When it would be nothing that can be used.
pub(super) fn check(headers: &HeaderMap, kind: Kind, has_body: bool) -> Result<(), Problem> {
    let length = length(headers);
    // Who expects to be told before sending has not begun.
    let bytes_max = if headers.contains_key(EXPECT) { MESSAGE_BYTES_MAX } else { DISCARDED_BYTES_MAX };
    if length.is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let media_type = headers.get(CONTENT_TYPE).map(|given| given.to_str().unwrap_or("?"));
    if !has_body && kind == Kind::Json && media_type.is_none() {
        return Ok(());
    }
    check_type(kind, media_type.unwrap_or_default(), has_body)?;
    match headers.get(CONTENT_ENCODING).map(|given| given.to_str().unwrap_or_default()) {
        None | Some("identity") => Ok(()),
        Some(encoding) => Err(unsupported(format!("Content-Encoding '{encoding}' is not supported. Send it plain."))),
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// JSON is in UTF-8, of which ASCII is a part. What a form says about its characters means nothing, because its files are not texts.
/// Only forms of web pages send a form that nobody asked for, also when there is nothing in it.
fn check_type(kind: Kind, media_type: &str, has_body: bool) -> Result<(), Problem> {
    const NAMES_OF_UTF_8: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];
    let mut parts = media_type.split(';').map(str::trim);
    let given = parts.next().unwrap_or_default();
    let right = kind.media_type();
    let is_empty = !has_body && kind == Kind::Json && !given.eq_ignore_ascii_case(Kind::Form.media_type());
    if !is_empty && !given.eq_ignore_ascii_case(right) {
        return Err(unsupported(format!("Content-Type '{media_type}' is not supported. Send '{right}'.")));
    }
    if is_empty || kind == Kind::Form {
        return Ok(());
    }
    let charsets = parts.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').trim())
    });
    for charset in charsets {
        if !NAMES_OF_UTF_8.iter().any(|name| name.eq_ignore_ascii_case(charset)) {
            let detail =
                format!("Content-Type '{media_type}' names an encoding that is not supported. Send JSON in UTF-8.");
            return Err(unsupported(detail));
        }
    }
    Ok(())
}

/// JSON without the mark that some programs write before UTF-8.
pub(super) fn without_byte_order_mark(kind: Kind, body: Bytes) -> Bytes {
    const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
    match kind {
        Kind::Json if body.starts_with(BYTE_ORDER_MARK) => body.slice(BYTE_ORDER_MARK.len()..),
        _ => body,
    }
}

fn unsupported(detail: String) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
}

fn too_large() -> Problem {
    let detail = format!(
        "The request body is larger than the limit of {MESSAGE_BYTES_MAX} bytes. Send less at once, for example fewer or smaller variables."
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Whether a client is sending a body that it ends before it reads an answer, and that is worth reading for that. Over HTTP/2 it is
/// told to stop, and who expects to be told before sending has not begun.
pub(super) fn is_under_way(headers: &HeaderMap, version: Version, body: &Incoming) -> bool {
    version < Version::HTTP_2
        && !headers.contains_key(EXPECT)
        && length(headers).is_none_or(|length| length <= DISCARDED_BYTES_MAX as u64)
        && !body.is_end_stream()
}

/// Reads a body that nobody wants, as far as one that is too large is read, and not when nothing of it comes for a while: who has
/// announced one may be waiting for the answer.
pub(super) async fn discard(mut body: Arriving<Incoming>) {
    const PATIENCE: Duration = Duration::from_secs(5);
    let mut discarded = 0;
    loop {
        let next = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, next).await else { return };
        discarded += frame.data_ref().map_or(0, Bytes::len);
        body.forget();
        if discarded > DISCARDED_BYTES_MAX {
            return;
        }
    }
}

/// Waits for the whole body.
pub(super) async fn read(mut body: Arriving<Incoming>) -> Result<Bytes, NotTaken> {
    let mut first = Bytes::new();
    let mut more = Vec::new();
    let mut discarded = 0;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| match error {
            ArrivalError::Refused(failure) => NotTaken::Failure(failure),
            // Nobody will read it.
            ArrivalError::Ended(error) => {
                NotTaken::Problem(Problem::bad_request(format!("The request ended: {error}.")))
            }
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if discarded > 0 || first.len() + more.len() + data.len() > MESSAGE_BYTES_MAX {
            discarded += first.len() + more.len() + data.len();
            (first, more) = (Bytes::new(), Vec::new());
            body.forget();
            if discarded > DISCARDED_BYTES_MAX {
                break;
            }
            continue;
        }
        if first.is_empty() && more.is_empty() {
            first = data;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&std::mem::take(&mut first));
            }
            more.extend_from_slice(&data);
        }
    }
    if discarded > 0 {
        return Err(NotTaken::Problem(too_large()));
    }
    Ok(if more.is_empty() { first } else { more.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a value"));
        }
        check(&map, Kind::Json, true).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn the_mark_before_utf_8_is_no_part_of_json() {
        let read = |kind, text: &'static str| without_byte_order_mark(kind, Bytes::from_static(text.as_bytes()));
        assert_eq!(read(Kind::Json, "\u{feff}{}"), "{}");
        assert_eq!(read(Kind::Json, "{}\u{feff}"), "{}\u{feff}");
        assert_eq!(read(Kind::Json, "\u{feff}"), "");
        assert_eq!(read(Kind::Form, "\u{feff}--b"), "\u{feff}--b");
    }

    #[test]
    fn only_plain_json_is_taken() {
        for right in [
            "application/json",
            "application/json; charset=UTF-8",
            "application/json;charset=UTF8",
            "Application/JSON;CHARSET=\"utf-8\"; a=b",
            "application/json; charset=us-ascii",
        ] {
            assert_eq!(status(&[("content-type", right)]), 200, "{right}");
        }
        for wrong in ["text/plain", "application/json; charset=ISO-8859-1", "application/jsonx", "", "json"] {
            assert_eq!(status(&[("content-type", wrong)]), 415, "{wrong}");
        }
        assert_eq!(status(&[]), 415);
        assert_eq!(status(&[("content-type", "application/json"), ("content-encoding", "gzip")]), 415);
        assert_eq!(status(&[("content-type", "application/json"), ("content-length", "4194304")]), 200);
        let json = ("content-type", "application/json");
        assert_eq!(status(&[json, ("content-length", "4194305")]), 200, "it is read, and refused then");
        assert_eq!(status(&[json, ("content-length", "16777217")]), 413);
        let expects = [json, ("content-length", "4194305"), ("expect", "100-continue")];
        assert_eq!(status(&expects), 413, "before any of it is sent");
        assert!(check(&HeaderMap::new(), Kind::Json, false).is_ok());
        let of_type = |media_type: &str| {
            let headers = [(CONTENT_TYPE, media_type.parse().expect("a value"))].into_iter().collect();
            check(&headers, Kind::Json, false).map_err(|problem| problem.detail)
        };
        assert_eq!(of_type("application/json; charset=UTF-16"), Ok(()), "there is nothing to read");
        assert!(of_type("multipart/form-data; boundary=b").unwrap_err().contains("Send 'application/json'."));
        assert!(check(&HeaderMap::new(), Kind::Form, false).is_err(), "a form has parts");
    }
}
