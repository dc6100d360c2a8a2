//! Answers of searches.

use readmodel::query::{DefinitionCounts, DefinitionErrors, ElementCounts, ErrorCounts, Found, SubscriptionCounts};
use std::collections::BTreeMap;

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

/// Items that were counted, as one page of all.
fn counted(items: impl Iterator<Item = JsonObject>, from: usize, limit: usize, total: usize) -> Vec<u8> {
    let items = items.skip(from).take(limit).map(JsonObject::finish).collect();
    page(&Found { items, total: total as u64, has_more: false, ends: None })
}

pub(super) fn definition_counts(counts: &[DefinitionCounts], from: usize, limit: usize) -> Vec<u8> {
    // The versions of a process of a tenant are together.
    let mut processes: BTreeMap<(&str, &str), Vec<&DefinitionCounts>> = BTreeMap::new();
    for of in counts {
        processes.entry((&of.id, &of.tenant)).or_default().push(of);
    }
    let total = processes.len();
    let items = processes.into_iter().map(|((id, tenant), versions)| {
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
        json
    });
    counted(items, from, limit, total)
}

pub(super) fn version_counts(counts: &[DefinitionCounts], from: usize, limit: usize) -> Vec<u8> {
    let items = counts.iter().map(|of| {
        let mut json = JsonObject::new();
        json.text("processDefinitionId", &of.id).text("processDefinitionKey", &of.key.to_string());
        match &of.name {
            Some(name) => json.text("processDefinitionName", name),
            None => json.null("processDefinitionName"),
        };
        json.text("tenantId", &of.tenant).number("processDefinitionVersion", of.version);
        json.number("activeInstancesWithIncidentCount", of.with_incident);
        json.number("activeInstancesWithoutIncidentCount", of.active - of.with_incident);
        json
    });
    counted(items, from, limit, counts.len())
}

pub(super) fn error_counts(counts: &[ErrorCounts], from: usize, limit: usize) -> Vec<u8> {
    let items = counts.iter().map(|of| {
        let mut json = JsonObject::new();
        json.number("errorHashCode", of.hash_code).text("errorMessage", &of.message);
        json.number("activeInstancesWithErrorCount", of.instances);
        json
    });
    counted(items, from, limit, counts.len())
}

pub(super) fn definition_errors(counts: &[DefinitionErrors], from: usize, limit: usize) -> Vec<u8> {
    let items = counts.iter().map(|of| {
        let mut json = JsonObject::new();
        json.text("processDefinitionId", &of.id).text("processDefinitionKey", &of.key.to_string());
        match &of.name {
            Some(name) => json.text("processDefinitionName", name),
            None => json.null("processDefinitionName"),
        };
        json.number("processDefinitionVersion", of.version).text("tenantId", &of.tenant);
        json.number("activeInstancesWithErrorCount", of.instances);
        json
    });
    counted(items, from, limit, counts.len())
}

pub(super) fn subscription_counts(counts: &[SubscriptionCounts], from: usize, limit: usize) -> Vec<u8> {
    let items = counts.iter().map(|of| {
        let mut json = JsonObject::new();
        json.text("processDefinitionId", &of.id).text("tenantId", &of.tenant);
        json.text("processDefinitionKey", &of.key.to_string());
        json.number("processInstancesWithActiveSubscriptions", of.instances);
        json.number("activeSubscriptions", of.subscriptions);
        json
    });
    counted(items, from, limit, counts.len())
}
