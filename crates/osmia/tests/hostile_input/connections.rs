//! Clients that open too much, read nothing, or send what is no request.

use hostile::frames::*;

use super::*;
use tonic::codec::CompressionEncoding;

fn stream(job_type: &str, timeout: i64) -> StreamActivatedJobsRequest {
    StreamActivatedJobsRequest {
        r#type: job_type.to_owned(),
        worker: "test".to_owned(),
        timeout,
        ..StreamActivatedJobsRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_opens_ten_thousand_streams() {
    const STREAMS: usize = 10_000;
    let mut node = Node::start(&[]).await;
    deploy(&mut node.client, one_task("order", "work")).await;
    let (before, _) = node.memory();
    let open = |count: usize| {
        let opening = (0..count).map(|_| {
            let mut client = node.client.clone();
            tokio::spawn(async move { client.stream_activated_jobs(stream("work", 3_000)).await })
        });
        opening.collect::<Vec<_>>()
    };
    let mut streams = Vec::with_capacity(STREAMS);
    for opening in open(STREAMS) {
        streams.push(within(SOON, opening).await.unwrap().expect("so many are allowed").into_inner());
    }
    let (opened, _) = node.memory();
    assert!(opened < before + 500, "{before} MiB, then {opened} MiB");
    node.goes_on().await;
    node.client.create_process_instance(creation("order", "{}")).await.unwrap();
    drop(streams);
    eventually("the streams are gone", || node.metric("zeebe_gateway_job_stream_clients") == 0.0).await;
    // At once if the connection had not taken it, else when the stream's time for it is over.
    let mut jobs = within(3 * LIMIT, jobs(&mut node.client, "work")).await;
    assert_eq!(jobs.len(), 1, "the job of a stream that is gone comes back");
    node.client.complete_job(completion(jobs.remove(0).key, "")).await.unwrap();
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading() {
    let mut node = Node::start(&[]).await;
    deploy(&mut node.client, one_task("order", "work")).await;
    let (before, _) = node.memory();
    // Separate connections, whose streams nobody reads.
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let mut client = node.server.client().await;
        stalled.push((client.stream_activated_jobs(stream("work", 8_000)).await.unwrap(), client));
    }
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(20_000));
    let create = (0..1_000).map(|_| {
        let (mut client, request) = (node.client.clone(), creation("order", &variables));
        tokio::spawn(async move { client.create_process_instance(request).await.map(|_| ()) })
    });
    let mut refused = 0;
    for created in create.collect::<Vec<_>>() {
        refused += usize::from(within(SOON, created).await.unwrap().is_err());
    }
    // The other jobs go to the client that reads, and once the stalled clients are gone, theirs do too.
    let mut others = 0;
    loop {
        let jobs = within(SOON, activate(&mut node.client, poll("work", -1))).await;
        others += jobs.len();
        if jobs.is_empty() {
            break;
        }
    }
    assert!(others >= 300, "{others}");
    node.goes_on().await;
    let (after, _) = node.memory();
    assert!(after < before + 400, "{before} MiB, then {after} MiB");
    drop(stalled);
    while others + refused < 1_000 {
        // What was on the wire already comes back when its lock ends.
        let jobs = within(2 * SOON, activate(&mut node.client, poll("work", 12_000))).await;
        assert!(!jobs.is_empty(), "a job of a client that is gone does not come back: {others} and {refused}");
        others += jobs.len();
    }
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_frames_and_no_frames() {
    let node = Node::start(&[]).await;
    let grpc = node.server.grpc.clone();
    let headers = request(1, "Topology");
    let large_headers: Vec<u8> = (0..200).flat_map(|number| header(&format!("x-{number}"), &"x".repeat(120))).collect();
    let opened = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let after_opening = |frames: &[&[u8]]| [&opened[..], &frames.concat()].concat();
    let garbage: Vec<u8> = (0..10_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    // What is sent, and whether the server ends the connection because of it.
    let cases: Vec<(&str, Vec<u8>, bool)> = vec![
        ("nothing", Vec::new(), false),
        ("half a preface", PREFACE[..10].to_vec(), false),
        ("half a frame header", after_opening(&[&headers[..5]]), false),
        ("half a frame", after_opening(&[&headers[..40]]), false),
        ("a request without a body", after_opening(&[&headers]), false),
        ("half a message", after_opening(&[&headers, &frame(DATA, 0, 1, &message_prefix(1_000))]), false),
        ("garbage", garbage.clone(), true),
        ("garbage behind the preface", after_opening(&[&garbage]), true),
        ("another protocol", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaa".to_vec(), true),
        ("a frame of 16 MB", after_opening(&[&frame_of_length(0xff_ffff, DATA, 0, 1, &[0; 100])]), true),
        ("data on no stream", after_opening(&[&frame(DATA, 0, 0, &[0; 10])]), true),
        ("a stream of the server", after_opening(&[&request(2, "Topology")]), true),
        ("a continuation of nothing", after_opening(&[&frame(CONTINUATION, END_HEADERS, 1, &[])]), true),
        ("headers that are none", after_opening(&[&frame(HEADERS, END_HEADERS, 1, &[0xff; 100])]), true),
        ("settings of a wrong length", after_opening(&[&frame(SETTINGS, 0, 0, &[0; 5])]), true),
    ];
    let mut open = Vec::new();
    for (what, bytes, ends) in cases {
        for _ in 0..10 {
            let mut raw = Raw::connect(&grpc);
            raw.send(&bytes);
            if ends {
                let raw = tokio::task::spawn_blocking(move || raw.read_to_end().is_some());
                assert!(raw.await.unwrap(), "{what}: the connection stays open");
            } else {
                open.push(raw);
            }
        }
    }
    // Headers without an end: refused, or the connection is closed, but they are not collected.
    let (before, _) = node.memory();
    let mut raw = Raw::open(&grpc);
    raw.send(&frame(HEADERS, 0, 1, &large_headers[..10_000]));
    let sent = (0..10_000).take_while(|_| raw.send(&frame(CONTINUATION, 0, 1, &large_headers[..10_000]))).count();
    assert!(sent < 10_000, "100 MB of headers are taken");
    let (after, _) = node.memory();
    assert!(after < before + 100, "{before} MiB, then {after} MiB");
    node.goes_on().await;
    drop(open);
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_and_never_reads() {
    let node = Node::start(&[]).await;
    let (before, _) = node.memory();
    let grpc = node.server.grpc.clone();
    let mut raws = Vec::new();
    for _ in 0..5 {
        let mut raw = Raw::open(&grpc);
        // Each wants an answer, and there is no room for the answers on the way.
        for number in 0..100_000_u32 {
            let ping = frame(PING, 0, 0, &[1; 8]);
            let ask =
                [request(2 * number + 1, "Topology"), frame(DATA, 1, 2 * number + 1, &message_prefix(0))].concat();
            if !raw.send(&if number % 2 == 0 { ping.repeat(50) } else { ask }) {
                break;
            }
        }
        raws.push(raw);
    }
    node.goes_on().await;
    let (after, _) = node.memory();
    assert!(after < before + 300, "{before} MiB, then {after} MiB");
    drop(raws);
    node.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_send_most_of_a_message_and_wait() {
    const LONG: u32 = 4 << 20;
    let mut node = Node::start(&[]).await;
    let (before, _) = node.memory();
    let grpc = node.server.grpc.clone();
    let mut raws = Vec::new();
    for _ in 0..4 {
        let mut raw = Raw::open(&grpc);
        for stream in (1..200).step_by(2) {
            raw.send(&request(stream, "DeployResource"));
            raw.send(&frame(DATA, 0, stream, &[message_prefix(LONG), vec![0; 100]].concat()));
        }
        raws.push(raw);
    }
    let looks = raws.into_iter().map(|mut raw| tokio::task::spawn_blocking(move || (raw.is_answered(), raw)));
    let mut raws = Vec::new();
    for look in looks.collect::<Vec<_>>() {
        raws.push(look.await.unwrap());
    }
    assert!(raws.iter().any(|(is_refused, _)| *is_refused), "400 messages of 4 MiB are taken at once");
    let (after, _) = node.memory();
    assert!(after < before + 500, "{before} MiB, then {after} MiB");
    node.goes_on().await;
    drop(raws);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let mut taken = false;
    let (begin, mut tries) = (Instant::now(), 0);
    while tries < 50 || !taken && begin.elapsed() < LIMIT {
        tries += 1;
        taken |= node.client.create_process_instance(creation("ordinary", &large)).await.is_ok();
        tokio::time::sleep(Duration::from_millis(if taken { 0 } else { 100 })).await;
    }
    assert!(taken, "long requests are not taken any more");
    assert!(!activate(&mut node.client, poll("ordinary", LONG_POLL)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_none_or_too_large_when_unpacked() {
    let node = Node::start(&[]).await;
    let (before, _) = node.memory();
    let mut packed = node.client.clone().send_compressed(CompressionEncoding::Gzip);
    let bomb = creation("ordinary", &" ".repeat(64 << 20));
    let outcome = within(SOON, packed.create_process_instance(bomb)).await;
    assert_refused(outcome.map(|_| ()), Code::ResourceExhausted, "4194304 bytes");
    let (after, _) = node.memory();
    assert!(after < before + 50, "{before} MiB, then {after} MiB");
    let outcome = packed.create_process_instance(creation("nothing", "{}")).await;
    assert_refused(outcome.map(|_| ()), Code::NotFound, "nothing");

    let grpc = node.server.grpc.clone();
    let answers = tokio::task::spawn_blocking(move || {
        let texts: [&[u8]; 5] = [
            // A field of a length beyond the end, a field of no type, a text that is none, flags and lengths that are none.
            &[0, 0, 0, 0, 2, 0x0a, 0xff],
            &[0, 0, 0, 0, 2, 0x0f, 0x00],
            &[0, 0, 0, 0, 4, 0x0a, 0x02, 0xff, 0xfe],
            &[9, 0, 0, 0, 0],
            &[1, 0, 0, 0, 1, 7],
        ];
        let answer = |text: &[u8]| {
            let mut raw = Raw::open(&grpc);
            raw.send(&[request(1, "CreateProcessInstance"), frame(DATA, 1, 1, text)].concat());
            raw.is_answered()
        };
        texts.into_iter().map(answer).collect::<Vec<_>>()
    });
    assert_eq!(answers.await.unwrap(), [true; 5]);
    node.goes_on().await;
}
