//! Deploying, reading and deleting resources.

use protocol::{
    Command, DeploymentIntent, DeploymentResource, DeploymentValue, Key, PartitionId, Payload, Rejection,
    ResourceDeletionIntent, ResourceDeletionValue, ResourceIntent, ResourceMetadata, ResourceValue,
};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::{tenant, tenant_by_key};

/// Has new models.
#[derive(Debug, Default)]
pub(crate) struct DeployResources {
    pub resources: Vec<DeploymentResource>,
    pub tenant_id: String,
}

/// Wants a deployed model to be gone.
#[derive(Debug, Default)]
pub(crate) struct DeleteResource {
    pub resource_key: i64,
    /// And with it what is known of its instances.
    pub deletes_history: bool,
    pub operation_reference: Option<u64>,
}

/// Reads a deployed resource that is only kept.
#[derive(Debug, Default)]
pub(crate) struct FetchResource {
    pub resource_key: i64,
}

impl Request for FetchResource {
    type Answer = Box<ResourceValue>;

    const STARTS_WORK: bool = false;

    /// Every partition has it. The first one had it first.
    fn submission(self, _: &Router<'_>) -> Result<Submission, Failure> {
        let resource_key = Key::from_raw(self.resource_key);
        let metadata = ResourceMetadata { resource_key, tenant_id: tenant_by_key(), ..ResourceMetadata::default() };
        let value = ResourceValue { metadata, ..ResourceValue::default() };
        let payload = Payload::Resource(ResourceIntent::Fetch, Box::new(value));
        Ok(Submission::new(PartitionId::DEPLOYMENT, Command::new(Key::NONE, payload)))
    }

    fn answer(_: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::Resource(_, value) => Ok(value),
            other => Err(other),
        }
    }
}

impl Request for DeployResources {
    /// The key of the deployment and what it is made of.
    type Answer = (Key, Box<DeploymentValue>);

    const STARTS_WORK: bool = false;

    fn submission(self, _: &Router<'_>) -> Result<Submission, Failure> {
        let tenant_id = tenant(&self.tenant_id)?;
        if self.resources.is_empty() {
            let rejection = Rejection::invalid_argument("Expected to deploy at least one resource, but none given");
            return Err(Failure::rejected(DeploymentIntent::Create.name(), Key::NONE, rejection));
        }
        let value = DeploymentValue { resources: self.resources, tenant_id, ..DeploymentValue::default() };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        Ok(Submission::new(PartitionId::DEPLOYMENT, Command::new(Key::NONE, payload)))
    }

    fn answer(key: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::Deployment(_, value) => Ok((key, value)),
            other => Err(other),
        }
    }
}

impl Request for DeleteResource {
    /// The key of the resource.
    type Answer = Key;

    const STARTS_WORK: bool = false;

    /// Resources are deleted where they were deployed, whatever partition their key names.
    fn submission(self, _: &Router<'_>) -> Result<Submission, Failure> {
        if self.deletes_history {
            return Err(Failure::Unsupported {
                with: "deleteHistory",
                remark: ": it keeps no history of finished instances. Delete the resource without it.",
            });
        }
        let resource_key = Key::from_raw(self.resource_key);
        let value = ResourceDeletionValue { resource_key, tenant_id: tenant_by_key() };
        let payload = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
        let command = Command { operation_reference: self.operation_reference, ..Command::new(Key::NONE, payload) };
        Ok(Submission::new(PartitionId::DEPLOYMENT, command))
    }

    fn answer(_: Key, payload: Payload) -> Result<Self::Answer, Payload> {
        match payload {
            Payload::ResourceDeletion(_, value) => Ok(value.resource_key),
            other => Err(other),
        }
    }
}
