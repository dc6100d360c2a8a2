//! Clients of before 8.9, where these take an answer otherwise.

use hyper::HeaderMap;
use hyper::header::USER_AGENT;

/// What the Java clients call themselves, with their version behind it.
const NAMES: [&str; 2] = ["camunda-client-java/", "zeebe-client-java/"];
/// The first version that knows what is answered since.
const VERSION: (u32, u32) = (8, 9);

/// Whether it is a Java client of before 8.9. The answer to a deletion had no content then, and these clients fail on any.
pub(super) fn expects_no_content(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let version = NAMES.iter().find_map(|name| agent.strip_prefix(name));
    version.and_then(numbers).is_some_and(|version| version < VERSION)
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-', ' ']).map(str::parse);
    match (parts.next()?, parts.next()?) {
        (Ok(major), Ok(minor)) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_java_clients_of_before_want_nothing() {
        let expects = |agent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent.parse().expect("a value"));
            expects_no_content(&headers)
        };
        for older in ["camunda-client-java/8.8.12", "camunda-client-java/8.8-SNAPSHOT", "zeebe-client-java/8.6.0"] {
            assert!(expects(older), "{older}");
        }
        for other in [
            "camunda-client-java/8.9.0",
            "camunda-client-java/8.10.1",
            "camunda-client-java/9.0.0",
            "camunda-client-java/development",
            "camunda-client-java/8",
            "node",
            "curl/8.8.0",
            "",
        ] {
            assert!(!expects(other), "{other}");
        }
        assert!(!expects_no_content(&HeaderMap::new()));
    }
}
