//! Activating elements of ad-hoc sub-processes.

use protocol::{
    AdHocSubProcessActivateElement, AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue, Key, Payload,
    Text,
};

use super::{Request, Submission};
use crate::executor::Router;
use crate::outcome::Failure;
use crate::tenants::tenant_by_key;
use crate::validation::{Target, Variables};

/// Wants elements of an ad-hoc sub-process to begin.
#[derive(Debug, Default)]
pub(crate) struct ActivateElements {
    pub ad_hoc_sub_process_instance_key: i64,
    pub elements: Vec<(Text, Variables)>,
    /// What still runs is terminated.
    pub cancel_remaining_instances: bool,
}

impl Request for ActivateElements {
    type Answer = ();

    const STARTS_WORK: bool = false;

    fn submission(self, router: &Router<'_>) -> Result<Submission, Failure> {
        let target = Target {
            intent: AdHocSubProcessInstructionIntent::Activate.name(),
            action: "activate activities for ad-hoc sub-process",
            kind: "ad-hoc sub-process",
        };
        let key = self.ad_hoc_sub_process_instance_key;
        let value = AdHocSubProcessInstructionValue {
            ad_hoc_sub_process_instance_key: Key::from_raw(key),
            activate_elements: activate_elements(self.elements)?,
            cancel_remaining_instances: self.cancel_remaining_instances,
            tenant_id: tenant_by_key(),
            ..AdHocSubProcessInstructionValue::default()
        };
        let intent = AdHocSubProcessInstructionIntent::Activate;
        let payload = |_| Payload::AdHocSubProcessInstruction(intent, Box::new(value));
        Submission::by_key(router, target, key, None, payload)
    }

    fn answer(_: Key, _: Payload) -> Result<(), Payload> {
        Ok(())
    }
}

/// Elements with their variables checked.
pub(super) fn activate_elements(
    elements: Vec<(Text, Variables)>,
) -> Result<Vec<AdHocSubProcessActivateElement>, Failure> {
    let element = |(element_id, variables): (Text, Variables)| {
        Ok(AdHocSubProcessActivateElement { element_id, variables: variables.check()? })
    };
    elements.into_iter().map(element).collect()
}
