//! Instances that wait for a message, and its publication.

use std::time::Duration;

use tonic::{Code, Status};

use super::Tracker;
use crate::instances::{Instance, Message};
use crate::model::Tag;

impl Tracker {
    /// An instance whose message will be sent later is about to be created; until then it is not outstanding. None when
    /// there are too many.
    pub fn begin_beforehand(&self, kind: usize) -> Option<Tag> {
        let mut state = self.state();
        let tag = state.instances.insert(Instance::new(kind, self.kinds[kind].tasks(), Message::NotCounted))?;
        state.not_counted += 1;
        Some(tag)
    }

    pub fn created_beforehand(&self, tag: Tag) {
        self.state().beforehand.push_back(tag);
    }

    pub fn creation_beforehand_failed(&self, tag: Tag, status: &Status) {
        self.creation_failed(tag, status);
        self.state().not_counted -= 1;
    }

    /// The message of the oldest instance made beforehand is about to be sent. None when there is no such instance.
    pub fn begin_publication(&self, intended: Duration) -> Option<Tag> {
        let now = self.timeline.now();
        let mut guard = self.state();
        let state = &mut *guard;
        let tag = state.beforehand.pop_front()?;
        let instance = state.instances.get(tag).expect("an instance made beforehand stays until its message is sent");
        instance.intended = intended;
        instance.command_sent = now;
        instance.message = Message::Sent;
        let kind = instance.kind;
        state.not_counted -= 1;
        state.sent(kind, intended, now);
        Some(tag)
    }

    /// The message of an outstanding instance is about to be sent, after a pause that is no overhead.
    pub fn publishing(&self, tag: Tag) {
        let now = self.timeline.now();
        let mut state = self.state();
        if let Some(instance) = state.instances.get(tag) {
            let waited_from = instance.command_acknowledged.take().unwrap_or(instance.command_sent);
            instance.held += now.saturating_sub(waited_from);
            instance.command_sent = now;
            instance.message = Message::Sent;
        }
    }

    /// The publication that counts from this time was acknowledged.
    pub fn published(&self, kind: usize, tag: Tag, since: Duration) {
        let now = self.timeline.now();
        let mut state = self.state();
        state.silence.acknowledged(now, None);
        state.messages.published += 1;
        state.second.published += 1;
        if let Some(figures) = state.windows.at(now, kind) {
            figures.published += 1;
        }
        if let Some(figures) = state.windows.at(since, kind) {
            figures.publication.record(now.saturating_sub(since));
        }
        // A fast instance may have moved on, or completed, before the answer to the publication is read.
        if let Some(instance) = state.instances.get(tag)
            && instance.message == Message::Sent
        {
            instance.message = Message::Acknowledged;
            instance.acknowledged = true;
        }
    }

    /// A publication will be sent again.
    pub fn publication_will_repeat(&self) {
        self.state().irregularities.repeated_publications += 1;
    }

    /// A publication failed for good.
    pub fn publication_failed(&self, tag: Tag, status: &Status) {
        let mut guard = self.state();
        let state = &mut *guard;
        state.irregularities.rejected_publications.record(status);
        let Some(instance) = state.instances.get(tag) else {
            return;
        };
        let made_beforehand = self.kinds[instance.kind].waits_before().is_some_and(|(task, _)| task == 1);
        // Certainly refused, so the instance can wait for another message.
        if made_beforehand && instance.message == Message::Sent && !is_unclear(status.code()) {
            instance.message = Message::NotCounted;
            state.not_counted += 1;
            state.beforehand.push_front(tag);
        }
    }
}

/// Whether a command with this outcome may have been carried out nevertheless.
fn is_unclear(code: Code) -> bool {
    matches!(
        code,
        Code::DeadlineExceeded | Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Aborted | Code::Internal
    )
}
