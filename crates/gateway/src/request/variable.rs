//! Setting variables.

use protocol::{Key, Payload, VariableDocumentIntent, VariableDocumentUpdateSemantics, VariableDocumentValue};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant_by_key;
use crate::validation::{Target, Variables};

/// Wants variables of an element instance to have other values.
#[derive(Debug, Default)]
pub(crate) struct SetVariables {
    pub element_instance_key: i64,
    pub variables: Variables,
    /// In this scope, even if one around it has them already.
    pub is_local: bool,
    pub operation_reference: Option<u64>,
}

impl Request for SetVariables {
    /// The key of the change.
    type Answer = Key;

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target {
            intent: VariableDocumentIntent::Update.name(),
            action: "update variables for element",
            kind: "element",
        };
        let variables = self.variables.check()?;
        let update_semantics = match self.is_local {
            true => VariableDocumentUpdateSemantics::Local,
            false => VariableDocumentUpdateSemantics::Propagate,
        };
        let payload = |scope_key| {
            let tenant_id = tenant_by_key();
            let value = VariableDocumentValue { scope_key, update_semantics, variables, tenant_id };
            Payload::VariableDocument(VariableDocumentIntent::Update, Box::new(value))
        };
        Submission::by_key(router, target, self.element_instance_key, self.operation_reference, payload)
    }

    fn answer(key: Key, _: Payload) -> Result<Key, Payload> {
        Ok(key)
    }
}
