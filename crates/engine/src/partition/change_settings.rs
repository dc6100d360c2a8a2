//! SETTINGS CHANGE: settings that change what commands result in are the same on all replicas.

use protocol::{Key, Payload, Rejection, SettingsIntent, SettingsValue};

use crate::execution::{Execution, Outcome};

/// The least that the variables of a root process instance must be allowed.
const ROOT_VARIABLE_BYTES_LEAST: u64 = 1 << 20;
/// The most that they may be allowed.
const ROOT_VARIABLE_BYTES_MAX: u64 = 1 << 40;

pub(crate) fn change(execution: &mut Execution<'_>, value: SettingsValue) -> Outcome {
    let bytes_max = value.root_variable_bytes_max;
    let stays = bytes_max == 0 && value.business_ids_are_unique.is_some();
    if !stays && !(ROOT_VARIABLE_BYTES_LEAST..=ROOT_VARIABLE_BYTES_MAX).contains(&bytes_max) {
        return Err(Rejection::invalid_argument(format!(
            "Expected the variables of a root process instance to be limited to {ROOT_VARIABLE_BYTES_LEAST} to \
             {ROOT_VARIABLE_BYTES_MAX} bytes, but the limit is {bytes_max} bytes"
        ))
        .into());
    }
    let changed = Payload::Settings(SettingsIntent::Changed, value);
    execution.emit(Key::NONE, changed.clone());
    execution.reply(Key::NONE, changed);
    Ok(())
}
