//! Keeps web pages of other origins from commanding or reading a node.
//!
//! There is no login, so whoever reaches a port may do everything, and each browser on this machine
//! reaches it. A page can make its browser send requests that need nobody's leave (forms, images,
//! `fetch` without CORS), and it can let its own name point to this node after it was loaded (DNS
//! rebinding). Browsers say where a request comes from, in headers that pages cannot change.
//! Programs send none of these headers, and are not concerned.

use std::net::IpAddr;

use hyper::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, StatusCode, Uri};

/// Names and patterns in one list of hosts.
const HOSTS_MAX: usize = 100;

/// How a page is related to whom it asks, where it wants to show the answer, and as what.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What clients have stored must not run in the origin of the node, and nobody else shows it.
const NOTHING_RUNS: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");

/// What forms of web pages can send without asking first. The third that they can send carries
/// files of deployments.
const OF_FORMS: [&str; 2] = ["application/x-www-form-urlencoded", "text/plain"];

/// Names by which a node may be asked, besides those that are its own anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Name>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Any,
    Address(IpAddr),
    /// In lower case.
    Exact(String),
    /// All names that end so, from the point on.
    Below(String),
}

impl AllowedHosts {
    /// Reads a list with commas: names, addresses, patterns like `*.example.com`, or `*` for any
    /// name.
    ///
    /// # Errors
    /// When something of it is none of that, or there is too much. Completes the sentence "it must
    /// be …".
    pub fn read(text: &str) -> Result<AllowedHosts, &'static str> {
        const EXPECTED: &str = "a list of at most 100 host names or addresses, without scheme and port, like \
                                'osmia.example.com, *.svc.cluster.local', or * for any";
        let names: Result<Vec<Name>, _> = text.split(',').map(|name| Name::read(name.trim()).ok_or(EXPECTED)).collect();
        names.map(AllowedHosts).and_then(|hosts| if hosts.0.len() > HOSTS_MAX { Err(EXPECTED) } else { Ok(hosts) })
    }

    /// The same with the host that the ports are opened on. It names no host that pages could have
    /// if it is no name.
    pub fn with(mut self, host: &str) -> AllowedHosts {
        self.0.extend(Name::read(host));
        self
    }

    fn contain(&self, host: &str) -> bool {
        self.0.iter().any(|name| match name {
            Name::Any => true,
            Name::Address(known) => address(host) == Some(*known),
            Name::Exact(known) => known.eq_ignore_ascii_case(host),
            Name::Below(end) => is_below(host, end),
        })
    }
}

impl Name {
    fn read(text: &str) -> Option<Name> {
        let text = text.to_ascii_lowercase();
        if text == "*" {
            return Some(Name::Any);
        }
        if let Some(address) = address(&text) {
            return Some(Name::Address(address));
        }
        let (below, name) = text.strip_prefix("*.").map_or((false, &*text), |name| (true, name));
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        name.split('.').all(is_label).then(|| match below {
            true => Name::Below(format!(".{name}")),
            false => Name::Exact(name.to_owned()),
        })
    }
}

/// Whether a name is one of those that end so, and is longer.
fn is_below(host: &str, end: &str) -> bool {
    let at = host.len().saturating_sub(end.len());
    at > 0 && host.get(at..).is_some_and(|last| last.eq_ignore_ascii_case(end))
}

/// The address that a host is, with or without the brackets and the zone of version 6.
fn address(host: &str) -> Option<IpAddr> {
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let host = host.split_once('%').map_or(host, |(host, _)| host);
    host.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// A host and perhaps a port, as in `Host` and in the origin of a page.
#[derive(Debug, Clone, Copy)]
struct Authority<'a> {
    host: &'a str,
    port: Option<&'a str>,
}

impl<'a> Authority<'a> {
    fn read(text: &'a str) -> Authority<'a> {
        // The colons of an address of version 6 are in brackets.
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (text, None),
        };
        Authority { host: host.strip_suffix('.').unwrap_or(host), port }
    }

    fn is(self, other: Authority<'_>, usual_port: &str) -> bool {
        self.host.eq_ignore_ascii_case(other.host)
            && self.port.unwrap_or(usual_port) == other.port.unwrap_or(usual_port)
    }
}

/// Why a request is not answered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    /// The name by which the node is asked is not known to be its own.
    #[error(
        "'{0}' is not known as a name of this node, and a web page could have sent the request that lets its own name point here. Ask by an address of the node, or allow the name with the setting 'allowed-hosts' (OSMIA_ALLOWED_HOSTS)."
    )]
    Host(String),
    /// A page of another origin sends it.
    #[error(
        "The request comes from a web page of another origin ({0}), which may neither command nor read this node. If a proxy in between changes Host, let it keep that, or allow the name of the page with the setting 'allowed-hosts' (OSMIA_ALLOWED_HOSTS)."
    )]
    Page(String),
    /// It looks as a form sends it.
    #[error(
        "Content-Type '{0}' is what forms of web pages send, and they may not command this node. Send 'application/json', or no Content-Type if there is no body."
    )]
    Form(String),
}

impl Refusal {
    /// How HTTP calls it.
    pub fn status(&self) -> StatusCode {
        match self {
            Refusal::Host(_) | Refusal::Page(_) => StatusCode::FORBIDDEN,
            Refusal::Form(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

/// Looks at each request of a port before anything else does.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Where the port listens.
    bound: IpAddr,
    allowed: AllowedHosts,
}

impl Guard {
    /// For a port that listens on this address.
    pub fn new(bound: IpAddr, allowed: AllowedHosts) -> Guard {
        Guard { bound, allowed }
    }

    /// # Errors
    /// When the request may be the doing of a page of another origin.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let named = [uri.authority().map(|authority| authority.as_str()), text(headers, &HOST)];
        for name in named.into_iter().flatten() {
            if !self.is_own(Authority::read(name).host) {
                return Err(Refusal::Host(excerpt(name)));
            }
        }
        self.check_page(method, uri, headers)?;
        let kind = text(headers, &CONTENT_TYPE).map(|kind| kind.split(';').next().unwrap_or_default().trim());
        match kind.filter(|kind| OF_FORMS.iter().any(|form| form.eq_ignore_ascii_case(kind))) {
            Some(kind) if !is_safe(method) => Err(Refusal::Form(excerpt(kind))),
            _ => Ok(()),
        }
    }

    /// The same for a port that no page can reach by another name: gRPC needs HTTP/2, for which
    /// browsers want a certificate, and there is none for a name that was turned elsewhere.
    ///
    /// # Errors
    /// When a page of another origin sends it.
    pub fn check_page(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let (site, origin) = (text(headers, &SITE), text(headers, &ORIGIN));
        let is_same = site.is_some_and(|site| site == "same-origin");
        if let Some(site) = site.filter(|site| !is_same && *site != "none") {
            // Somebody follows a link, and the page that has it does not see where it leads.
            let is_shown = text(headers, &MODE) == Some("navigate") && text(headers, &DESTINATION) == Some("document");
            if !(is_shown && is_safe(method)) {
                let origin = origin.map(|origin| format!("Origin '{}', ", excerpt(origin))).unwrap_or_default();
                return Err(Refusal::Page(format!("{origin}Sec-Fetch-Site '{}'", excerpt(site))));
            }
        }
        let Some(origin) = origin else { return Ok(()) };
        let asked = uri.authority().map(|authority| authority.as_str()).or(text(headers, &HOST));
        let is_own = origin.split_once("://").is_some_and(|(scheme, page)| {
            let (page, usual_port) = (Authority::read(page), if scheme == "https" { "443" } else { "80" });
            // A proxy may have changed the host; then only what the browser says is left, about a
            // page with a name of this node.
            asked.is_some_and(|asked| page.is(Authority::read(asked), usual_port)) || is_same && self.is_own(page.host)
        });
        if is_own { Ok(()) } else { Err(Refusal::Page(format!("Origin '{}'", excerpt(origin)))) }
    }

    /// Whether no foreign page can have this name.
    fn is_own(&self, host: &str) -> bool {
        // Whoever reaches a port that is open to a network needs no browser to get there. What is
        // left are pages from elsewhere, whose names have points. An address is no name, and cannot
        // be turned elsewhere.
        let is_open = !self.bound.is_loopback();
        let is_own = match address(host) {
            Some(address) => is_open || address.is_loopback() || address == self.bound.to_canonical(),
            // Browsers never ask the network for these.
            None if host.eq_ignore_ascii_case("localhost") || is_below(host, ".localhost") => true,
            None => is_open && !host.is_empty() && !host.contains('.'),
        };
        is_own || self.allowed.contain(host)
    }
}

/// Whether a method only reads.
fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// What is no text is nothing that is known.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// As long as a name may be.
fn excerpt(text: &str) -> String {
    text.chars().take(255).collect()
}

/// Adds what tells browsers to take an answer for nothing else than it is, to run nothing of it,
/// and to give it to no page of another origin. A policy that is there already stays.
pub fn protect(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NOTHING_RUNS);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: [u8; 4] = [127, 0, 0, 1];

    /// What becomes of a request with these headers to a port that is opened on an address.
    fn check(bound: [u8; 4], allowed: &str, method: Method, headers: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value")));
        let allowed = AllowedHosts::read(allowed).unwrap_or_default();
        Guard::new(bound.into(), allowed).check(&method, &Uri::from_static("/v2/jobs"), &headers.collect())
    }

    #[test]
    fn a_node_is_asked_by_names_that_no_foreign_page_can_have() {
        let is_own = |bound, allowed, host| check(bound, allowed, Method::GET, &[("host", host)]).is_ok();
        for host in [
            "localhost:8080",
            "LOCALHOST",
            "localhost.",
            "osmia.localhost:1",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:80",
        ] {
            assert!(is_own(LOOPBACK, "", host), "{host}");
        }
        let foreign =
            ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "", "evil.example:127.0.0.1"];
        for host in foreign {
            assert!(!is_own(LOOPBACK, "", host) && !is_own([0; 4], "", host), "{host}");
            assert!(is_own(LOOPBACK, "*", host), "{host}");
        }
        // What reaches a port that is open to a network, but not one of this machine alone.
        for host in ["10.0.0.7:9600", "[fe80::1%25eth0]:8080", "osmia:8080", "0.0.0.0"] {
            assert!(is_own([0; 4], "", host) && is_own([10, 0, 0, 5], "", host), "{host}");
            assert!(!is_own(LOOPBACK, "", host), "{host}");
        }
        let allowed = "osmia.example.com, *.cluster.local,10.0.0.7,[::2]";
        for host in ["OSMIA.example.com.:443", "a.ns.svc.cluster.local", "10.0.0.7:8080", "[::2]:8080"] {
            assert!(is_own(LOOPBACK, allowed, host), "{host}");
        }
        for host in ["a.osmia.example.com", "cluster.local", "evilcluster.local", "10.0.0.8", "[::3]"] {
            assert!(!is_own(LOOPBACK, allowed, host), "{host}");
        }
        let refusal = check(LOOPBACK, "", Method::GET, &[("host", "evil.example")]).unwrap_err();
        assert!(refusal.to_string().contains("'evil.example'") && refusal.to_string().contains("allowed-hosts"));
        assert_eq!(check(LOOPBACK, "", Method::GET, &[]), Ok(()), "no browser sends that");
    }

    #[test]
    fn a_list_of_hosts_has_nothing_else_in_it() {
        for wrong in ["", "a,,b", "http://a", "a:80", "a/b", "*.", "a b", "*a", "ä.example", &"a,".repeat(101)] {
            assert!(AllowedHosts::read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(AllowedHosts::default().with("node.example"), AllowedHosts::read("node.example").expect("a name"));
        assert_eq!(AllowedHosts::default().with("no name"), AllowedHosts::default());
    }

    #[test]
    fn pages_of_other_origins_neither_command_nor_read() {
        const OWN: (&str, &str) = ("host", "localhost:8080");
        let refused = |method, headers: &[_]| {
            matches!(check(LOOPBACK, "osmia.example", method, &[&[OWN], headers].concat()), Err(Refusal::Page(_)))
        };
        for site in ["cross-site", "same-site", "something-new"] {
            assert!(refused(Method::POST, &[("sec-fetch-site", site)]), "{site}");
            assert!(refused(Method::GET, &[("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")]), "{site}");
            let navigates = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
            assert!(refused(Method::GET, &[&navigates[..], &[("sec-fetch-dest", "iframe")]].concat()), "{site}");
            let link = [&navigates[..], &[("sec-fetch-dest", "document")]].concat();
            assert!(!refused(Method::GET, &link), "a link leads here");
            assert!(refused(Method::POST, &link), "a form does not");
        }
        for origin in
            ["http://evil.example", "http://localhost:9000", "http://localhost", "http://127.0.0.1:8080", "null"]
        {
            assert!(refused(Method::POST, &[("origin", origin)]), "{origin}");
            assert!(refused(Method::GET, &[("origin", origin)]), "{origin}");
        }
        let same = ("sec-fetch-site", "same-origin");
        for own in [&[][..], &[same], &[("sec-fetch-site", "none")], &[("origin", "http://localhost:8080"), same]] {
            assert!(!refused(Method::POST, own), "{own:?}");
        }
        // A proxy has changed the host.
        assert!(!refused(Method::POST, &[("origin", "https://osmia.example"), same]));
        assert!(refused(Method::POST, &[("origin", "https://osmia.example")]), "whose page it is, nobody says");
        assert!(refused(Method::POST, &[("origin", "https://evil.example"), same]));
        let usual = [("host", "osmia.example"), ("origin", "https://osmia.example:443")];
        assert_eq!(check(LOOPBACK, "osmia.example", Method::POST, &usual), Ok(()));
    }

    #[test]
    fn what_forms_send_commands_nothing() {
        let sent = |method, kind| check(LOOPBACK, "", method, &[("host", "localhost"), ("content-type", kind)]);
        for kind in ["application/x-www-form-urlencoded", "Text/Plain; charset=utf-8"] {
            assert!(matches!(sent(Method::POST, kind), Err(Refusal::Form(_))), "{kind}");
            assert!(matches!(sent(Method::DELETE, kind), Err(Refusal::Form(_))), "{kind}");
            assert_eq!(sent(Method::GET, kind), Ok(()), "{kind}");
        }
        for kind in ["application/json", "multipart/form-data; boundary=b"] {
            assert_eq!(sent(Method::POST, kind), Ok(()), "{kind}");
        }
    }
}
