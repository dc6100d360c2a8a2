//! Large answers in fewer bytes, for clients that understand it.
//!
//! Jobs are never compressed: their workers wait for them, and they come piece by piece.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

use super::response::ApiBody;

/// A smaller answer is sent as it is: its client would wait longer for the compression than for the bytes.
const COMPRESSED_BYTES_MIN: usize = 16 << 10;

/// The same answer in the way that the headers of its request ask for.
pub(super) async fn compress(headers: &HeaderMap, mut response: Response<ApiBody>) -> Response<ApiBody> {
    if response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let Some(text) = response.body_mut().whole() else { return response };
    if text.len() < COMPRESSED_BYTES_MIN || !accepts_gzip(headers) {
        return response;
    }
    let plain = text.clone();
    // Other requests would wait as long as this takes. Without an answer the server is going down, and sends it plain.
    if let Ok(compressed) = tokio::task::spawn_blocking(move || gzip(&plain)).await {
        *text = compressed;
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn gzip(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(text).and_then(|()| encoder.finish());
    compressed.expect("writing to memory cannot fail").into()
}

/// Whether it is named, and not with the weight of what is not wanted.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse::<f32>().ok());
        is_gzip && weight.is_none_or(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::super::response;
    use super::*;

    async fn answer(accepted: &str, bytes: usize) -> (Response<ApiBody>, Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accepted.parse().expect("a value"));
        let mut response = compress(&headers, response::json(vec![b'x'; bytes])).await;
        let body = response.body_mut().whole().map(|text| text.to_vec()).unwrap_or_default();
        (response, body)
    }

    #[tokio::test]
    async fn only_large_answers_and_only_for_those_who_understand() {
        for accepted in ["gzip", "deflate, GZIP;q=0.5", "br;q=1, gzip"] {
            let (response, body) = answer(accepted, COMPRESSED_BYTES_MIN).await;
            assert_eq!(response.headers()[CONTENT_ENCODING], "gzip", "{accepted}");
            assert!(body.len() < COMPRESSED_BYTES_MIN / 10);
            let mut text = Vec::new();
            GzDecoder::new(&body[..]).read_to_end(&mut text).expect("it is whole");
            assert_eq!(text, vec![b'x'; COMPRESSED_BYTES_MIN]);
        }
        for (accepted, bytes) in [("gzip", COMPRESSED_BYTES_MIN - 1), ("gzip;q=0", 1 << 20), ("identity, br", 1 << 20)]
        {
            let (response, body) = answer(accepted, bytes).await;
            assert_eq!((response.headers().get(CONTENT_ENCODING), body.len()), (None, bytes), "{accepted}");
        }
    }
}
