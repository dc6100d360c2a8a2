//! The answer to a request for jobs: one object, written piece by piece as the partitions answer.
//!
//! What a client does not take is given back: the jobs of a piece are the client's only when the piece is written.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use tokio_stream::{Stream, StreamExt};

use super::job::activated;
use crate::activation::{Activation, ActivationStream};
use crate::outcome::Failure;
use crate::undelivered::Undelivered;

const NOTHING: &[u8] = br#"{"jobs":[]}"#;
const BEGIN: &[u8] = br#"{"jobs":["#;
const END: &[u8] = b"]}";

/// What a request for jobs found.
pub(super) enum Found {
    /// Nothing in time. Holds the answer.
    Nothing(&'static [u8]),
    Jobs(JobsBody),
}

/// Waits for the first jobs.
///
/// # Errors
/// When there is none because of a failure.
pub(super) async fn first(activation: Activation) -> Result<Found, Failure> {
    let mut stream = ActivationStream::new(activation);
    match stream.next().await {
        None => Ok(Found::Nothing(NOTHING)),
        Some(Ok(jobs)) => Ok(Found::Jobs(JobsBody { state: State::First(jobs), stream })),
        Some(Err(failure)) => Err(failure),
    }
}

/// The jobs of one request.
pub(crate) struct JobsBody {
    state: State,
    stream: ActivationStream,
}

enum State {
    First(Undelivered),
    More,
    Over,
}

impl Body for JobsBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match std::mem::replace(&mut self.state, State::More) {
            State::First(jobs) => render(BEGIN, jobs),
            State::More => match ready!(Pin::new(&mut self.stream).poll_next(context)) {
                Some(Ok(jobs)) => render(b",", jobs),
                ended => {
                    if let Some(Err(failure)) = ended {
                        // The client has jobs, which are answer enough.
                        let reason = failure.message("activateJobs");
                        tracing::debug!(reason, "a request for jobs got fewer than it might have");
                    }
                    self.state = State::Over;
                    Bytes::from_static(END)
                }
            },
            State::Over => {
                self.state = State::Over;
                return Poll::Ready(None);
            }
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Jobs after what goes before them. There is at least one.
fn render(before: &[u8], jobs: Undelivered) -> Bytes {
    let mut text = before.to_vec();
    for (index, (key, job)) in jobs.deliver().into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend(activated(key, &job).finish());
    }
    text.into()
}
