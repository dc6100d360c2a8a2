//! How long a client waits for a call, as it says in `grpc-timeout`. What nobody waits for any more
//! is dropped as if the client had ended the call: jobs that were activated for it and not sent are
//! given back, and its place among those who wait is free.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame};
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use tokio::time::{Instant, Sleep};
use tonic::body::Body;
use tonic::{Code, Status};

use super::status::status;
use crate::listener::Answering;

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// As many digits as the protocol allows.
const DIGITS_MAX: usize = 8;

/// When a client gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    at: Instant,
    given: Duration,
}

impl Deadline {
    /// That of a call that has just come, if it has one.
    ///
    /// # Errors
    /// When the header says no time.
    pub(super) fn read(headers: &HeaderMap) -> Result<Option<Deadline>, Status> {
        let Some(text) = headers.get(TIMEOUT) else { return Ok(None) };
        let text = text.to_str().unwrap_or_default();
        let given = duration(text).ok_or_else(|| {
            let message = format!(
                "grpc-timeout is '{text}', but it must be up to {DIGITS_MAX} digits and a unit, like 1500m or 10S."
            );
            status(Code::InvalidArgument, message)
        })?;
        // At the end of time nobody waits.
        let deadline = Instant::now().checked_add(given).map(|at| Deadline { at, given });
        match deadline {
            // Nothing is begun for those who have gone.
            Some(deadline) if given.is_zero() => Err(deadline.exceeded()),
            deadline => Ok(deadline),
        }
    }

    fn exceeded(self) -> Status {
        let message = format!("The call has taken the {:?} that the client allows it (grpc-timeout).", self.given);
        status(Code::DeadlineExceeded, message)
    }

    /// Ends a call in time: until it has begun to answer, and, unless its answer is one message,
    /// also after that.
    pub(super) fn limit(self, answering: Answering<Body>, is_unary: bool) -> Answering<Body> {
        Box::pin(async move {
            let Ok(answered) = tokio::time::timeout_at(self.at, answering).await else {
                return Ok(self.exceeded().into_http());
            };
            answered.map(|response| if is_unary { response } else { response.map(|body| self.limited(body)) })
        })
    }

    fn limited(self, body: Body) -> Body {
        Body::new(Limited { body: Some(body), deadline: self, over: Box::pin(tokio::time::sleep_until(self.at)) })
    }
}

/// The time that a text says: digits and a unit.
fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=DIGITS_MAX).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// The pieces of an answer until the deadline, and then the status that says so.
struct Limited {
    /// None when it is over.
    body: Option<Body>,
    deadline: Deadline,
    over: Pin<Box<Sleep>>,
}

impl HttpBody for Limited {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        // What is there goes before the deadline: it is the client's already.
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        ready!(self.over.as_mut().poll(context));
        self.body = None;
        let mut trailers = HeaderMap::new();
        let added = self.deadline.exceeded().add_header(&mut trailers);
        Poll::Ready(Some(added.map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_digits_and_a_unit() {
        for (text, time) in [
            ("1S", Some(Duration::from_secs(1))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("2M", Some(Duration::from_secs(120))),
            ("1500m", Some(Duration::from_millis(1_500))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("100000000S", None),
            ("S", None),
            ("", None),
            ("1", None),
            ("+1S", None),
            ("1.5S", None),
            ("1s", None),
            ("1ä", None),
        ] {
            assert_eq!(duration(text), time, "{text}");
        }
    }
}
