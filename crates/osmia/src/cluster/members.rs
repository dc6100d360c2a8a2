//! What an operator does to the members of a cluster.

use broker::Client;

use crate::configuration::ClusterSettings;

/// Gives the place of a node whose disk is gone to the empty data directory that it has now. May block.
///
/// # Errors
/// Sentences about what was not done, and why.
pub(crate) fn replace(client: &Client, cluster: Option<&ClusterSettings>, node: u32) -> Result<String, String> {
    match cluster {
        Some(cluster) if !cluster.members.contains_key(&node) => {
            let last = cluster.members.len() - 1;
            Err(format!("Node {node} is not in the list of members, which have the numbers 0 to {last}."))
        }
        Some(cluster) if cluster.node_id == node => Err(format!(
            "Node {node} is the one that was asked. Ask another node, which has the data that it is to get."
        )),
        Some(_) => client.replace_member(node).map_err(|error| format!("{error}.")).map(|()| {
            format!(
                "Node {node} belongs to the cluster with its new data directory. It gets its replicas from the other nodes now; \
                 'osmia cluster status' shows how far that is."
            )
        }),
        // The partitions of this node have no other replicas.
        None => Err(format!("Node {node} cannot be replaced, because this node is not part of a cluster. Ask a node that is.")),
    }
}
