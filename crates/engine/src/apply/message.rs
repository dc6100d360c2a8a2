//! Events of messages and their subscriptions.
