//! NODE START: a node begins to lead the partition. The state counts how often each node did, and each term begins with a
//! batch.

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
