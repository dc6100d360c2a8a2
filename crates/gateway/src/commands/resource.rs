//! Deploying and deleting resources.

use std::sync::Arc;

use gateway_interface::*;
use protocol::{
    Command, DeploymentIntent, DeploymentResource, DeploymentValue, Key, PartitionId, Payload, Rejection,
    ResourceDeletionIntent, ResourceDeletionValue, Text,
};
use tonic::{Code, Status};

use super::Pending;
use crate::rpc::Rpc;
use crate::service::Service;
use crate::status::{rejected, status};
use crate::validation::tenant;

impl Service {
    pub(crate) fn deploy(&self, request: DeployResourceRequest) -> Result<Pending, Status> {
        let resources = request.resources.into_iter().map(|resource| DeploymentResource {
            resource_name: resource.name.into(),
            resource: Arc::from(&resource.content[..]),
        });
        let tenant_id = tenant("DeployResource", &request.tenant_id)?;
        self.deploy_all(Rpc::DeployResource, resources.collect(), tenant_id)
    }

    #[allow(deprecated, reason = "old clients still call it")]
    pub(crate) fn deploy_processes(&self, request: DeployProcessRequest) -> Result<Pending, Status> {
        let resources = request.processes.into_iter().map(|process| DeploymentResource {
            resource_name: process.name.into(),
            resource: Arc::from(&process.definition[..]),
        });
        let tenant_id = protocol::DEFAULT_TENANT.into();
        self.deploy_all(Rpc::DeployProcess, resources.collect(), tenant_id)
    }

    fn deploy_all(&self, rpc: Rpc, resources: Vec<DeploymentResource>, tenant_id: Text) -> Result<Pending, Status> {
        if resources.is_empty() {
            return Err(rejected(
                DeploymentIntent::Create.name(),
                &Rejection::invalid_argument("Expected to deploy at least one resource, but none given"),
            ));
        }
        let value = DeploymentValue { resources, tenant_id, ..DeploymentValue::default() };
        let payload = Payload::Deployment(DeploymentIntent::Create, Box::new(value));
        let command = Command::new(Key::NONE, payload);
        Ok(self.execute(rpc, PartitionId::DEPLOYMENT, command, self.request_timeout))
    }

    /// Resources are deleted where they were deployed, whatever partition their key names.
    pub(crate) fn delete(&self, request: DeleteResourceRequest) -> Result<Pending, Status> {
        if request.delete_history == Some(true) {
            return Err(status(
                Code::Unimplemented,
                "DeleteResource with deleteHistory is not supported by this version of Osmia yet: it keeps no history of finished instances. Delete the resource without it.",
            ));
        }
        let value = ResourceDeletionValue {
            resource_key: Key::from_raw(request.resource_key),
            tenant_id: protocol::DEFAULT_TENANT.into(),
        };
        let payload = Payload::ResourceDeletion(ResourceDeletionIntent::Delete, Box::new(value));
        let command = Command { operation_reference: request.operation_reference, ..Command::new(Key::NONE, payload) };
        Ok(self.execute(Rpc::DeleteResource, PartitionId::DEPLOYMENT, command, self.request_timeout))
    }
}
