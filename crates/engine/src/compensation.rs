//! Compensation: what was completed is undone.
//!
//! An activity with a compensation handler leaves a subscription behind when it completes, and so does what contains such.
//! An event that throws triggers those of its scope, and of what was completed inside of them: their handlers begin in the
//! scope of the event, and it completes when all of them have.

mod handler;
mod migration;
mod subscription;
mod throw;

pub(crate) use handler::handler_completed;
pub(crate) use migration::{Destination, migrate};
pub(crate) use subscription::{delete_all_of_process, delete_of, delete_of_ending, delete_of_process, subscribe};
pub(crate) use throw::{go_on, throw};

use std::sync::Arc;

use protocol::{CompensationSubscriptionIntent, CompensationSubscriptionValue, Key, Payload};

use crate::execution::Execution;
use crate::state::{CompensationSubscriptionRow, State};

/// Subscriptions that are deleted at once, and activities whose compensation begins at once.
const SUBSCRIPTIONS_AT_ONCE_MAX: usize = 50;

fn row(state: &State, process_instance: Key, subscription: i64) -> Option<Arc<CompensationSubscriptionRow>> {
    state.tables.compensation_subscriptions.get(&process_instance.raw(), &subscription)
}

/// The first subscription of what was completed in a scope, whether its compensation has begun or not.
fn first_in_scope(state: &State, scope: Key) -> Option<i64> {
    state.tables.compensation_scopes.first(&scope.raw()).map(|(subscription, _)| subscription)
}

fn emit(
    execution: &mut Execution<'_>,
    subscription: i64,
    intent: CompensationSubscriptionIntent,
    value: CompensationSubscriptionValue,
) {
    execution.emit(Key::from_raw(subscription), Payload::CompensationSubscription(intent, Box::new(value)));
}
