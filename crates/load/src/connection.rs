//! Connections to the gateways.

use std::time::Duration;

use gateway_interface::gateway_client::GatewayClient;
use gateway_interface::{TopologyRequest, TopologyResponse};
use serde::Serialize;
use tonic::Request;
use tonic::transport::Endpoint;

use crate::error::{LoadError, refused};
use crate::options::Options;
use crate::worker::Client;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
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

/// Opens so many HTTP/2 connections, spread over the addresses in turn.
pub(crate) async fn connect(options: &Options, connections: usize) -> Result<Vec<Client>, LoadError> {
    let mut clients = Vec::with_capacity(connections);
    for address in options.addresses.iter().cycle().take(connections) {
        let channel = endpoint(address)?
            .connect()
            .await
            .map_err(|error| LoadError::Connect { address: address.clone(), reason: innermost(&error) })?;
        clients.push(GatewayClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT_BYTES));
    }
    Ok(clients)
}

fn endpoint(address: &str) -> Result<Endpoint, LoadError> {
    let wrong = |reason: String| LoadError::Address { address: address.to_owned(), reason };
    if address.starts_with("https://") {
        return Err(wrong("TLS is not supported by the load generator".into()));
    }
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = Endpoint::from_shared(uri).map_err(|error| wrong(innermost(&error)))?;
    Ok(endpoint
        // Answers that were on their way when a request was given up are counted as errors as long as the connection
        // lives, and after a thousand of them the library would end it.
        .http2_max_local_error_reset_streams(None)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}

/// The error at the end of a chain says what happened, those before it only where.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Asks for the topology: shows that a gateway answers, and what it is.
pub(crate) async fn describe_server(client: &Client, timeout: Duration) -> Result<Server, LoadError> {
    let mut request = Request::new(TopologyRequest {});
    request.set_timeout(timeout);
    let TopologyResponse { cluster_size, partitions_count, replication_factor, gateway_version, .. } =
        client.clone().topology(request).await.map_err(|status| refused("Topology", &status))?.into_inner();
    Ok(Server { version: gateway_version, nodes: cluster_size, partitions: partitions_count, replication_factor })
}

#[cfg(test)]
mod tests {
    use super::*;

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
