//! Subscriptions to messages, and what was correlated to them.

use protocol::{
    MessageStartEventSubscriptionIntent, MessageStartEventSubscriptionValue, ProcessMessageSubscriptionIntent,
    ProcessMessageSubscriptionValue,
};

use super::{Fold, some_key, some_text};
use crate::batch::{CorrelationRow, SubscriptionRow};
use crate::enumerations::{SUBSCRIPTION_STATES, number_of};

impl Fold {
    pub(super) fn process_message_subscription(
        &mut self,
        key: i64,
        timestamp: i64,
        intent: ProcessMessageSubscriptionIntent,
        value: &ProcessMessageSubscriptionValue,
    ) {
        // What is only being opened or closed is in the state before.
        let Some(state) = number_of(SUBSCRIPTION_STATES, intent.name()) else { return };
        let row = SubscriptionRow {
            is_start: false,
            definition: None,
            process_id: value.bpmn_process_id.clone(),
            instance: some_key(value.process_instance_key),
            element_instance: some_key(value.element_instance_key),
            element_id: value.element_id.clone(),
            message_name: value.message_name.clone(),
            correlation_key: Some(value.correlation_key.clone()),
            state,
            updated: timestamp,
            tenant: value.tenant_id.clone(),
        };
        self.batch.subscriptions.insert(key, row);
        if intent == ProcessMessageSubscriptionIntent::Correlated {
            self.batch.correlations.push(CorrelationRow {
                subscription: key,
                message: value.message_key.raw(),
                message_name: value.message_name.clone(),
                correlation_key: Some(value.correlation_key.clone()),
                time: timestamp,
                definition: None,
                process_id: value.bpmn_process_id.clone(),
                instance: some_key(value.process_instance_key),
                element_instance: some_key(value.element_instance_key),
                element_id: value.element_id.clone(),
                tenant: value.tenant_id.clone(),
            });
        }
    }

    pub(super) fn message_start_event_subscription(
        &mut self,
        key: i64,
        timestamp: i64,
        intent: MessageStartEventSubscriptionIntent,
        value: &MessageStartEventSubscriptionValue,
    ) {
        if intent == MessageStartEventSubscriptionIntent::Correlated {
            self.batch.correlations.push(CorrelationRow {
                subscription: key,
                message: value.message_key.raw(),
                message_name: value.message_name.clone(),
                correlation_key: some_text(&value.correlation_key),
                time: timestamp,
                definition: some_key(value.process_definition_key),
                process_id: value.bpmn_process_id.clone(),
                instance: some_key(value.process_instance_key),
                element_instance: None,
                element_id: value.start_event_id.clone(),
                tenant: value.tenant_id.clone(),
            });
        }
        // Every partition has a subscription of its own; the first one speaks for all. It stays open when it is correlated.
        if !self.is_first || intent == MessageStartEventSubscriptionIntent::Correlated {
            return;
        }
        let Some(state) = number_of(SUBSCRIPTION_STATES, intent.name()) else { return };
        let row = SubscriptionRow {
            is_start: true,
            definition: some_key(value.process_definition_key),
            process_id: value.bpmn_process_id.clone(),
            instance: None,
            element_instance: None,
            element_id: value.start_event_id.clone(),
            message_name: value.message_name.clone(),
            correlation_key: None,
            state,
            updated: timestamp,
            tenant: value.tenant_id.clone(),
        };
        self.batch.subscriptions.insert(key, row);
    }
}
