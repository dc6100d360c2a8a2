//! A page to try the API with, by the library Swagger UI. Everything that it needs comes from here.

use std::io::Read;

use flate2::read::GzDecoder;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, VARY};

use super::compression::accepts_gzip;
use super::response::{self, ApiBody};

/// A file of the page.
struct File {
    path: &'static str,
    media_type: &'static str,
    content: Content,
}

enum Content {
    Text(&'static str),
    Compressed(&'static [u8]),
}

macro_rules! compressed {
    ($name:literal) => {
        Content::Compressed(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))
    };
}

const FILES: &[File] = &[
    File { path: "/swagger", media_type: "text/html; charset=utf-8", content: Content::Text(PAGE) },
    File { path: "/swagger/", media_type: "text/html; charset=utf-8", content: Content::Text(PAGE) },
    File { path: "/swagger/start.js", media_type: JAVASCRIPT, content: Content::Text(START) },
    File {
        path: "/swagger/swagger-ui-bundle.js",
        media_type: JAVASCRIPT,
        content: compressed!("swagger-ui-bundle.js"),
    },
    File {
        path: "/swagger/swagger-ui.css",
        media_type: "text/css; charset=utf-8",
        content: compressed!("swagger-ui.css"),
    },
    File { path: "/swagger/LICENSE", media_type: TEXT, content: compressed!("swagger-ui-license") },
    File { path: "/swagger/NOTICE", media_type: TEXT, content: compressed!("swagger-ui-notice") },
];

const TEXT: &str = "text/plain; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

const PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Osmia REST API</title>\n\
    <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/swagger/swagger-ui.css\">\n</head>\n<body>\n\
    <div id=\"api\"></div>\n<script src=\"/swagger/swagger-ui-bundle.js\"></script>\n\
    <script src=\"/swagger/start.js\"></script>\n</body>\n</html>\n";

const START: &str = "SwaggerUIBundle({url: '/v2/openapi.json', dom_id: '#api', docExpansion: 'none', deepLinking: true, \
                     validatorUrl: null});\n";

/// Nothing comes from elsewhere, and nobody else shows the page. The library writes styles into its elements.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// The file at a path.
pub(super) fn file(path: &str, headers: &HeaderMap) -> Option<Response<ApiBody>> {
    let file = FILES.iter().find(|file| file.path == path)?;
    let (content, is_compressed) = match file.content {
        Content::Text(text) => (Bytes::from_static(text.as_bytes()), false),
        Content::Compressed(bytes) if accepts_gzip(headers) => (Bytes::from_static(bytes), true),
        Content::Compressed(bytes) => {
            let mut content = Vec::new();
            GzDecoder::new(bytes).read_to_end(&mut content).expect("the build compressed it");
            (content.into(), false)
        }
    };
    let mut response = response::whole(HeaderValue::from_static(file.media_type), content);
    let headers = response.headers_mut();
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // Another version may have another page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    Some(response)
}
