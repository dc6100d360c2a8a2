//! The protocol itself: what clients get who hold it loosely, and those who ask for what is not there.

use hostile::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, Raw, frame, header};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_published_once() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let path = "/v2/messages/publication";
    let body = r#"{"name":"paid","correlationKey":"bee","timeToLive":3600000,"messageId":"1","variables":{"a":1}}"#;
    let published = connection.ask("POST", path, body);
    assert_eq!(published.status, 200, "{}", published.body);
    let published = published.json();
    assert!(published["messageKey"].as_str().unwrap().parse::<i64>().unwrap() > 0);
    assert_eq!(published["tenantId"], "<default>");
    let refused = connection.ask("POST", path, body);
    assert!(refused.header("osmia-position").is_some(), "it is noted where a search can have read to");
    let (status, title, detail) = refused.problem(path);
    assert_eq!((status, &*title), (409, "ALREADY_EXISTS"));
    assert!(detail.contains("rejected with code 'ALREADY_EXISTS'"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_as_problems() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    let (creation, completion) = ("/v2/process-instances", "/v2/jobs/2251799813785249/completion");
    for (path, body, status, title, detail) in [
        (creation, "{", 400, "Bad Request", "not a JSON object"),
        (creation, "[]", 400, "Bad Request", "not a JSON object"),
        (creation, "{}", 400, "INVALID_ARGUMENT", "At least one of [processDefinitionId, processDefinitionKey]"),
        (
            creation,
            r#"{"processDefinitionId":"order","x":1}"#,
            400,
            "Bad Request",
            "Request property [x] cannot be parsed",
        ),
        (creation, r#"{"processDefinitionId":7}"#, 400, "Bad Request", "Request property [processDefinitionId]"),
        (creation, r#"{"processDefinitionId":"order","variables":[]}"#, 400, "Bad Request", "[variables]"),
        (
            creation,
            r#"{"processDefinitionId":"order","tenantId":"a"}"#,
            400,
            "INVALID_ARGUMENT",
            "tenant identifier 'a'",
        ),
        (
            "/v2/messages/publication",
            r#"{"name":"m","correlationKey":"k","businessId":"b"}"#,
            501,
            "UNIMPLEMENTED",
            "business ids",
        ),
        (creation, r#"{"processDefinitionId":"nothing"}"#, 404, "NOT_FOUND", "Command 'CREATE' rejected"),
        (creation, r#"{"processDefinitionKey":"5"}"#, 404, "NOT_FOUND", "Command 'CREATE' rejected"),
        (completion, "{}", 404, "NOT_FOUND", "no such job was found"),
        (completion, r#"{"result":{"type":"userTask"}}"#, 404, "NOT_FOUND", "no such job was found"),
        (
            completion,
            r#"{"result":{"type":"other"}}"#,
            400,
            "INVALID_ARGUMENT",
            "Unexpected value 'other' for type. It must be one of: userTask, adHocSubProcess.",
        ),
        ("/v2/jobs/order/completion", "{}", 400, "Bad Request", "Expected jobKey to be the number of a key"),
        ("/v2/conditionals/evaluation", "{}", 400, "INVALID_ARGUMENT", "No variables provided."),
        ("/v2/conditionals/evaluation", r#"{"variables":{}}"#, 400, "INVALID_ARGUMENT", "No variables provided."),
        (
            "/v2/conditionals/evaluation",
            r#"{"variables":{"x":1},"processDefinitionKey":"2251799813685999"}"#,
            404,
            "NOT_FOUND",
            "Expected to evaluate conditional for process definition key",
        ),
        ("/v2/signals/broadcast", "{}", 400, "INVALID_ARGUMENT", "No signalName provided."),
        ("/v2/signals/broadcast", r#"{"signalName":" "}"#, 400, "INVALID_ARGUMENT", "No signalName provided."),
        ("/v2/signals/broadcast", r#"{"signalName":"s","variables":[]}"#, 400, "Bad Request", "[variables]"),
        ("/v2/nothing", "{}", 404, "Not Found", "no operation POST /v2/nothing"),
        ("/v2/topology", "{}", 405, "Method Not Allowed", "There is GET, HEAD, OPTIONS"),
    ] {
        let answer = connection.ask("POST", path, body);
        let found = answer.problem(path);
        assert_eq!((found.0, &*found.1), (status, title), "{path} {body}: {}", answer.body);
        assert!(found.2.contains(detail), "{path} {body}: '{detail}' is missing in '{}'", found.2);
        let allow = if status == 405 { Some("GET, HEAD, OPTIONS") } else { None };
        assert_eq!(answer.header("allow"), allow);
    }
    let body = r#"{"processDefinitionId":"order"}"#;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=UTF-16"] {
        connection.send(&format!(
            "POST {creation} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let (status, _, detail) = connection.read(true).problem(creation);
        assert_eq!(status, 415);
        assert!(detail.contains(kind), "{detail}");
    }
    for (kind, mark) in [("application/json;charset=UTF8", ""), ("application/json; charset=\"utf-8\"", "\u{feff}")] {
        let body = format!("{mark}{body}");
        connection.send(&format!(
            "POST {creation} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        let answer = connection.read(true);
        assert_eq!(answer.status, 200, "{kind}: {}", answer.body);
    }
    let (_, metrics) = server.http("GET", "/actuator/prometheus", "");
    let counted = |labels: &str| {
        metrics.lines().any(|line| line.starts_with("http_server_requests_seconds_count") && line.contains(labels))
    };
    assert!(counted(r#"method="POST",uri="/v2/process-instances",status="404",outcome="CLIENT_ERROR""#), "{metrics}");
    assert!(counted(r#"uri="UNKNOWN",status="404""#), "what clients make up is no label");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_is_described() {
    let (server, _data) = start(&["--partitions", "2"]).await;
    let mut connection = Connection::open(&server);
    let topology = connection.ask("GET", "/v2/topology", "");
    assert_eq!(topology.status, 200);
    let found = topology.json();
    let port: u16 = server.grpc.rsplit(':').next().unwrap().parse().unwrap();
    assert_eq!((&found["brokers"][0]["port"], &found["partitionsCount"]), (&json!(port), &json!(2)));
    assert_eq!(
        found["brokers"][0]["partitions"][1],
        json!({"partitionId":2,"role":"leader","health":"healthy","state":"active"})
    );
    let head = connection.ask("HEAD", "/v2/topology", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some(&*topology.body.len().to_string())));
    let options = connection.ask("OPTIONS", "/v2/topology", "");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
    assert_eq!(connection.ask("GET", "/v2/status", "").status, 204);
    assert_eq!(connection.ask("HEAD", "/v2/status", "").status, 204);
    assert_eq!(connection.ask("GET", "/v2/license", "").json()["isCommercial"], false);
    assert!(server.ready_line.contains(&format!("REST http://{}", server.rest)), "{}", server.ready_line);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_follow_each_other_on_one_connection() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    // All at once, one of them wrong: the answers come in order.
    let creation = request("POST", "/v2/process-instances", r#"{"processDefinitionId":"order"}"#);
    let wrong = request("POST", "/v2/process-instances", "{}");
    connection.send(&[creation.clone(), wrong, request("GET", "/v2/status", ""), creation].concat());
    assert_eq!([0; 4].map(|_| connection.read(true).status), [200, 400, 204, 200]);
    // In pieces, in chunks, and announced before.
    for piece in [
        "POST /v2/process-instances HTT",
        "P/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-",
        "Encoding: chunked\r\n\r\n6\r\n{\"proc\r\n",
    ] {
        connection.send(piece);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let rest = r#"essDefinitionId":"order"}"#;
    connection.send(&format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()));
    assert_eq!(connection.read(true).status, 200);
    let body = r#"{"processDefinitionId":"order"}"#;
    connection.send(&format!(
        "POST /v2/process-instances HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    assert_eq!(connection.read(false).status, 100);
    connection.send(body);
    assert_eq!(connection.read(true).status, 200);
    connection.send("GET /v2/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(connection.read(true).status, 204);
    assert!(connection.is_at_its_end());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_before_it_is_read() {
    let (server, _data) = start(&[]).await;
    let path = "/v2/process-instances";
    let mut connection = Connection::open(&server);
    connection.send(&format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nContent-Length: 100000000\r\n\r\n{{"
    ));
    let (status, _, detail) = connection.read(true).problem(path);
    assert_eq!(status, 413);
    assert!(detail.contains("limit of 4194304 bytes"), "{detail}");
    // Without a length before.
    let mut connection = Connection::open(&server);
    connection.send(&format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    (0..8).for_each(|_| connection.send(&chunk));
    connection.send("0\r\n\r\n");
    assert_eq!(connection.read(true).status, 413, "who sends somewhat too much is told");
    assert_eq!(connection.ask("GET", "/v2/status", "").status, 204, "and may go on");
    // Headers.
    let mut connection = Connection::open(&server);
    connection.send("GET /v2/status HTTP/1.1\r\nHost: localhost\r\n");
    // No more than is read: who sends on may find the connection closed before the answer.
    let sent = "GET /v2/status HTTP/1.1\r\nHost: localhost\r\n".len();
    connection.send(&format!("X-Long: {}", "x".repeat((64 << 10) - sent - "X-Long: ".len())));
    assert_eq!(connection.read(false).status, 431);
    let mut connection = Connection::open(&server);
    assert_eq!(connection.ask("GET", "/v2/status", "").status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_much_that_nobody_wants_is_told_why_and_may_go_on() {
    let (server, _data) = start(&[]).await;
    let much = " ".repeat(8 << 20);
    for (path, content, status) in [
        ("/v2/nothing", JSON, 404),
        ("/v2/topology", JSON, 405),
        ("/v2/process-instances", "text/plain", 415),
        ("/v2/batch-operations/search", JSON, 501),
    ] {
        let mut connection = Connection::open(&server);
        connection.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content}\r\nContent-Length: {}\r\n\r\n",
            much.len()
        ));
        connection.send(&much);
        assert_eq!(connection.read(true).problem(path).0, status, "{path}");
        assert_eq!(connection.ask("GET", "/v2/status", "").status, 204, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_ends_the_connection() {
    let (server, _data) = start(&[]).await;
    for text in
        ["\x16\x03\x01\x02\x00\x01", "GET\r\n\r\n", "nonsense\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]
    {
        let mut connection = Connection::open(&server);
        connection.send(text);
        let mut answer = Vec::new();
        // A reset is an end too.
        let _ = connection.0.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 400"), "{text}: {}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(Connection::open(&server).ask("GET", "/v2/status", "").status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_says_to_whom_it_goes_and_has_whole_characters() {
    let (server, _data) = start(&[]).await;
    let mut connection = Connection::open(&server);
    connection.send("GET /v2/topology HTTP/1.1\r\n\r\n");
    let (status, _, detail) = connection.read(true).problem("/v2/topology");
    assert_eq!(status, 400);
    assert!(detail.contains("Host"), "{detail}");
    connection.send("GET /v2/status HTTP/1.0\r\n\r\n");
    assert_eq!(connection.read(true).status, 204, "HTTP/1.0 knows no such header");

    let mut connection = Connection::open(&server);
    let creation = "/v2/process-instances";
    for (body, title, words) in [
        (r#"{"processDefinitionId":"order","variables":{"a":"\ud83d"}}"#, "INVALID_ARGUMENT", "half of a character"),
        (r#"{"processDefinitionId":"order\udc00"}"#, "Bad Request", "Request property [processDefinitionId]"),
    ] {
        connection.refused(("POST", creation, body), 400, title, words);
    }
    let body = r#"{"processDefinitionId":"order","variables":{"a":"\ud83d\ude00"}}"#;
    connection.tell("POST", creation, body);
}

/// What browsers make of that is tried with one (`foreign_pages`).
#[tokio::test(flavor = "multi_thread")]
async fn both_ports_refuse_what_pages_of_other_origins_send() {
    let (server, _data) = start(&["--clock-control", "--allowed-hosts", "osmia.example, *.cluster.local"]).await;
    let own = [&*server.rest, &*server.management].map(|address| address.rsplit(':').next().unwrap().to_owned());
    for ((address, path), port) in
        [(&server.rest, "/v2/clock/reset"), (&server.management, "/actuator/clock")].into_iter().zip(own)
    {
        let method = if path.starts_with("/v2") { "POST" } else { "DELETE" };
        for (headers, status, words) in [
            ("Host: localhost\r\n".to_owned(), 200, ""),
            (
                format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n"),
                200,
                "",
            ),
            ("Host: osmia.example\r\n".to_owned(), 200, ""),
            ("Host: osmia.ns.svc.cluster.local:80\r\n".to_owned(), 200, ""),
            ("Host: evil.example\r\n".to_owned(), 403, "'evil.example' is not known as a name of this node"),
            ("Host: localhost\r\nOrigin: http://localhost:1\r\n".to_owned(), 403, "(Origin 'http://localhost:1')"),
            ("Host: localhost\r\nSec-Fetch-Site: same-site\r\n".to_owned(), 403, "(Sec-Fetch-Site 'same-site')"),
            ("Host: localhost\r\nContent-Type: text/plain\r\n".to_owned(), 415, "Content-Type 'text/plain'"),
        ] {
            let stream = TcpStream::connect(address).expect("the port listens");
            let mut connection = Connection(BufReader::new(stream), described::document(&server));
            connection.send(&format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n"));
            let answer = connection.read(true);
            if status == 200 {
                assert_eq!(answer.status / 100, 2, "{headers}: {}", answer.body);
            } else {
                let (found, _, detail) = answer.problem(path);
                assert_eq!(found, status, "{headers}: {detail}");
                assert!(detail.contains(words), "{headers}: {detail}");
            }
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_needs_no_upgrade() {
    let (server, _data) = start(&[]).await;
    let answers = tokio::task::spawn_blocking(move || {
        let mut raw = Raw::open(&server.rest);
        let ask = |stream: u32, method: &str, path: &str, body: &str| {
            let headers = [
                header(":method", method),
                header(":scheme", "http"),
                header(":path", path),
                header(":authority", "localhost"),
                header("content-type", JSON),
            ];
            let headers = frame(HEADERS, END_HEADERS, stream, &headers.concat());
            [headers, frame(DATA, END_STREAM, stream, body.as_bytes())].concat()
        };
        let creation = r#"{"processDefinitionId":"order"}"#;
        // All at once, on streams of their own.
        assert!(
            raw.send(
                &[ask(1, "POST", "/v2/process-instances", creation), ask(3, "POST", "/v2/process-instances", "{}")]
                    .concat()
            )
        );
        [raw.read_answer(), raw.read_answer()]
    });
    let mut bodies = answers.await.unwrap().map(|answer| String::from_utf8(answer.expect("an answer")).unwrap());
    bodies.sort_unstable_by_key(|body| body.contains("about:blank"));
    assert!(bodies[0].contains("\"processInstanceKey\":\""), "{}", bodies[0]);
    assert!(bodies[1].contains("\"status\":400"), "{}", bodies[1]);
}
