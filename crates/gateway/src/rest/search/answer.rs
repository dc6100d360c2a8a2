//! Answers of searches.

use std::collections::{BTreeMap, BTreeSet};

use readmodel::query::{
    ANSWER_BYTES_MAX, DefinitionCounts, DefinitionErrors, ElementCounts, ErrorCounts, Failure, Found, Grouped,
    JobErrors, SubscriptionCounts, TOTAL_MAX, Value,
};

use super::request::Groups;
use crate::rest::json::JsonObject;

/// The bytes of an answer besides its items, about.
const PAGE_BYTES: usize = 400;

/// A page of rows.
pub(super) fn page(found: &Found) -> Vec<u8> {
    let bytes: usize = found.items.iter().map(|item| item.len() + 1).sum();
    let mut text = Vec::with_capacity(bytes + PAGE_BYTES);
    text.extend_from_slice(b"{\"items\":[");
    for (index, item) in found.items.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"],\"page\":");
    let mut page = JsonObject::new();
    page.number("totalItems", i64::try_from(found.total).unwrap_or(i64::MAX)).flag("hasMoreTotalItems", found.has_more);
    match &found.ends {
        Some((first, last)) => page.text("startCursor", &first.encode()).text("endCursor", &last.encode()),
        None => page.null("startCursor").null("endCursor"),
    };
    text.extend(page.finish());
    text.push(b'}');
    text
}

/// All items, without pages.
pub(super) fn items(items: impl IntoIterator<Item = JsonObject>) -> Vec<u8> {
    let mut json = JsonObject::new();
    json.objects("items", items);
    json.finish()
}

pub(super) fn element_counts(counts: &BTreeMap<String, ElementCounts>) -> Vec<u8> {
    items(counts.iter().map(|(element_id, of)| {
        let mut json = JsonObject::new();
        json.text("elementId", element_id).number("active", of.active).number("canceled", of.canceled);
        json.number("incidents", of.incidents).number("completed", of.completed);
        json
    }))
}

/// How many instances of each element wait.
pub(super) fn waiting_counts(counts: &BTreeMap<String, i64>) -> Vec<u8> {
    items(counts.iter().map(|(element_id, count)| {
        let mut json = JsonObject::new();
        json.text("elementId", element_id).number("waitingCount", *count);
        json
    }))
}

/// The names of what groups can be ordered by.
#[derive(Debug, Clone, Copy)]
pub(in crate::rest) struct Sorts(pub &'static [&'static str]);

impl Sorts {
    pub(in crate::rest) const NONE: Sorts = Sorts(&[]);
    pub(in crate::rest) const PROCESSES: Sorts =
        Sorts(&["activeInstancesWithIncidentCount", "activeInstancesWithoutIncidentCount", "processDefinitionId"]);
    pub(in crate::rest) const VERSIONS: Sorts = Sorts(&[
        "activeInstancesWithIncidentCount",
        "activeInstancesWithoutIncidentCount",
        "processDefinitionId",
        "processDefinitionKey",
        "processDefinitionName",
        "processDefinitionVersion",
    ]);
    pub(in crate::rest) const ERRORS: Sorts = Sorts(&["activeInstancesWithErrorCount", "errorMessage"]);
    pub(in crate::rest) const DEFINITION_ERRORS: Sorts =
        Sorts(&["activeInstancesWithErrorCount", "processDefinitionKey", "tenantId"]);
}

/// Groups that something was counted in, with what they can be ordered by.
pub(super) type Counted = Vec<(JsonObject, Vec<(&'static str, Value)>)>;

/// Those that are wanted, as a page of all.
pub(super) fn groups(mut counted: Counted, wanted: &Groups) -> Result<Vec<u8>, Failure> {
    let by = |columns: &[(&'static str, Value)], name: &str| {
        columns.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    for (name, descending) in wanted.sort.iter().rev() {
        counted.sort_by(|(_, one), (_, other)| {
            let order = by(one, name).cmp(&by(other, name));
            if *descending { order.reverse() } else { order }
        });
    }
    let total = counted.len() as u64;
    let on_page = wanted.page.of(counted);
    counted_page(on_page.map(|(json, _)| json.finish()), total, false)
}

/// A page that has to be whole.
fn counted_page(items: impl Iterator<Item = Vec<u8>>, total: u64, has_more: bool) -> Result<Vec<u8>, Failure> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for item in items {
        bytes += item.len();
        if bytes > ANSWER_BYTES_MAX {
            return Err(Failure::LargeGroups);
        }
        all.push(item);
    }
    Ok(page(&Found { items: all, total, has_more, ends: None }))
}

/// A page of groups that the database put in order.
pub(super) fn grouped<T>(found: Grouped<T>, item: impl Fn(&T) -> JsonObject) -> Vec<u8> {
    let Grouped { items, total, has_more, ends } = found;
    page(&Found { items: items.iter().map(|of| item(of).finish()).collect(), total, has_more, ends })
}

/// A page of names, of which not more are told than a search counts.
pub(super) fn variable_names(names: &BTreeSet<String>, wanted: &Groups) -> Result<Vec<u8>, Failure> {
    let told = usize::try_from(TOTAL_MAX).unwrap_or(usize::MAX);
    let item = |name: &String| {
        let mut json = JsonObject::new();
        json.text("name", name);
        json.finish()
    };
    let on_page = wanted.page.of(names.iter().take(told)).map(item);
    counted_page(on_page, names.len().min(told) as u64, names.len() > told)
}

pub(super) fn definition_counts(counts: &[DefinitionCounts]) -> Counted {
    // The versions of a process of a tenant are together.
    let mut processes: BTreeMap<(&str, &str), Vec<&DefinitionCounts>> = BTreeMap::new();
    for of in counts {
        processes.entry((&of.id, &of.tenant)).or_default().push(of);
    }
    let process = |((id, tenant), versions): ((&str, &str), Vec<&DefinitionCounts>)| {
        let latest = versions.iter().max_by_key(|of| of.version).and_then(|of| of.name.as_deref());
        let with: i64 = versions.iter().map(|of| of.with_incident).sum();
        let active: i64 = versions.iter().map(|of| of.active).sum();
        let mut json = JsonObject::new();
        json.text("processDefinitionId", id).text("tenantId", tenant);
        match latest {
            Some(name) => json.text("latestProcessDefinitionName", name),
            None => json.null("latestProcessDefinitionName"),
        };
        json.flag("hasMultipleVersions", versions.len() > 1);
        json.number("activeInstancesWithoutIncidentCount", active - with)
            .number("activeInstancesWithIncidentCount", with);
        let columns = vec![
            ("activeInstancesWithIncidentCount", Value::Integer(with)),
            ("activeInstancesWithoutIncidentCount", Value::Integer(active - with)),
            ("processDefinitionId", Value::Text(id.to_owned())),
        ];
        (json, columns)
    };
    processes.into_iter().map(process).collect()
}

pub(super) fn version_counts(counts: &[DefinitionCounts]) -> Counted {
    let version = |of: &DefinitionCounts| {
        let mut json = JsonObject::new();
        json.text("processDefinitionId", &of.id).text("processDefinitionKey", &of.key.to_string());
        json.text_or_null("processDefinitionName", of.name.as_deref().unwrap_or_default());
        json.text("tenantId", &of.tenant).number("processDefinitionVersion", of.version);
        json.number("activeInstancesWithIncidentCount", of.with_incident);
        json.number("activeInstancesWithoutIncidentCount", of.active - of.with_incident);
        let columns = vec![
            ("activeInstancesWithIncidentCount", Value::Integer(of.with_incident)),
            ("activeInstancesWithoutIncidentCount", Value::Integer(of.active - of.with_incident)),
            ("processDefinitionId", Value::Text(of.id.clone())),
            ("processDefinitionKey", Value::Integer(of.key)),
            ("processDefinitionName", of.name.clone().map_or(Value::Null, Value::Text)),
            ("processDefinitionVersion", Value::Integer(of.version.into())),
        ];
        (json, columns)
    };
    counts.iter().map(version).collect()
}

pub(super) fn error(of: &ErrorCounts) -> JsonObject {
    let mut json = JsonObject::new();
    json.number("errorHashCode", of.hash_code).text("errorMessage", &of.message);
    json.number("activeInstancesWithErrorCount", of.instances);
    json
}

pub(super) fn definition_errors(counts: &[DefinitionErrors]) -> Counted {
    let definition = |of: &DefinitionErrors| {
        let mut json = JsonObject::new();
        json.text("processDefinitionId", &of.id).text("processDefinitionKey", &of.key.to_string());
        // Here the API has no null for one without a name.
        json.text("processDefinitionName", of.name.as_deref().unwrap_or(&of.id));
        json.number("processDefinitionVersion", of.version).text("tenantId", &of.tenant);
        json.number("activeInstancesWithErrorCount", of.instances);
        let columns = vec![
            ("activeInstancesWithErrorCount", Value::Integer(of.instances)),
            ("processDefinitionKey", Value::Integer(of.key)),
            ("tenantId", Value::Text(of.tenant.clone())),
        ];
        (json, columns)
    };
    counts.iter().map(definition).collect()
}

pub(super) fn subscriptions(of: &SubscriptionCounts) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("processDefinitionId", &of.id).text("tenantId", &of.tenant);
    json.text("processDefinitionKey", &of.key.to_string());
    json.number("processInstancesWithActiveSubscriptions", of.instances);
    json.number("activeSubscriptions", of.subscriptions);
    json
}

pub(super) fn job_error(of: &JobErrors) -> JsonObject {
    let mut json = JsonObject::new();
    json.text("errorCode", &of.code).text("errorMessage", &of.message).number("workers", of.workers);
    json
}
