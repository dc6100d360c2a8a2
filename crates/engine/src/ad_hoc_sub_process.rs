//! AD_HOC_SUB_PROCESS_INSTRUCTION ACTIVATE: a client chooses what an ad-hoc sub-process does next.

use protocol::{AdHocSubProcessInstructionIntent, AdHocSubProcessInstructionValue, Key, Payload, Rejection};

use crate::element::ad_hoc_sub_process;
use crate::execution::token::Token;
use crate::execution::{Execution, Outcome};
use crate::state::Lifecycle;

pub(crate) fn activate(execution: &mut Execution<'_>, value: &AdHocSubProcessInstructionValue) -> Outcome {
    let key = value.ad_hoc_sub_process_instance_key;
    let found = Token::find(execution, key)?.filter(ad_hoc_sub_process::is_one);
    let Some(token) = found else {
        return Err(Rejection::not_found(format!(
            "Expected to activate activities for ad-hoc sub-process but no ad-hoc sub-process instance found with key '{key}'."
        ))
        .into());
    };
    execution.check_not_banned(token.value().process_instance_key)?;
    if token.instance.lifecycle != Lifecycle::Activated {
        return Err(Rejection::invalid_state(format!(
            "Expected to activate activities for ad-hoc sub-process with key '{key}', but it is in state '{}'; it takes \
             instructions only while it is active.",
            token.instance.lifecycle.name()
        ))
        .into());
    }
    ad_hoc_sub_process::check(execution, &token, &value.activate_elements)?;
    let activated = Payload::AdHocSubProcessInstruction(
        AdHocSubProcessInstructionIntent::Activated,
        Box::new(AdHocSubProcessInstructionValue { tenant_id: token.value().tenant_id.clone(), ..value.clone() }),
    );
    if value.cancel_remaining_instances {
        ad_hoc_sub_process::terminate_inner_instances(execution, key);
    }
    ad_hoc_sub_process::begin_elements(execution, &token, value.activate_elements.clone())?;
    execution.emit(Key::NONE, activated.clone());
    execution.reply(key, activated);
    Ok(())
}
