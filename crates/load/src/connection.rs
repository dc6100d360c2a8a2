//! Connections to the gateways.

use std::time::Duration;

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::{TopologyRequest, TopologyResponse};
use serde::Serialize;
use tonic::Request;
use tonic::transport::Endpoint;

use crate::error::{LoadError, refused};
use crate::link::{Addresses, Client, Links};
use crate::options::Options;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The same when there are other addresses, so that one that is cut off holds nothing up.
const CONNECT_TIMEOUT_OF_SEVERAL: Duration = Duration::from_secs(1);
/// After so long without a frame a node is asked whether it lives, and after as long again it is given up.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
const MESSAGE_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// What the gateway says about its cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Server {
    /// The version it claims.
    pub version: String,
    /// Nodes.
    pub nodes: i32,
    /// Partitions.
    pub partitions: i32,
    /// Copies of each partition.
    pub replication_factor: i32,
}

/// Opens HTTP/2 connections, spread over the addresses in turn. Of several addresses some may be away.
pub(crate) async fn connect(options: &Options, connections: usize) -> Result<Links, LoadError> {
    connect_more(connections, &Addresses::new(&options.addresses)).await
}

/// The same, and what is sent over them counts together with what others send to the addresses.
pub(crate) async fn connect_more(connections: usize, addresses: &Addresses) -> Result<Links, LoadError> {
    let several = addresses.len() > 1;
    let mut opened = Vec::with_capacity(connections);
    let mut refused = None;
    for number in 0..connections {
        let number = number % addresses.len();
        let address = addresses.name(number);
        let endpoint = match several {
            true => endpoint(address)?
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE)
                .connect_timeout(CONNECT_TIMEOUT_OF_SEVERAL),
            false => endpoint(address)?,
        };
        let (channel, is_there) = match endpoint.connect().await {
            Ok(channel) => (channel, true),
            Err(error) => {
                let refusal = LoadError::Connect { address: address.to_owned(), reason: innermost(&error) };
                if !several {
                    return Err(refusal);
                }
                refused = Some(refusal);
                (endpoint.connect_lazy(), false)
            }
        };
        let client = GatewayClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT_BYTES);
        opened.push((number, client, is_there));
    }
    match refused {
        Some(refusal) if opened.iter().all(|(_, _, is_there)| !is_there) => Err(refusal),
        _ => Ok(Links::new(opened, addresses.clone())),
    }
}

fn endpoint(address: &str) -> Result<Endpoint, LoadError> {
    let wrong = |reason: String| LoadError::Address { address: address.to_owned(), reason };
    if address.starts_with("https://") {
        return Err(wrong("TLS is not supported by the load generator".into()));
    }
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = Endpoint::from_shared(uri).map_err(|error| wrong(innermost(&error)))?;
    Ok(endpoint
        // The library counts answers to abandoned requests as errors for as long as the connection lives, and would
        // close it after a thousand of them.
        .http2_max_local_error_reset_streams(None)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}

/// The last error of a chain says what happened, the others only where.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Asks for the topology, which shows that a gateway answers and what it is.
pub(crate) async fn describe_server(client: &Client, timeout: Duration) -> Result<Server, LoadError> {
    let mut request = Request::new(TopologyRequest {});
    request.set_timeout(timeout);
    let TopologyResponse { cluster_size, partitions_count, replication_factor, gateway_version, .. } =
        client.clone().topology(request).await.map_err(|status| refused("Topology", &status))?.into_inner();
    Ok(Server { version: gateway_version, nodes: cluster_size, partitions: partitions_count, replication_factor })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::oneshot;
    use tonic::Code;

    use super::*;

    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const END_STREAM_AND_HEADERS: u8 = 5;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// An answer without a message: status 200, and the status of gRPC for what is not implemented.
    fn answer(stream: u32) -> Vec<u8> {
        let header = |name: &str, value: &str| {
            let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
            [vec![0], text(name), text(value)].concat()
        };
        let headers = [vec![0x88], header("content-type", "application/grpc"), header("grpc-status", "12")].concat();
        frame(HEADERS, END_STREAM_AND_HEADERS, stream, &headers)
    }

    /// Kind and stream of the next frame.
    async fn next_frame(stream: &mut TcpStream) -> Option<(u8, u32)> {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.ok()?;
        let [high, middle, low, kind, _, id @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        stream.read_exact(&mut payload).await.ok()?;
        Some((kind, u32::from_be_bytes(id)))
    }

    /// A server that answers requests only after they were all given up, and after that each at once.
    async fn late_server(listener: TcpListener, requests: usize, all_there: oneshot::Sender<()>) {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.read_exact(&mut [0; 24]).await.expect("the preface");
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("the client reads");
        let (mut asked, mut given_up, mut all_there) = (0, Vec::new(), Some(all_there));
        while let Some((kind, id)) = next_frame(&mut stream).await {
            match kind {
                HEADERS if asked < requests => asked += 1,
                HEADERS => stream.write_all(&answer(id)).await.expect("the client reads"),
                RST_STREAM if given_up.len() < requests => {
                    given_up.push(id);
                    if given_up.len() == requests {
                        let late: Vec<u8> = given_up.iter().flat_map(|id| answer(*id)).collect();
                        stream.write_all(&late).await.expect("the client reads");
                    }
                }
                _ => {}
            }
            if asked == requests
                && let Some(all_there) = all_there.take()
            {
                all_there.send(()).expect("the test waits");
            }
        }
    }

    #[tokio::test]
    async fn late_answers_to_requests_that_were_given_up_do_not_end_the_connection() {
        const REQUESTS: usize = 1_500;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (all_there, asked) = oneshot::channel();
        let server = tokio::spawn(late_server(listener, REQUESTS, all_there));
        let channel = endpoint(&address).expect("an address").connect().await.expect("it listens");
        let client = GatewayClient::new(channel);
        let requests: Vec<_> = (0..REQUESTS)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move { client.topology(TopologyRequest {}).await.map(drop) })
            })
            .collect();
        asked.await.expect("all are asked");
        requests.iter().for_each(|request| request.abort());
        for request in requests {
            assert!(request.await.is_err(), "it was given up");
        }
        // After the late answers, because the server sends those first.
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..3 {
            let answer = client.clone().topology(TopologyRequest {}).await.expect_err("it is not implemented");
            assert_eq!(answer.code(), Code::Unimplemented, "{answer}");
        }
        server.abort();
    }

    #[test]
    fn addresses_may_lack_the_scheme_and_errors_name_them() {
        assert!(endpoint("127.0.0.1:26500").is_ok());
        assert!(endpoint("http://localhost:26500").is_ok());
        let error = endpoint("not an address").expect_err("spaces are not allowed");
        assert!(error.to_string().contains("\"not an address\""), "{error}");
        let error = endpoint("https://localhost:26500").expect_err("no TLS");
        assert!(error.to_string().contains("TLS"), "{error}");
    }
}
