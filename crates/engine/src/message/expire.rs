//! MESSAGE_BATCH EXPIRE: the time of messages is over.

use protocol::{MessageBatchValue, MessageIntent, MessageValue, Payload, Rejection, Text};

use crate::execution::{Execution, Outcome};

pub(crate) fn expire(execution: &mut Execution<'_>, batch: &MessageBatchValue) -> Outcome {
    let mut expired = 0_usize;
    for key in &batch.message_keys {
        let Some(row) = execution.state.tables.messages.get(&key.raw()) else { continue };
        if row.value.deadline > execution.timestamp {
            continue;
        }
        // Variables may be large and are of no use any more.
        let value = MessageValue { variables: Text::default(), ..row.value.clone() };
        drop(row);
        execution.emit(*key, Payload::Message(MessageIntent::Expired, Box::new(value)));
        expired += 1;
    }
    if expired == 0 {
        return Err(Rejection::not_found(format!(
            "Expected to expire {} messages, but none of them is both buffered and past its deadline",
            batch.message_keys.len()
        ))
        .into());
    }
    Ok(())
}
