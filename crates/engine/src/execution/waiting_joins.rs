//! What joining gateways wait for.

use std::collections::BTreeMap;

use bpmn::model::{ElementIndex, FlowIndex};
use protocol::Key;

/// What keeps joining gateways waiting, as far as the current command knows, by flow scope and gateway. To look through
/// the whole scope whenever a token arrives would take the square of the number of branches.
#[derive(Debug, Default)]
pub(crate) struct WaitingJoins(pub BTreeMap<(Key, ElementIndex), Awaited>);

impl WaitingJoins {
    /// The gateway begins, and takes tokens away.
    pub fn begins(&mut self, scope: Key, gateway: ElementIndex) {
        self.0.remove(&(scope, gateway));
    }

    /// Something began under a key that was made before.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

/// Children of a scope are looked at in the order of their keys, and each is passed once: what cannot lead to a gateway
/// by a flow without a token never will, because tokens that wait there stay until the gateway begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// The last child that leads nowhere, and all before it.
    pub passed: Key,
    /// The child after it that leads to the gateway, and the flow by which it arrives there.
    pub by: Option<(Key, FlowIndex)>,
}
