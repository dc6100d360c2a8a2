//! What clients can make a node hold or write without taking it.

use hostile::frames::*;

use super::*;

/// A decision with a small request and a large answer.
fn large_decision(bytes: usize) -> Resource {
    let piece = "x".repeat(1_000);
    let content = format!(
        r#"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="graph" name="Graph" namespace="n">
  <decision id="large" name="Large"><literalExpression id="text">
    <text>string join(for i in 1..{} return "{piece}")</text>
  </literalExpression></decision>
</definitions>"#,
        bytes / piece.len()
    );
    Resource { name: "large.dmn".to_owned(), content: content.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_bounded() {
    const REQUESTS: u32 = 300;
    const ANSWER_BYTES: usize = 1_000_000;
    let mut node = Node::start(&[]).await;
    deploy(&mut node.client, large_decision(ANSWER_BYTES)).await;
    let (before, _) = node.memory();
    // The client opens no window for the answer beyond the first 64 KiB.
    let mut raw = Raw::open(&node.server.grpc);
    let message = [&[0x12, 5][..], b"large"].concat();
    for stream in (1..).step_by(2).take(REQUESTS as usize) {
        let body = [message_prefix(message.len() as u32), message.clone()].concat();
        assert!(raw.send(&[request(stream, "EvaluateDecision"), frame(DATA, 1, stream, &body)].concat()));
    }
    let unread = || node.metric("osmia_gateway_unread_answers_bytes");
    // Published every few seconds.
    eventually("answers wait to be read", || unread() >= 20e6).await;
    node.comes_to_rest().await;
    assert!(unread() <= f64::from(64 << 20), "{} bytes are not read", unread());
    let (after, _) = node.memory();
    assert!(after < before + 400, "{before} MiB, then {after} MiB");
    let evaluation = EvaluateDecisionRequest { decision_id: "large".into(), ..EvaluateDecisionRequest::default() };
    let mut reader = node.server.client().await;
    let answer = within(SOON, reader.evaluate_decision(evaluation)).await.expect("who reads is answered");
    let answer = answer.into_inner();
    assert!(answer.decision_output.len() > ANSWER_BYTES, "{}", answer.failure_message);
    node.goes_on().await;
    drop(raw);
    eventually("what is gone does not count", || unread() == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_streams_and_giving_them_up_writes_little() {
    const STREAMS: usize = 2_000;
    const WISH_BYTES: usize = 15_000;
    let node = Node::start(&["--partitions", "3"]).await;
    let written = || node.metric("osmia_log_written_bytes_total");
    let before = written();
    let wish = StreamActivatedJobsRequest {
        r#type: "work".into(),
        worker: "x".repeat(WISH_BYTES),
        timeout: 1_000,
        ..StreamActivatedJobsRequest::default()
    };
    let opening = (0..STREAMS).map(|_| {
        let (mut client, wish) = (node.client.clone(), wish.clone());
        tokio::spawn(async move { client.stream_activated_jobs(wish).await })
    });
    for opened in opening.collect::<Vec<_>>() {
        drop(within(SOON, opened).await.unwrap().expect("it is opened, now or later"));
    }
    eventually("the streams are gone", || node.metric("zeebe_gateway_job_stream_clients") == 0.0).await;
    node.comes_to_rest().await;
    let (written, sent) = (written() - before, (STREAMS * WISH_BYTES) as f64);
    // Each of three partitions would store each request.
    assert!(written < sent * 2.0, "{written} bytes are written for {sent}");
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_their_limit_are_closed() {
    let node = Node::start(&["--connections-max", "40"]).await;
    let connect = || Raw::open(&node.server.grpc);
    let raws: Vec<Raw> = (0..60).map(|_| connect()).collect();
    // The management port still takes connections.
    eventually("connections are refused", || node.metric("osmia_connections_refused_total") >= 30.0).await;
    assert!(node.metric("osmia_open_connections") <= 40.0);
    drop(raws);
    eventually("there is room again", || node.metric("osmia_open_connections") < 10.0).await;
    node.goes_on().await;
}
