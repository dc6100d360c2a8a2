//! Setting variables.

use gateway_interface::SetVariablesRequest;
use protocol::{Payload, VariableDocumentIntent, VariableDocumentUpdateSemantics, VariableDocumentValue};
use tonic::Status;

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::validation::{Target, variables};

impl Service {
    pub(crate) fn update_variables(&self, request: SetVariablesRequest) -> Result<Pending, Status> {
        let target = Target {
            intent: VariableDocumentIntent::Update.name(),
            action: "update variables for element",
            kind: "element",
        };
        let variables = variables(request.variables)?;
        let update_semantics = match request.local {
            true => VariableDocumentUpdateSemantics::Local,
            false => VariableDocumentUpdateSemantics::Propagate,
        };
        let payload = |scope_key| {
            let tenant_id = protocol::DEFAULT_TENANT.into();
            let value = VariableDocumentValue { scope_key, update_semantics, variables, tenant_id };
            Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
        };
        let (key, reference) = (request.element_instance_key, request.operation_reference);
        self.execute_by_key(Rpc::SetVariables, target, key, reference, payload)
    }
}
