//! Jobs that did not reach whom they were activated for are given back: they are available to others at once.

use std::collections::BTreeMap;

use protocol::{JobIntent, JobOwner, Key};

use super::delivery;
use crate::execution::Execution;
use crate::state::JobState;

/// Jobs that one command gives back; the others have to wait for the next.
const YIELDS_AT_ONCE_MAX: usize = 1_000;

/// Gives back those of the jobs that still are activated for this owner at this place: any other was completed or failed, or its time
/// is over, and may be somebody else's by now. Returns how many were looked at, which is all of them unless it is much.
pub(crate) fn give_back(execution: &mut Execution<'_>, jobs: &[(Key, JobOwner)]) -> usize {
    let at_once = execution.at_once(YIELDS_AT_ONCE_MAX);
    let mut queues = BTreeMap::new();
    let mut looked_at = 0;
    for (key, owner) in jobs.iter().copied().take(at_once) {
        if looked_at > 0 && execution.is_over_budget() {
            break;
        }
        looked_at += 1;
        execution.used.count_reads(1);
        let Some(job) = execution.state.job(key) else { continue };
        if job.state != JobState::Activated || job.owner != Some(owner) || super::is_cancelled_as_banned(execution, key)
        {
            continue;
        }
        let (_, queue) = super::emit_available(execution, key, JobIntent::Yielded, (*job.value).clone());
        // The first job of each queue says whether others were waiting before.
        queues.entry(queue.id()).or_insert(queue);
    }
    for queue in queues.into_values() {
        delivery::deliver(execution, &queue);
    }
    looked_at
}
