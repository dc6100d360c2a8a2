//! NODE START: a node begins to lead the partition, and numbers requests and streams as nobody did before.
//!
//! Who waits for an answer is known by the number of the request, and a stream by its number; both may be kept for long. A node
//! that lost its disk must not give such a number to somebody else, so what it counts from is kept with them.

use protocol::{Key, NodeIntent, NodeValue, Payload, Rejection};

use crate::execution::{Execution, Outcome};

pub(crate) fn start(execution: &mut Execution<'_>, value: NodeValue) -> Outcome {
    let known = execution.state.node_start(value.node);
    if value.start <= known {
        return Err(Rejection::invalid_state(format!(
            "Expected start {} of node {} to be a new one, but its start {known} is known already",
            value.start, value.node
        ))
        .into());
    }
    execution.emit(Key::NONE, Payload::Node(NodeIntent::Started, value));
    Ok(())
}
