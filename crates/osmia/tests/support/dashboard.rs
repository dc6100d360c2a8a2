//! The queries of the dashboard, and what they need of a node.

use std::collections::BTreeSet;

use serde_json::Value;

/// Labels that Prometheus adds, and those by which its own functions group.
const NOT_OF_THE_NODE: [&str; 2] = ["instance", "le"];

/// What one query of the dashboard needs: these labels on a metric of this name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needed {
    name: String,
    labels: BTreeSet<String>,
    panel: String,
}

impl Needed {
    /// Whether a text of Prometheus has it.
    pub fn is_in(&self, text: &str) -> bool {
        text.lines().any(|line| {
            let rest = line.strip_prefix(self.name.as_str());
            let labels = rest.and_then(|rest| rest.strip_prefix('{')).unwrap_or_default();
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && self.labels.iter().all(|label| labels.contains(&format!("{label}=\"")))
        })
    }
}

/// What all queries of a dashboard need.
pub fn needed(dashboard: &str) -> BTreeSet<Needed> {
    let dashboard: Value = serde_json::from_str(dashboard).expect("the dashboard is JSON");
    let mut needed = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("it has panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let (query, legend) = (text(&target["expr"]), text(&target["legendFormat"]));
            let names = names(query);
            assert!(!names.is_empty(), "no metric in {query}");
            let wanted: BTreeSet<String> =
                grouped(query).chain(shown(legend)).filter(|label| is_of_node(label)).collect();
            needed.extend(names.into_iter().map(|name| Needed {
                name,
                labels: wanted.clone(),
                panel: text(&panel["title"]).to_owned(),
            }));
        }
    }
    needed
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_of_node(label: &str) -> bool {
    !NOT_OF_THE_NODE.contains(&label)
}

/// Every selector in a query follows the name of its metric.
fn names(query: &str) -> Vec<String> {
    let before = query.split('{').collect::<Vec<_>>();
    let ends = before[..before.len() - 1].iter();
    ends.map(|text| {
        let start = text.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').map_or(0, |at| at + 1);
        text[start..].to_owned()
    })
    .collect()
}

/// The labels of `by (…)`.
fn grouped(query: &str) -> impl Iterator<Item = String> {
    let lists = query.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(|list| list.split(',')).map(|label| label.trim().to_owned())
}

/// The labels of `{{…}}` in a legend.
fn shown(legend: &str) -> impl Iterator<Item = String> {
    legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()).map(str::to_owned)
}
