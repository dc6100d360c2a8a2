//! `osmia cluster`: how the nodes of a cluster are, and what an operator does about them.

pub(crate) mod members;
pub(crate) mod status;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::ask::table_lines;
use crate::configuration::duration;
use crate::management_server::{self, Answer, ManagementServer, Method};
use crate::outcome::Outcome;
use crate::output::Output;
use status::{ClusterStatus, NodeStatus, ReplicaRole, ReplicaStatus};

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the nodes with their replicas as one node sees them; fails when a partition has no leader.
    Status(StatusArguments),
    /// Give the place of a node whose disk is gone to the empty data directory that it was started with.
    Replace(ReplaceArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    server: ManagementServer,
    /// How long the answer may take
    #[arg(long, value_parser = duration, default_value = "3s")]
    timeout: Duration,
    /// Print what the node answers, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplaceArguments {
    /// The number of the node whose disk is gone. Another node is asked.
    #[arg(value_name = "NODE")]
    node: u32,
    #[command(flatten)]
    server: ManagementServer,
    /// How long the answer may take
    #[arg(long, value_parser = duration, default_value = "30s")]
    timeout: Duration,
    /// Print what the node answers, as JSON
    #[arg(long)]
    json: bool,
}

/// Why there is no answer, or why it is bad news.
#[derive(Debug, thiserror::Error)]
enum ClusterError {
    #[error("{0}")]
    Refused(String),
    #[error("{url} answered {status} and not as a node of this version. Is this the management port, 9600 by default?")]
    NotCluster { url: String, status: u16 },
    #[error("{partitions} no leader: {why}. osmia health at each node says what is not well there")]
    NoLeader { partitions: String, why: &'static str },
}

pub(crate) fn run(command: &ClusterCommand) -> Outcome {
    match command {
        ClusterCommand::Status(arguments) => show(arguments),
        ClusterCommand::Replace(arguments) => replace(arguments),
    }
}

fn show(arguments: &StatusArguments) -> Outcome {
    let url = arguments.server.url("/cluster")?;
    let answer = management_server::ask(Method::Get, &url, arguments.timeout)?;
    let status: ClusterStatus = match serde_json::from_value(answer.body.clone()) {
        Ok(status) => status,
        Err(_) => return Err(refused(&answer).into()),
    };
    Output::new(arguments.json).say(text(&status).join("\n"), || answer.body)?;
    let leaderless: Vec<_> = status.leaderless().iter().map(u16::to_string).collect();
    if leaderless.is_empty() {
        return Ok(());
    }
    let partitions = match leaderless.as_slice() {
        [one] => format!("Partition {one} has"),
        several => format!("The partitions {} have", several.join(", ")),
    };
    Err(ClusterError::NoLeader { partitions, why: "fewer than half of the nodes are reached, or they elect one now" }
        .into())
}

fn replace(arguments: &ReplaceArguments) -> Outcome {
    let url = arguments.server.url(&format!("/cluster/members/{}/replace", arguments.node))?;
    let answer = management_server::ask(Method::Post, &url, arguments.timeout)?;
    match answer.message().map(str::to_owned) {
        Some(message) if answer.status == 200 => Ok(Output::new(arguments.json).say(&message, || json!(answer.body))?),
        _ => Err(refused(&answer).into()),
    }
}

fn refused(answer: &Answer) -> ClusterError {
    match answer.message() {
        Some(message) => ClusterError::Refused(message.to_owned()),
        None => ClusterError::NotCluster { url: answer.url.clone(), status: answer.status },
    }
}

/// Lines for people.
fn text(status: &ClusterStatus) -> Vec<String> {
    let ClusterStatus { cluster_id, partitions_count, replication_factor, answered_by, nodes } = status;
    let headings =
        ["node", "address", "version", "directory", "partition", "role", "health", "term", "lag", "last contact"];
    let rows: Vec<Vec<String>> =
        std::iter::once(headings.map(str::to_owned).to_vec()).chain(nodes.iter().flat_map(rows)).collect();
    let first = format!(
        "cluster {cluster_id}: {} node(s), {partitions_count} partition(s), {replication_factor} replica(s) each, as node \
         {answered_by} sees it",
        nodes.len()
    );
    std::iter::once(first).chain(table_lines(&rows)).collect()
}

/// A line for each replica; the first one says whose they are.
fn rows(node: &NodeStatus) -> Vec<Vec<String>> {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let directory = match (&node.directory_id, node.starts) {
        (Some(id), Some(starts)) => format!("{id}, start {starts}"),
        (id, _) => known(id),
    };
    // Without a gateway that is heard of, at least where it should be.
    let address = known(if node.address.is_some() { &node.address } else { &node.cluster_address });
    let mut of_node = vec![node.node_id.to_string(), address, known(&node.version), directory];
    if node.partitions.is_empty() {
        of_node.extend(["-", "not heard from", "-", "-", "-"].map(str::to_owned));
        of_node.push(node.last_contact_milliseconds.map_or_else(|| "-".to_owned(), since));
        return vec![of_node];
    }
    let mut rows = Vec::new();
    for replica in &node.partitions {
        let empty = vec![String::new(); of_node.len()];
        let mut row = if rows.is_empty() { of_node.clone() } else { empty };
        // Of other nodes it is known how long ago they said all of this.
        let contact = replica.last_contact_milliseconds.or(node.last_contact_milliseconds);
        row.extend(columns(replica));
        row.push(contact.map_or_else(|| "-".to_owned(), since));
        rows.push(row);
    }
    rows
}

fn columns(replica: &ReplicaStatus) -> [String; 5] {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let role = match (replica.role, replica.is_voter) {
        (ReplicaRole::Follower, Some(false)) => "learner".to_owned(),
        (role, _) => word(json!(role)),
    };
    [
        replica.partition_id.to_string(),
        role,
        word(json!(replica.health)),
        number(replica.term),
        number(replica.lag_entries),
    ]
}

fn since(milliseconds: u64) -> String {
    match milliseconds {
        ..10_000 => format!("{milliseconds} ms"),
        _ => format!("{} s", milliseconds / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_replica_and_for_each_node_that_is_not_there() {
        let status: ClusterStatus = serde_json::from_value(json!({
            "clusterId": "c", "partitionsCount": 2, "replicationFactor": 2, "answeredBy": 0, "nodes": [
                { "nodeId": 0, "address": "a:1", "version": "8.8", "directoryId": "f0", "starts": 3, "partitions": [
                    { "partitionId": 1, "role": "leader", "health": "healthy", "leader": 0, "term": 5 },
                    { "partitionId": 2, "role": "follower", "health": "leftOut", "isVoter": false, "lagEntries": 7, "lastContactMilliseconds": 12 },
                ]},
                { "nodeId": 1, "clusterAddress": "b:2", "lastContactMilliseconds": 61_000, "partitions": [] },
            ],
        }))
        .expect("a status");
        assert_eq!(
            text(&status),
            [
                "cluster c: 2 node(s), 2 partition(s), 2 replica(s) each, as node 0 sees it",
                "node  address  version  directory    partition  role            health   term  lag  last contact",
                "0     a:1      8.8      f0, start 3  1          leader          healthy  5     -    -",
                "                                     2          learner         leftOut  -     7    12 ms",
                "1     b:2      -        -            -          not heard from  -        -     -    61 s",
            ]
        );
        assert_eq!(status.leaderless(), [2]);
    }
}
