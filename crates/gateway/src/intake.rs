//! What clients are sending: bounded in memory and time.
//!
//! A message is read whole before anything looks at it. A client that sends most of a message on each of many streams, and
//! then waits, would fill the memory otherwise. Room for a long message of gRPC is made as soon as its length is known, so
//! that counts; others count as they come. Short ones are still taken when long ones are not: few clients send those, and
//! all send these.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use tokio::time::Sleep;

use crate::options::MESSAGE_BYTES_MAX;
use crate::outcome::Failure;
use crate::starts::Arrival;

/// What all clients together may have sent of requests that are not whole yet. Short requests may take as much again.
const BYTES_MAX: usize = 256 << 20;
/// The largest short request.
const SHORT_BYTES_MAX: usize = 64 << 10;
/// The prefix of a message: whether it is compressed (one byte), and its length (four, big-endian).
const PREFIX_BYTES: usize = 5;
/// How long one request may take to arrive.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Counts what arrives. Clones share the count.
#[derive(Clone)]
pub(crate) struct Intake {
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
    arrival_timeout: Duration,
}

impl Intake {
    pub(crate) fn new() -> Self {
        Intake { bytes: Arc::default(), bytes_max: BYTES_MAX, arrival_timeout: ARRIVAL_TIMEOUT }
    }

    /// The body of a request, counted until it is dropped.
    pub(crate) fn receive<B>(&self, body: B, arrival: Arrival) -> Arriving<B> {
        let intake = self.clone();
        Arriving { body, intake, arrival, prefix: None, received: 0, counted: 0, timeout: None }
    }

    /// The same, when the body begins with the prefix of a message that says how long it is.
    pub(crate) fn receive_message<B>(&self, body: B, arrival: Arrival) -> Arriving<B> {
        let mut arriving = self.receive(body, arrival);
        arriving.prefix = Some(Prefix::default());
        arriving
    }

    /// Counts more bytes of a request that now has this many.
    fn add(&self, more: usize, of: usize) -> Result<(), Failure> {
        let all = self.bytes.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        let bytes_max = if of <= SHORT_BYTES_MAX { self.bytes_max.saturating_mul(2) } else { self.bytes_max };
        if all <= bytes_max {
            return Ok(());
        }
        Err(Failure::Exhausted(format!(
            "Clients are sending more than {} bytes of requests at once, which is the limit of this gateway. Please try again later, and send requests without pauses inside.",
            self.bytes_max
        )))
    }
}

/// Why a request does not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArrivalError {
    /// It is not waited for any longer, or not taken.
    #[error("the request was refused while it arrived")]
    Refused(Failure),
    /// Its connection ended, or it was cancelled.
    #[error("{0}")]
    Ended(Box<dyn std::error::Error + Send + Sync>),
}

/// The body of a request on its way.
pub(crate) struct Arriving<B> {
    body: B,
    intake: Intake,
    arrival: Arrival,
    prefix: Option<Prefix>,
    received: usize,
    counted: usize,
    /// Started when the request must be waited for: most requests arrive whole.
    timeout: Option<Pin<Box<Sleep>>>,
}

/// The beginning of a message, which may come in pieces.
#[derive(Default)]
struct Prefix {
    bytes: [u8; PREFIX_BYTES],
    length: usize,
}

impl Prefix {
    fn read(&mut self, data: &[u8]) {
        for (place, byte) in self.bytes[self.length..].iter_mut().zip(data) {
            *place = *byte;
            self.length += 1;
        }
    }

    /// The bytes that the message needs; none if it is too long to be read.
    fn announced(&self) -> usize {
        let [_, length @ ..] = self.bytes;
        let length = u32::from_be_bytes(length) as usize;
        if self.length < PREFIX_BYTES || length > MESSAGE_BYTES_MAX { 0 } else { length }
    }
}

impl<B> Arriving<B> {
    /// What has come so far is not kept.
    pub(crate) fn forget(&mut self) {
        self.intake.bytes.fetch_sub(self.counted, Ordering::Relaxed);
        (self.received, self.counted) = (0, 0);
    }

    fn count(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.received += data.len();
        let announced = self.prefix.as_mut().map_or(0, |prefix| {
            prefix.read(data);
            prefix.announced()
        });
        let needed = if announced > SHORT_BYTES_MAX { self.received.max(announced) } else { self.received };
        let more = needed.saturating_sub(self.counted);
        self.counted += more;
        self.intake.add(more, needed)
    }
}

impl<B> Body for Arriving<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = ArrivalError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ArrivalError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.arrival.waits(frame.is_pending());
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                let counted = frame.data_ref().map_or(Ok(()), |data| self.count(data));
                Poll::Ready(Some(counted.map(|()| frame).map_err(ArrivalError::Refused)))
            }
            Poll::Ready(other) => {
                Poll::Ready(other.map(|frame| frame.map_err(|error| ArrivalError::Ended(error.into()))))
            }
            Poll::Pending => {
                let limit = self.intake.arrival_timeout;
                let timeout = self.timeout.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
                let late = |()| Some(Err(ArrivalError::Refused(Failure::ArrivedTooLate(limit))));
                timeout.as_mut().poll(context).map(late)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Arriving<B> {
    fn drop(&mut self) {
        self.intake.bytes.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::starts::Starts;

    use super::*;

    /// A body that has some frames and then nothing more, but does not end.
    struct Half(Vec<Bytes>);

    impl Body for Half {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.0.pop().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
        }
    }

    async fn next(body: &mut Arriving<Half>) -> Result<usize, Failure> {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await.expect("no end");
        match frame {
            Ok(frame) => Ok(frame.data_ref().expect("data").len()),
            Err(ArrivalError::Refused(failure)) => Err(failure),
            Err(ArrivalError::Ended(error)) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused_until_something_is_whole() {
        let intake = Intake { bytes_max: 1_000_000, ..Intake::new() };
        let pieces = |pieces: &[&'static [u8]]| {
            let pieces = pieces.iter().rev().map(|piece| Bytes::from_static(piece)).collect();
            intake.receive_message(Half(pieces), Starts::new().gate().arrival(false))
        };
        let long = || pieces(&[&[0, 0], &[0x0a, 0, 0, 1]]);
        let (mut first, mut second, mut short) = (long(), long(), pieces(&[&[0, 0, 0, 0, 9]]));
        assert_eq!(next(&mut first).await.unwrap(), 2);
        assert_eq!(next(&mut first).await.unwrap(), 4);
        assert_eq!(intake.bytes.load(Ordering::Relaxed), 0x0a_0000, "the length of the message");
        assert_eq!(next(&mut second).await.unwrap(), 2);
        let refusal = next(&mut second).await.unwrap_err();
        let Failure::Exhausted(message) = refusal else { panic!("{refusal:?}") };
        assert!(message.contains("more than 1000000 bytes of requests at once"), "{message}");
        assert_eq!(next(&mut short).await.unwrap(), 5, "short requests are still taken");
        drop((first, second, short));
        let mut third = long();
        next(&mut third).await.unwrap();
        assert_eq!(next(&mut third).await.unwrap(), 4);
        drop(third);
        assert_eq!(intake.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn what_says_nothing_of_its_length_counts_as_it_comes() {
        let intake = Intake { bytes_max: 1_000, ..Intake::new() };
        let piece = || vec![Bytes::from(vec![b' '; 100_000])];
        let mut long = intake.receive(Half(piece()), Starts::new().gate().arrival(false));
        assert!(matches!(next(&mut long).await, Err(Failure::Exhausted(_))));
        drop(long);
        let mut short = intake.receive(Half(vec![Bytes::from_static(b"{}")]), Starts::new().gate().arrival(false));
        assert_eq!(next(&mut short).await.unwrap(), 2);
        assert_eq!(intake.bytes.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn half_a_request_is_not_waited_for_for_ever() {
        let intake = Intake { arrival_timeout: Duration::from_millis(20), ..Intake::new() };
        let arrival = Starts::new().gate().arrival(true);
        let mut body = intake.receive(Half(vec![Bytes::from_static(b"half")]), arrival);
        assert_eq!(next(&mut body).await.unwrap(), 4);
        let refusal = next(&mut body).await.unwrap_err();
        assert_eq!(refusal, Failure::ArrivedTooLate(Duration::from_millis(20)));
    }
}
