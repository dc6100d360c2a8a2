//! Answers of HTTP.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::activation::JobsBody;
use super::problem::Problem;
use crate::answers::{AnswerSlot, Counted};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The body of an answer.
pub(crate) enum ApiBody {
    Whole(Whole),
    /// One that counts until it is read.
    Counted(Counted<Whole>),
    /// The same for jobs, which come piece by piece.
    Jobs(Box<Counted<JobsBody>>),
}

impl ApiBody {
    /// The text of an answer that is there as a whole.
    pub(super) fn whole(&mut self) -> Option<&mut Bytes> {
        match self {
            ApiBody::Whole(body) => body.0.as_mut(),
            ApiBody::Counted(body) => body.body_mut().0.as_mut(),
            ApiBody::Jobs(_) => None,
        }
    }
}

/// All of an answer at once.
pub(crate) struct Whole(Option<Bytes>);

impl Whole {
    fn new(bytes: Vec<u8>) -> Whole {
        Whole(Some(bytes).filter(|bytes| !bytes.is_empty()).map(Bytes::from))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            ApiBody::Whole(body) => Pin::new(body).poll_frame(context),
            ApiBody::Counted(body) => Pin::new(body).poll_frame(context),
            ApiBody::Jobs(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ApiBody::Whole(body) => body.is_end_stream(),
            ApiBody::Counted(body) => body.is_end_stream(),
            ApiBody::Jobs(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ApiBody::Whole(body) => body.size_hint(),
            ApiBody::Counted(body) => body.size_hint(),
            ApiBody::Jobs(body) => body.size_hint(),
        }
    }
}

fn response(status: StatusCode, content_type: HeaderValue, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Done, with something to tell.
pub(super) fn json(text: Vec<u8>) -> Response<ApiBody> {
    response(StatusCode::OK, JSON, ApiBody::Whole(Whole::new(text)))
}

/// The same for a text that is there already.
pub(super) fn json_of(text: Bytes) -> Response<ApiBody> {
    whole(JSON, text)
}

/// The same for something else.
pub(super) fn whole(media_type: HeaderValue, content: Bytes) -> Response<ApiBody> {
    response(StatusCode::OK, media_type, ApiBody::Whole(Whole(Some(content))))
}

/// The same for an answer that has its place among those that were not read.
pub(super) fn counted_json(text: Vec<u8>, slot: AnswerSlot) -> Response<ApiBody> {
    response(StatusCode::OK, JSON, ApiBody::Counted(Counted::new(Whole::new(text), slot)))
}

/// Jobs, as they come.
pub(super) fn jobs(body: JobsBody, slot: AnswerSlot) -> Response<ApiBody> {
    response(StatusCode::OK, JSON, ApiBody::Jobs(Box::new(Counted::new(body, slot))))
}

/// A status that says all.
pub(super) fn empty(status: StatusCode) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::Whole(Whole(None)));
    *response.status_mut() = status;
    response
}

/// What may be asked for at a path.
pub(super) fn options(methods: &str) -> Response<ApiBody> {
    let mut response = empty(StatusCode::NO_CONTENT);
    insert_allow(&mut response, methods);
    response
}

/// Why there is no answer to what was asked at a path.
pub(super) fn problem(problem: &Problem, path: &str) -> Response<ApiBody> {
    let (status, reason) = (problem.status.as_u16(), &problem.detail);
    tracing::debug!(path, status, reason, "a request failed");
    let body = ApiBody::Whole(Whole::new(problem.render(path)));
    let mut response = response(problem.status, PROBLEM, body);
    if let Some(methods) = &problem.allow {
        insert_allow(&mut response, methods);
    }
    response
}

fn insert_allow(response: &mut Response<ApiBody>, methods: &str) {
    let value = HeaderValue::from_str(methods).expect("names of methods are plain");
    response.headers_mut().insert(ALLOW, value);
}

/// The same answer for those who want to know only what it would be like.
pub(super) fn without_body(response: Response<ApiBody>) -> Response<ApiBody> {
    let length = response.body().size_hint().exact();
    let mut response = response.map(|_| ApiBody::Whole(Whole(None)));
    if let Some(length) = length.filter(|length| *length > 0) {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}
