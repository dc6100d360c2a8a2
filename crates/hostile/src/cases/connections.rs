//! Clients of the protocol that open, take, or leave too much.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use gateway_interface::*;
use model_builder::ProcessBuilder;
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};

use super::{Case, cases, text};
use crate::node::Node;
use crate::victim::{Verdict, Victim, answered, creation, refusal, refused};

const CERTIFICATE: &[u8] = include_bytes!("../../../osmia/tests/tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../../../osmia/tests/tls/key.pem");
/// Until the node must have given up those that say nothing.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);

pub(super) fn cases() -> Vec<Case> {
    cases! { "clients and connections":
        short "1,000 streams, opened and dropped, ten times" streams_opened_and_dropped;
        long "1,000 streams with a specification of 16 kB" large_streams;
        short "streams of slow workers, and jobs of 1 MiB" slow_workers;
        long "two streams that nobody reads, and jobs of 3 MiB" unread_streams;
        short "20,000 polls at once" many_polls;
        long "1,000 polls, given up after a moment" polls_given_up;
        short "a thousand connections that say nothing" silent_connections;
        long "5,000 connections with a request each" many_connections;
        long "encrypted connections that say nothing after the handshake" silent_encrypted_connections;
        short "metadata of 1 MB" large_metadata;
        short "a message of 64 MB that is packed into a few kB" packed_bomb;
        short "a deadline of no time, 1,000 times" no_time;
        long "a management port that is asked slowly" slow_management;
    }
}

fn stream(job_type: &str, fetch: &[String]) -> StreamActivatedJobsRequest {
    StreamActivatedJobsRequest {
        r#type: job_type.to_owned(),
        worker: "hostile".to_owned(),
        timeout: 10_000,
        fetch_variable: fetch.to_vec(),
        ..StreamActivatedJobsRequest::default()
    }
}

async fn open_streams(victim: &Victim, count: usize, job_type: &str, fetch: &[String]) -> Verdict {
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let mut client = victim.client();
        let request = stream(&format!("{job_type}{}", number % 10), fetch);
        tasks.spawn(async move { client.stream_activated_jobs(request).await.map(drop) });
    }
    let (mut opened, mut said) = (0, String::new());
    while let Some(task) = tasks.join_next().await {
        match task.map_err(|error| error.to_string())? {
            Ok(()) => opened += 1,
            Err(status) => said = format!(", the others: {}", refusal(&status)?),
        }
    }
    Ok(format!("{opened} opened{said}"))
}

async fn streams_opened_and_dropped(victim: Victim) -> Verdict {
    let mut said = String::new();
    for _ in 0..10 {
        said = open_streams(&victim, 1_000, "hostile-stream", &[]).await?;
    }
    Ok(said)
}

async fn large_streams(victim: Victim) -> Verdict {
    let fetch: Vec<String> = (0..150).map(|number| format!("{number}{}", "v".repeat(100))).collect();
    open_streams(&victim, 1_000, "hostile-large-stream", &fetch).await
}

async fn task_with_jobs(victim: &Victim, id: &str, jobs: usize, bytes: usize) -> Verdict {
    let xml = ProcessBuilder::new(id).start("start").service_task("task", id).end("end").to_xml();
    victim.deploy(&format!("{id}.bpmn"), xml).await.map_err(|status| status.to_string())?;
    for number in 0..jobs {
        if let Err(status) = victim.create(id, &text(bytes)).await {
            return refusal(&status).map(|said| format!("after {number} instances: {said}"));
        }
    }
    Ok(format!("{jobs} instances"))
}

/// Opens streams on separate connections, and reads this many jobs of each.
async fn unread(victim: &Victim, job_type: &str, streams: usize, jobs: usize, bytes: usize) -> Verdict {
    let mut open = Vec::new();
    for _ in 0..streams {
        let mut client = victim.another_client().await?;
        let opened = client.stream_activated_jobs(stream(job_type, &[])).await;
        open.push((opened.map_err(|status| status.to_string())?, client));
    }
    let said = task_with_jobs(victim, job_type, jobs, bytes).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let now = victim.addresses.memory().unwrap_or_default();
    drop(open);
    Ok(format!("{said}, {now} with them"))
}

async fn slow_workers(victim: Victim) -> Verdict {
    unread(&victim, "hostile-slow", 10, 150, 1 << 20).await
}

async fn unread_streams(victim: Victim) -> Verdict {
    unread(&victim, "hostile-unread", 2, 100, 3 << 20).await
}

fn poll(job_type: &str, request_timeout: i64) -> ActivateJobsRequest {
    ActivateJobsRequest {
        r#type: job_type.to_owned(),
        worker: "hostile".to_owned(),
        timeout: 1_000,
        max_jobs_to_activate: 1,
        request_timeout,
        ..ActivateJobsRequest::default()
    }
}

async fn many_polls(victim: Victim) -> Verdict {
    let mut tasks = JoinSet::new();
    for number in 0..20_000 {
        let mut client = victim.client();
        let request = poll(&format!("hostile-poll{}", number % 100), 3_000);
        tasks.spawn(async move {
            let mut responses = client.activate_jobs(request).await?.into_inner();
            responses.message().await.map(drop)
        });
    }
    let (mut empty, mut said) = (0, String::new());
    while let Some(task) = tasks.join_next().await {
        match task.map_err(|error| error.to_string())? {
            Ok(()) => empty += 1,
            Err(status) => said = format!(", the others: {}", refusal(&status)?),
        }
    }
    Ok(format!("{empty} waited in vain{said}"))
}

async fn polls_given_up(victim: Victim) -> Verdict {
    for round in 0..20 {
        let mut tasks = JoinSet::new();
        for number in 0..1_000 {
            let mut client = victim.client();
            let patience = Duration::from_millis(1 + (round + number) % 13);
            let request = poll("hostile-given-up", 60_000);
            tasks.spawn(async move { tokio::time::timeout(patience, client.activate_jobs(request)).await.is_ok() });
        }
        while tasks.join_next().await.is_some() {}
    }
    Ok("20,000 polls".to_owned())
}

async fn silent_connections(victim: Victim) -> Verdict {
    let address = victim.addresses.grpc.trim_start_matches("http://").to_owned();
    let open = tokio::task::spawn_blocking(move || {
        (0..1_000).map_while(|_| TcpStream::connect(&address).ok()).collect::<Vec<TcpStream>>()
    });
    let open = open.await.map_err(|error| error.to_string())?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    answered(victim.another_client().await?.topology(TopologyRequest {}).await)?;
    Ok(format!("{} connections, and one more with an answer", open.len()))
}

async fn many_connections(victim: Victim) -> Verdict {
    let mut clients = Vec::new();
    for _ in 0..5_000 {
        // At some number the node, or this machine, has enough.
        let Ok(mut client) = victim.another_client().await else { break };
        if client.topology(TopologyRequest {}).await.is_err() {
            break;
        }
        clients.push(client);
    }
    Ok(format!("{} connections, {} descriptors", clients.len(), victim.addresses.descriptors()))
}

/// On a separate node with a certificate.
async fn silent_encrypted_connections(victim: Victim) -> Verdict {
    const COUNT: usize = 200;
    let data = tempfile::tempdir().map_err(|error| error.to_string())?;
    let write = |name: &str, content: &[u8]| {
        let path = data.path().join(name);
        std::fs::write(&path, content).map(|()| path.display().to_string()).map_err(|error| error.to_string())
    };
    let (certificate, key) = (write("certificate.pem", CERTIFICATE)?, write("key.pem", KEY)?);
    let flags = ["--tls-certificate", &certificate, "--tls-key", &key];
    let node = Node::start(&victim.binary, &data.path().join("data"), &flags)?;
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).map_err(|error| error.to_string())?;
    roots.add(certificate).map_err(|error| error.to_string())?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let before = node.addresses.descriptors();
    let address = node.addresses.grpc.trim_start_matches("http://").trim_start_matches("https://").to_owned();
    let mut open = Vec::new();
    for _ in 0..COUNT {
        let socket = tokio::net::TcpStream::connect(&address).await.map_err(|error| error.to_string())?;
        let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
        open.push(connector.connect(name, socket).await.map_err(|error| error.to_string())?);
    }
    // The node must end them: reading reaches the end, after what it sent at the beginning.
    let ended = async {
        for connection in &mut open {
            let mut buffer = [0; 1_024];
            while !matches!(connection.read(&mut buffer).await, Ok(0) | Err(_)) {}
        }
    };
    let outcome = tokio::time::timeout(SILENCE_LIMIT, ended).await;
    let after = node.addresses.descriptors();
    match outcome {
        Ok(()) => Ok(format!("{COUNT} connections were ended, {after} descriptors as before {before}")),
        Err(_) => Err(format!("{} descriptors are held by clients that say nothing", after.saturating_sub(before))),
    }
}

async fn large_metadata(victim: Victim) -> Verdict {
    let mut client = victim.another_client().await?;
    let mut request = Request::new(TopologyRequest {});
    let value = MetadataValue::try_from("x".repeat(1_000_000)).map_err(|error| error.to_string())?;
    request.metadata_mut().insert("hostile", value);
    match client.topology(request).await {
        Ok(_) => Err("a megabyte of metadata is taken".to_owned()),
        Err(status) => Ok(format!("{:?}: {}", status.code(), status.message())),
    }
}

async fn packed_bomb(victim: Victim) -> Verdict {
    let mut packed = victim.another_client().await?.send_compressed(CompressionEncoding::Gzip);
    let outcome = packed.create_process_instance(creation("bystander", &" ".repeat(64 << 20))).await;
    refused(outcome, Code::ResourceExhausted, "4194304 bytes")
}

async fn no_time(victim: Victim) -> Verdict {
    let mut tasks = JoinSet::new();
    for _ in 0..1_000 {
        let mut client = victim.client();
        tasks.spawn(async move {
            let mut request = Request::new(creation("bystander", "{}"));
            request.set_timeout(Duration::from_nanos(1));
            client.create_process_instance(request).await.is_ok()
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok("1,000 requests".to_owned())
}

async fn slow_management(victim: Victim) -> Verdict {
    use std::io::Write;

    let address = victim.addresses.management.clone();
    let open = tokio::task::spawn_blocking(move || {
        let mut open = Vec::new();
        for _ in 0..500 {
            let Ok(mut stream) = TcpStream::connect(&address) else { break };
            // Half a request, whose end never comes.
            let _ = stream.write_all(
                b"POST /actuator/clock/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n{",
            );
            open.push(stream);
        }
        open
    });
    let open = open.await.map_err(|error| error.to_string())?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    match victim.addresses.metric("zeebe_health", "", f64::max) {
        Some(_) => Ok(format!("{} half requests, and one more with an answer", open.len())),
        None => Err("the management port answers nobody any more".to_owned()),
    }
}
