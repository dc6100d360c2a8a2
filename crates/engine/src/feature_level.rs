//! Feature levels: by which rules a partition works.
//!
//! The same commands must lead to the same records on every replica and at every replay, whichever build processes them.
//! Whatever changes what a command results in (a record more or less, a limit, the data of time zones, a function) is
//! therefore part of a level. Each partition is at one, in its replicated counters; a command raises it when all of its
//! replicas know the next one. A build keeps the rules of all levels.

use bpmn::model::{Behavior, Element, Trigger};
use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};

use crate::limits::Limits;

/// A level whose rules this build knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeatureLevel(u32);

/// What belongs to a level.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The release of the time zone database with which expressions and timers compute.
    #[cfg_attr(not(test), expect(dead_code, reason = "one release comes with the program, and a test compares it"))]
    time_zones: &'static str,
    /// The release of Unicode by which expressions change cases and read names; a test there compares its tables.
    #[cfg_attr(not(test), expect(dead_code, reason = "one release comes with the program, and a test compares it"))]
    unicode: (u8, u8, u8),
    /// What a single command may do.
    pub limits: &'static Limits,
    /// Whether settings of the cluster are part of the state, and a command changes them.
    pub has_settings: bool,
    /// Whether the id of the cluster, and by which partitions is routed, are part of the state, and a command sets them.
    pub has_routing: bool,
    /// Whether a modification waits until what was on its way in an interrupted scope has come to its end.
    pub modification_waits_for_tokens: bool,
    /// Whether the sender of a message can wait for the instance that takes it.
    pub has_message_correlation: bool,
    /// Whether clients can have expressions evaluated.
    pub has_expression_evaluation: bool,
    /// Whether a partition can forget everything, for tests.
    pub has_purge: bool,
    /// Whether signals, conditions, user tasks and the other elements of [`is_of_level_4`] are executed.
    pub has_elements_of_level_4: bool,
    /// Whether instances can have business ids.
    pub has_business_ids: bool,
    /// Whether expressions call a built-in function where a local value that is no function has its name.
    pub has_hidden_functions: bool,
    /// Whether slips are told that expressions hid: `x not in [1]` is refused, `customer["name"]` gives null and a warning.
    pub has_strict_expressions: bool,
    /// Whether the user tasks of all processes can have listeners besides those of their models.
    pub has_global_listeners: bool,
    /// Whether an ad-hoc sub-process looks at its completion condition with its own variables, and not with those that are local
    /// to the inner instance that completes.
    pub ad_hoc_conditions_see_ad_hoc_variables: bool,
    /// Whether an ad-hoc sub-process goes on behind an event sub-process in it as behind an inner instance: its result is gathered,
    /// the completion condition looked at and the worker asked again.
    pub ad_hoc_sub_processes_count_events: bool,
    /// Whether what is being terminated is refused as what is gone: its variables are not set, and it is not cancelled again.
    pub terminating_is_gone: bool,
    /// Whether an incident leaves the time at which its job changed last: it is no event of the job. (From level 10
    /// on, one tells of the resolution, and has its time.)
    pub incidents_leave_times_of_jobs: bool,
    /// Whether a compensation event has undone also what was completed between its beginning and that of its work, for which it may
    /// have waited for listeners.
    pub compensation_begins_with_the_work: bool,
    /// Whether compensation boundary events in an ad-hoc sub-process are none of the elements that can be activated there.
    pub compensation_events_are_no_choices: bool,
    /// Whether instances migrate in which ad-hoc sub-processes live or catch events wait for conditions.
    pub migrates_ad_hoc_sub_processes_and_conditions: bool,
    /// Whether a user task that ends before its canceling listeners are done keeps what they corrected.
    pub canceled_tasks_keep_corrections: bool,
    /// Whether a ban forgets what of the instance waits to be done, so that only a cancellation after it ends the instance, and a
    /// second one is refused until the steps of the first are done.
    pub bans_forget_waiting_work: bool,
    /// Whether an instance that is ending is never banned for the number of its steps: they come to an end.
    pub ending_is_not_endless: bool,
    /// Whether a command that comes too late for a job bans no instance when the job is due for something else by then.
    pub late_commands_ban_nobody: bool,
    /// Whether the ban of a called instance that is ending asks for its end once more, because its caller waits for that; and
    /// whether a user may, when that was lost too.
    pub bans_end_what_callers_wait_for: bool,
    /// Whether a record of the job tells that the resolution of its incident makes it available again.
    pub resolutions_tell_of_the_job: bool,
    /// Whether PROCESS DELETING and DELETED have the key of the definition, as those of all other definitions.
    pub deletions_of_processes_have_their_keys: bool,
    /// Whether subscriptions to messages say the process definition and the business id of who waits, and evaluations of decisions
    /// the business id.
    pub waits_and_decisions_say_whose_they_are: bool,
}

// Each level says what it changes of the one before. The rules of one that was released never change.

const LEVEL_1: Rules = Rules {
    time_zones: "2026e",
    unicode: (17, 0, 0),
    limits: &Limits::OF_LEVEL_1,
    has_settings: false,
    has_routing: false,
    modification_waits_for_tokens: false,
    has_message_correlation: false,
    has_expression_evaluation: false,
    has_purge: false,
    has_elements_of_level_4: false,
    has_business_ids: false,
    has_hidden_functions: false,
    has_strict_expressions: false,
    has_global_listeners: false,
    ad_hoc_conditions_see_ad_hoc_variables: false,
    ad_hoc_sub_processes_count_events: false,
    terminating_is_gone: false,
    incidents_leave_times_of_jobs: false,
    compensation_begins_with_the_work: false,
    compensation_events_are_no_choices: false,
    migrates_ad_hoc_sub_processes_and_conditions: false,
    canceled_tasks_keep_corrections: false,
    bans_forget_waiting_work: false,
    ending_is_not_endless: false,
    late_commands_ban_nobody: false,
    bans_end_what_callers_wait_for: false,
    resolutions_tell_of_the_job: false,
    deletions_of_processes_have_their_keys: false,
    waits_and_decisions_say_whose_they_are: false,
};
const LEVEL_2: Rules = Rules { has_settings: true, ..LEVEL_1 };
const LEVEL_3: Rules =
    Rules { has_routing: true, modification_waits_for_tokens: true, has_message_correlation: true, ..LEVEL_2 };
const LEVEL_4: Rules = Rules {
    has_expression_evaluation: true,
    has_purge: true,
    has_elements_of_level_4: true,
    has_business_ids: true,
    has_hidden_functions: true,
    has_strict_expressions: true,
    ..LEVEL_3
};
const LEVEL_5: Rules = Rules {
    has_global_listeners: true,
    ad_hoc_conditions_see_ad_hoc_variables: true,
    ad_hoc_sub_processes_count_events: true,
    terminating_is_gone: true,
    incidents_leave_times_of_jobs: true,
    compensation_begins_with_the_work: true,
    compensation_events_are_no_choices: true,
    ..LEVEL_4
};
const LEVEL_6: Rules =
    Rules { migrates_ad_hoc_sub_processes_and_conditions: true, canceled_tasks_keep_corrections: true, ..LEVEL_5 };
const LEVEL_7: Rules = Rules { limits: &Limits::OF_LEVEL_7, ..LEVEL_6 };
const LEVEL_8: Rules =
    Rules { bans_forget_waiting_work: true, ending_is_not_endless: true, late_commands_ban_nobody: true, ..LEVEL_7 };
const LEVEL_9: Rules = Rules { bans_end_what_callers_wait_for: true, ..LEVEL_8 };
const LEVEL_10: Rules = Rules {
    resolutions_tell_of_the_job: true,
    deletions_of_processes_have_their_keys: true,
    waits_and_decisions_say_whose_they_are: true,
    ..LEVEL_9
};

/// All levels in order, from level 1.
static LEVELS: &[Rules] = &[LEVEL_1, LEVEL_2, LEVEL_3, LEVEL_4, LEVEL_5, LEVEL_6, LEVEL_7, LEVEL_8, LEVEL_9, LEVEL_10];

/// Whether an element is executed from level 4 on; before it, its process is refused at deployment.
pub(crate) fn is_of_level_4(element: &Element) -> bool {
    let is_of_level_4 = |trigger: &Trigger| matches!(trigger, Trigger::Signal(_) | Trigger::Condition(_));
    element.catch_event().is_some_and(|event| is_of_level_4(&event.trigger))
        || element.is_for_compensation
        || !element.start_listeners.is_empty()
        || !element.end_listeners.is_empty()
        || matches!(&element.behavior, Behavior::JobWorker(job) if !job.linked_resources.is_empty())
        || matches!(
            element.behavior,
            Behavior::UserTask(_)
                | Behavior::AdHocSubProcess(_)
                | Behavior::SignalThrowEvent { .. }
                | Behavior::CompensationBoundaryEvent { .. }
                | Behavior::CompensationThrowEvent { .. }
        )
}

/// A level that this build does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Feature level {number} is not known: this build knows the levels 1 to {newest}. Use a build that knows it, at best the one \
     that raised the level.", newest = FeatureLevel::NEWEST.number()
)]
pub struct UnknownFeatureLevel {
    /// Its number.
    pub number: u32,
}

impl FeatureLevel {
    /// The first level that there was.
    pub const OLDEST: FeatureLevel = FeatureLevel(1);
    /// The last one that this build knows.
    pub const NEWEST: FeatureLevel = FeatureLevel(10);

    /// The level with this number.
    ///
    /// # Errors
    /// When this build does not know it.
    pub fn new(number: u32) -> Result<FeatureLevel, UnknownFeatureLevel> {
        match (Self::OLDEST.0..=Self::NEWEST.0).contains(&number) {
            true => Ok(FeatureLevel(number)),
            false => Err(UnknownFeatureLevel { number }),
        }
    }

    /// All levels that this build knows, oldest first.
    pub fn all() -> impl Iterator<Item = FeatureLevel> {
        (Self::OLDEST.0..=Self::NEWEST.0).map(FeatureLevel)
    }

    /// Its number, from 1.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether the user tasks of all processes can have listeners besides those of their models.
    pub fn has_global_listeners(self) -> bool {
        self.rules().has_global_listeners
    }

    #[inline]
    pub(crate) fn rules(self) -> &'static Rules {
        &LEVELS[self.0 as usize - 1]
    }
}

/// A partition begins at the newest one.
impl Default for FeatureLevel {
    fn default() -> Self {
        FeatureLevel::NEWEST
    }
}

impl std::fmt::Display for FeatureLevel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number().fmt(formatter)
    }
}

impl<C> Encode<C> for FeatureLevel {
    fn encode<W: Write>(&self, encoder: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        encoder.u32(self.number())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for FeatureLevel {
    fn decode(decoder: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        FeatureLevel::new(decoder.u32()?).map_err(|error| DecodeError::message(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbered_from_one_without_a_gap() {
        assert_eq!(FeatureLevel::NEWEST.number() as usize, LEVELS.len());
        for level in FeatureLevel::all() {
            assert_eq!(FeatureLevel::new(level.number()), Ok(level));
        }
    }

    #[test]
    fn a_level_of_a_newer_build_is_refused_by_name() {
        let newer = FeatureLevel::NEWEST.number() + 1;
        let error = FeatureLevel::new(newer).expect_err("unknown");
        assert!(error.to_string().starts_with(&format!("Feature level {newer} is not known")), "{error}");
        let stored = protocol::encode_to_vec(&newer);
        let error = protocol::decode::<FeatureLevel>(&stored).expect_err("unknown").to_string();
        assert!(error.contains("is not known"), "{error}");
        assert_eq!(FeatureLevel::new(0), Err(UnknownFeatureLevel { number: 0 }));
    }

    /// Replicas with other zone data compute other times. Whoever takes newer data keeps the old one for the levels before.
    #[test]
    fn each_level_has_the_time_zones_that_come_with_the_program() {
        for level in FeatureLevel::all() {
            assert_eq!(Some(level.rules().time_zones), feel::zone::time_zone_data(), "of level {level}");
        }
    }

    #[test]
    fn each_level_has_the_tables_of_unicode_that_come_with_the_program() {
        for level in FeatureLevel::all() {
            assert_eq!(level.rules().unicode, feel::unicode::VERSION, "of level {level}");
        }
    }
}
