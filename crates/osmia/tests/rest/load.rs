//! The load generator over REST.

use super::*;

#[test]
fn instances_are_created_and_completed_over_rest() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&data.path().join("data"), &["--partitions", "2"]);
    let mut skipped = 0;
    for flags in [&["--poll"][..], &["--poll", "--connection-per-request"], &[]] {
        let mut arguments =
            vec!["load", "rate", "one-task", "--rate", "50", "--duration", "1s", "--warm-up", "0s", "--json"];
        arguments.extend(["--protocol", "rest", "--rest-address", &server.rest, "--address", &server.grpc]);
        arguments.extend(["--fsync-directory", data.path().to_str().unwrap()]);
        arguments.extend(flags);
        let output = program().args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{flags:?}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["settings"]["rest"]["addresses"][0], *server.rest);
        assert_eq!(report["failure"], json!(null), "{report}");
        // Those that were a second late.
        skipped += report["outcome"]["rate"]["skipped_sends"].as_u64().unwrap_or_else(|| panic!("{report}"));
    }
    let (_, metrics) = server.http("GET", "/actuator/prometheus", "");
    let count = |uri: &str, status: u16| {
        let name = format!("http_server_requests_seconds_count{{method=\"POST\",uri=\"{uri}\",status=\"{status}\"");
        let line = metrics.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("no {name}"));
        line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count")
    };
    let (created, completed) = (count("/v2/process-instances", 200), count("/v2/jobs/{jobKey}/completion", 204));
    assert!(created + skipped >= 150 && completed + skipped >= 150, "{created} {completed} {skipped}");
    assert!(count("/v2/jobs/activation", 200) >= 2);
}
