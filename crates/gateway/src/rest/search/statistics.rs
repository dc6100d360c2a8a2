//! The operations that count.

use protocol::Timestamp;
use readmodel::Cost;
use readmodel::query::{
    Condition, Counted, Entity, ErrorOrder, GroupBy, GroupPage, JOB_COUNTS, JOB_ERRORS, JobCounts, JobsOf, Kind,
    MESSAGE_SUBSCRIPTIONS, PROCESS_DEFINITIONS, PROCESS_INSTANCES, Readers, Search, UsageCounts, VARIABLE_NAMES,
    duration, instant, moment,
};
use serde_json::value::RawValue;

use super::answer::Sorts;
use super::operations::{Answered, Asked, Read, by_key, not_found};
use super::request::{Groups, groups};
use super::{Searcher, answer, filter};
use crate::rest::json::JsonObject;
use crate::rest::object::{Object, invalid, path_key};
use crate::rest::problem::Problem;
use crate::validation::excerpt;

impl Searcher {
    pub(super) async fn statistics(&self, read: Read, asked: Asked<'_>) -> Result<Answered, Problem> {
        match read {
            Read::ElementStatisticsOfDefinition => self.elements_of_definition(asked).await,
            Read::ElementStatisticsOfInstance => {
                self.of_instance(asked, |readers, owner, key| {
                    let Some(partition) = owner.partition else {
                        return Ok(answer::element_counts(&Default::default()));
                    };
                    Ok(answer::element_counts(&readers.element_counts_of_instance(partition, key)?))
                })
                .await
            }
            Read::WaitStatistics => {
                self.of_instance(asked, |readers, owner, key| {
                    let Some(partition) = owner.partition else {
                        return Ok(answer::waiting_counts(&Default::default()));
                    };
                    Ok(answer::waiting_counts(&readers.waiting_counts(partition, key)?))
                })
                .await
            }
            Read::DefinitionErrorStatistics => {
                let mut object = Object::read(asked.body)?;
                let mut filter: Object<'_> = object.require("filter")?;
                let hash_code: i32 = filter.require("errorHashCode")?;
                filter.finish()?;
                let wanted = groups(object, Sorts::DEFINITION_ERRORS, None)?;
                self.groups(wanted, move |readers| {
                    Ok(answer::definition_errors(&readers.definitions_with_error(hash_code.into())?))
                })
                .await
            }
            Read::ErrorStatistics => {
                let Groups { sort, page } = groups(Object::read(asked.body)?, Sorts::ERRORS, None)?;
                let sort: Vec<_> = sort.iter().map(|(name, descending)| (error_order(name), *descending)).collect();
                self.ask(Cost::Any, move |readers| {
                    let counts = readers.error_counts(&sort, &page)?;
                    Ok(Ok(Answered::Json(answer::grouped(counts, answer::error))))
                })
                .await
            }
            Read::SubscriptionStatistics => {
                let mut object = Object::read(asked.body)?;
                let condition = condition(&MESSAGE_SUBSCRIPTIONS, object.take("filter")?)?;
                let page = groups(object, Sorts::NONE, Some(Kind::Key))?.page;
                self.ask(Cost::Any, move |readers| {
                    let counts = readers.subscription_counts(&condition, &page)?;
                    Ok(Ok(Answered::Json(answer::grouped(counts, answer::subscriptions))))
                })
                .await
            }
            Read::VariableNames => self.variable_names(asked).await,
            Read::UsageMetrics => self.usage(asked.query).await,
            Read::JobsOfAll => self.all_jobs(asked.query).await,
            Read::JobsByType | Read::JobsByWorker | Read::JobsByTime | Read::JobErrors => {
                self.jobs(read, asked.body).await
            }
            _ => self.definitions(read == Read::VersionStatistics, asked.body).await,
        }
    }

    /// How many instances definitions have: each of their versions, or all versions of a process together.
    async fn definitions(&self, by_version: bool, body: &[u8]) -> Result<Answered, Problem> {
        let mut object = Object::read(body)?;
        let filter: Option<Object<'_>> = object.take("filter")?;
        if by_version {
            check_names_a_process(filter.as_ref())?;
        }
        let condition = condition(&PROCESS_DEFINITIONS, filter)?;
        let sorts = if by_version { Sorts::VERSIONS } else { Sorts::PROCESSES };
        let wanted = groups(object, sorts, None)?;
        self.groups(wanted, move |readers| {
            let counts = readers.definition_counts(&condition)?;
            Ok(if by_version { answer::version_counts(&counts) } else { answer::definition_counts(&counts) })
        })
        .await
    }

    /// The names that variables of a definition have had.
    async fn variable_names(&self, asked: Asked<'_>) -> Result<Answered, Problem> {
        let key = path_key("processDefinitionKey", asked.parameter)?;
        let mut object = Object::read(asked.body)?;
        let condition = condition(&VARIABLE_NAMES, object.take("filter")?)?;
        let wanted = groups(object, Sorts::NONE, None)?;
        self.ask(Cost::Any, move |readers| {
            let names = readers.variable_names(key, &condition)?;
            Ok(Ok(Answered::Json(answer::variable_names(&names, &wanted)?)))
        })
        .await
    }

    async fn elements_of_definition(&self, asked: Asked<'_>) -> Result<Answered, Problem> {
        let key = path_key("processDefinitionKey", asked.parameter)?;
        let mut object = Object::read(asked.body)?;
        let filter = object.take::<Object<'_>>("filter")?.filter(|filter| !filter.is_empty());
        let condition = filter.map(|filter| filter::read(&PROCESS_INSTANCES, filter)).transpose()?;
        object.finish()?;
        let owner = by_key(&PROCESS_DEFINITIONS, key);
        self.ask(Cost::Any, move |readers| {
            if owner.map(|owner| owner.first(readers)).transpose()?.flatten().is_none() {
                return Ok(Err(not_found(&PROCESS_DEFINITIONS, key)));
            }
            // Counts of all instances are kept; those of some are made.
            let counts = match condition {
                Some(condition) => readers.element_counts_where(key, &condition)?,
                None => readers.element_counts(key)?,
            };
            Ok(Ok(Answered::Json(answer::element_counts(&counts))))
        })
        .await
    }

    /// Counts within the process instance of the path, if it is there.
    async fn of_instance(
        &self,
        asked: Asked<'_>,
        count: impl FnOnce(&mut Readers, &Search, i64) -> Result<Vec<u8>, readmodel::query::Failure> + Send + 'static,
    ) -> Result<Answered, Problem> {
        let key = path_key("processInstanceKey", asked.parameter)?;
        let owner = by_key(&PROCESS_INSTANCES, key);
        self.ask(Cost::Any, move |readers| {
            let Some(owner) = owner else { return Ok(Err(not_found(&PROCESS_INSTANCES, key))) };
            if owner.first(readers)?.is_none() {
                return Ok(Err(not_found(&PROCESS_INSTANCES, key)));
            }
            Ok(Ok(Answered::Json(count(readers, &owner, key)?)))
        })
        .await
    }

    /// Counts in groups, and answers those that are wanted.
    async fn groups(
        &self,
        wanted: Groups,
        count: impl FnOnce(&mut Readers) -> Result<answer::Counted, readmodel::query::Failure> + Send + 'static,
    ) -> Result<Answered, Problem> {
        self.ask(Cost::Any, move |readers| Ok(Ok(Answered::Json(answer::groups(count(readers)?, &wanted)?)))).await
    }

    /// All jobs, as the query of the request restricts them.
    async fn all_jobs(&self, query: &str) -> Result<Answered, Problem> {
        let given = |name: &str| given_in(query, name);
        let period = period(given("from"), given("to"))?;
        let condition = match given("jobType").filter(|given| !given.is_empty()) {
            Some(job_type) => of_type(job_type),
            None => Condition::always(),
        };
        self.ask(Cost::Any, move |readers| {
            let counts = readers.job_counts(GroupBy::All, period, &condition, &GroupPage::first(1))?;
            let counts = counts.items.first().map(|of| of.counts).unwrap_or_default();
            let mut json = JsonObject::new();
            numbers(&mut json, &counts);
            // Nothing is left out of the counts.
            json.flag("isIncomplete", false);
            Ok(Ok(Answered::Json(json.finish())))
        })
        .await
    }

    async fn usage(&self, query: &str) -> Result<Answered, Problem> {
        const DEFAULT_TENANT: &str = "<default>";
        let given = |name: &str| given_in(query, name);
        let period = moments(["startTime", "endTime"].map(|name| (name, given(name))))?;
        if period.0 >= period.1 {
            return Err(invalid("The moment 'startTime' must be before the moment 'endTime'."));
        }
        let with_tenants = match given("withTenants").as_deref() {
            None | Some("" | "false") => false,
            Some("true") => true,
            Some(other) => {
                let other = excerpt(other);
                return Err(invalid(format!("The value '{other}' of withTenants is neither true nor false.")));
            }
        };
        let is_other_tenant = given("tenantId").is_some_and(|given| !given.is_empty() && given != DEFAULT_TENANT);
        self.ask(Cost::Any, move |readers| {
            let counts = if is_other_tenant { UsageCounts::default() } else { readers.usage_counts(period)? };
            let numbers = serde_json::json!({
                "processInstances": counts.process_instances, "decisionInstances": counts.decision_instances,
                "assignees": counts.assignees,
            });
            let is_active = counts != UsageCounts::default();
            let mut answer = numbers.clone();
            answer["activeTenants"] = i64::from(is_active).into();
            answer["tenants"] = serde_json::json!({});
            if with_tenants && is_active {
                answer["tenants"][DEFAULT_TENANT] = numbers;
            }
            Ok(Ok(Answered::Json(answer.to_string().into_bytes())))
        })
        .await
    }

    async fn jobs(&self, read: Read, body: &[u8]) -> Result<Answered, Problem> {
        let mut object = Object::read(body)?;
        let mut filter: Object<'_> = object.require("filter")?;
        let period = period(filter.take("from")?, filter.take("to")?)?;
        if read != Read::JobsByType && !filter.has("jobType") {
            return Err(invalid("No filter.jobType provided."));
        }
        let resolution = if read == Read::JobsByTime { filter.take("resolution")? } else { None };
        let resolution = resolution.map(|given: String| self::resolution(&given)).transpose()?;
        let entity = if read == Read::JobErrors { &JOB_ERRORS } else { &JOB_COUNTS };
        let condition = condition(entity, Some(filter))?;
        if read == Read::JobErrors {
            let page = groups(object, Sorts::NONE, Some(Kind::Key))?.page;
            return self
                .ask(Cost::Any, move |readers| {
                    let errors = readers.job_errors(period, &condition, &page)?;
                    Ok(Ok(Answered::Json(answer::grouped(errors, answer::job_error))))
                })
                .await;
        }
        let by = match read {
            Read::JobsByType => GroupBy::Type,
            Read::JobsByWorker => GroupBy::Worker,
            _ => GroupBy::Time(resolution.unwrap_or_else(|| usual_resolution(period))),
        };
        let page = groups(object, Sorts::NONE, Some(by.kind()))?.page;
        self.ask(Cost::Any, move |readers| {
            let counts = readers.job_counts(by, period, &condition, &page)?;
            Ok(Ok(Answered::Json(answer::grouped(counts, |of| jobs_of(by, of)))))
        })
        .await
    }
}

/// What errors are ordered by, by its name among [`Sorts::ERRORS`].
fn error_order(name: &str) -> ErrorOrder {
    if name == "errorMessage" { ErrorOrder::Message } else { ErrorOrder::Instances }
}

/// Versions are counted of a process that the filter names.
fn check_names_a_process(filter: Option<&Object<'_>>) -> Result<(), Problem> {
    let Some(filter) = filter else { return Err(invalid("No filter provided.")) };
    let id = filter.value("processDefinitionId").map(RawValue::get).unwrap_or("null");
    let is_blank = serde_json::from_str::<String>(id).is_ok_and(|id| id.trim().is_empty());
    if is_blank || id == "null" {
        return Err(invalid("No filter.processDefinitionId provided."));
    }
    Ok(())
}

fn condition(entity: &'static Entity, filter: Option<Object<'_>>) -> Result<Condition, Problem> {
    Ok(filter.map(|filter| filter::read(entity, filter)).transpose()?.unwrap_or_else(Condition::always))
}

fn of_type(job_type: String) -> Condition {
    match JOB_COUNTS.field("jobType") {
        Some(field) => Condition::equal(field, readmodel::query::Value::Text(job_type)),
        None => Condition::always(),
    }
}

/// The value of a parameter behind the path.
fn given_in(query: &str, name: &str) -> Option<String> {
    let mut values = query.split('&').filter_map(|part| part.split_once('='));
    values.find(|(known, _)| *known == name).map(|(_, value)| percent_decoded(value))
}

/// From one moment to another, which must both be given.
fn period(from: Option<String>, to: Option<String>) -> Result<(Timestamp, Timestamp), Problem> {
    let (from, to) = moments([("from", from), ("to", to)])?;
    if from > to {
        return Err(invalid("The moment 'from' must not be after the moment 'to'."));
    }
    Ok((from, to))
}

/// Two moments by their names.
fn moments(named: [(&str, Option<String>); 2]) -> Result<(Timestamp, Timestamp), Problem> {
    let read = |name: &str, given: Option<String>| {
        let given = given.ok_or_else(|| invalid(format!("No {name} provided.")))?;
        moment(&given).ok_or_else(|| {
            invalid(format!(
                "The provided {name} '{}' cannot be parsed as a date according to RFC 3339, section 5.6.",
                excerpt(&given)
            ))
        })
    };
    let [(first, from), (second, to)] = named;
    Ok((read(first, from)?, read(second, to)?))
}

/// Periods are not cut into more pieces.
const PIECES_MAX: i64 = 1_000;

/// A thousandth of the period.
fn usual_resolution((from, to): (Timestamp, Timestamp)) -> i64 {
    to.saturating_sub(from) / PIECES_MAX
}

/// The milliseconds of a duration like `PT5M`.
fn resolution(given: &str) -> Result<i64, Problem> {
    duration(given).filter(|milliseconds| *milliseconds > 0).ok_or_else(|| {
        invalid(format!(
            "The provided resolution '{}' is not a duration according to ISO 8601, for example PT5M.",
            excerpt(given)
        ))
    })
}

fn jobs_of(by: GroupBy, of: &JobsOf) -> JsonObject {
    let mut json = JsonObject::new();
    match by {
        GroupBy::Type => json.text("jobType", &of.name),
        GroupBy::Time(_) => json.text("time", &instant(of.time)),
        _ => json.text("worker", &of.name),
    };
    numbers(&mut json, &of.counts);
    if by == GroupBy::Type {
        json.number("workers", of.workers);
    }
    json
}

fn numbers(json: &mut JsonObject, counts: &JobCounts) {
    for (name, Counted { count, last }) in
        [("created", counts.created), ("completed", counts.completed), ("failed", counts.failed)]
    {
        let mut of = JsonObject::new();
        of.number("count", count).text_or_null("lastUpdatedAt", &last.map(instant).unwrap_or_default());
        json.object_or_null(name, Some(of));
    }
}

/// A value in a query as it was before its characters were escaped. What is escaped in a wrong way stays as it is.
fn percent_decoded(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let [first, behind @ ..] = rest {
        let escaped = || u8::from_str_radix(std::str::from_utf8(behind.get(..2)?).ok()?, 16).ok();
        match (first, (*first == b'%').then(escaped).flatten()) {
            (_, Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
        rest = behind;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_as_they_were_meant() {
        for (given, meant) in [
            ("2025-11-21T04%3A40%3a00Z", "2025-11-21T04:40:00Z"),
            ("a+b%2Bc", "a b+c"),
            ("50%", "50%"),
            ("%zz%e", "%zz%e"),
            ("%ff", "%ff"),
        ] {
            assert_eq!(percent_decoded(given), meant, "{given}");
        }
    }

    #[test]
    fn mistakes_in_a_period_are_told() {
        let text = |text: &str| Some(text.to_owned());
        for (from, to, detail) in [
            (None, text("2025-11-21T04:40:00Z"), "No from provided."),
            (text("2025-11-21T04:40:00Z"), None, "No to provided."),
            (text("soon"), text("2025-11-21T04:40:00Z"), "The provided from 'soon' cannot be parsed as a date"),
            (text("2025-11-21T04:40:01Z"), text("2025-11-21T04:40:00Z"), "'from' must not be after"),
        ] {
            let problem = period(from, to).expect_err(detail);
            assert!(problem.status.as_u16() == 400 && problem.detail.contains(detail), "{problem:?}");
        }
        let moment = || text("2025-11-21T04:40:00Z");
        assert!(period(moment(), moment()).is_ok(), "in which there is nothing");
        assert_eq!(resolution("PT5M").ok(), Some(300_000));
        assert_eq!(resolution("P1D").ok(), Some(86_400_000));
        for wrong in ["", "5", "PT0S", "-PT5M"] {
            assert!(resolution(wrong).is_err(), "{wrong}");
        }
    }
}
