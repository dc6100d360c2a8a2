//! Nodes of a cluster that are set up differently: whose settings hold, and what an operator must know.
//!
//! Settings that become part of the state are those of the member with the lowest number, as it said them last: if every leader
//! wrote its own, they would change with each change of leader.

use std::collections::{BTreeMap, BTreeSet};

use peers::NodeNumber;
use protocol::GlobalListenerValue;

use super::port::Contact;
use crate::options::NodeOptions;

/// The settings that become part of the state, in the order of their checksums.
const SETTINGS: [&str; 3] = ["root-variable-bytes-limit", "unique-business-ids", "global-listeners"];

/// Checksums of the settings that become part of the state.
pub(crate) fn checksums(options: &NodeOptions) -> Vec<u32> {
    let listeners: &[GlobalListenerValue] = &options.global_listeners;
    let encoded = [
        protocol::encode_to_vec(&options.root_variable_bytes_limit),
        protocol::encode_to_vec(&options.unique_business_ids),
        protocol::encode_to_vec(&listeners),
    ];
    encoded.iter().map(|bytes| crc32fast::hash(bytes)).collect()
}

/// What a node says of how it is set up.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetUp<'a> {
    pub node: NodeNumber,
    pub settings: &'a [u32],
    pub exporters: &'a BTreeSet<String>,
}

impl SetUp<'_> {
    /// Those of all other nodes that were ever heard of, whether they are there now or not.
    pub fn heard(contacts: &BTreeMap<NodeNumber, Contact>) -> impl Iterator<Item = SetUp<'_>> {
        let heard = contacts.iter().filter(|(_, contact)| !contact.status.version.is_empty());
        heard.map(|(node, Contact { status, .. })| SetUp {
            node: *node,
            settings: &status.settings,
            exporters: &status.exporters,
        })
    }

    /// Whether this node may make its settings those of partitions.
    pub fn decides_settings(&self, contacts: &BTreeMap<NodeNumber, Contact>) -> bool {
        let Some((lowest, _)) = contacts.first_key_value().filter(|(lowest, _)| **lowest < self.node) else {
            return true;
        };
        SetUp::heard(contacts).any(|other| other.node == *lowest && other.settings == self.settings)
    }

    /// What an operator must know, a sentence each.
    pub fn disagreements(&self, contacts: &BTreeMap<NodeNumber, Contact>) -> BTreeSet<String> {
        let lowest = contacts.keys().next().copied().into_iter().chain([self.node]).min().unwrap_or(self.node);
        let settings = SetUp::heard(contacts)
            .filter(|other| self.node == lowest || other.node == lowest)
            .filter_map(|other| self.settings_differ(&other, lowest));
        let exporters = SetUp::heard(contacts).flat_map(|other| {
            let here = other.exporters.difference(self.exporters).map(move |name| lacks(self.node, other.node, name));
            here.chain(self.exporters.difference(other.exporters).map(move |name| lacks(other.node, self.node, name)))
        });
        settings.chain(exporters).collect()
    }

    fn settings_differ(&self, other: &SetUp<'_>, lowest: NodeNumber) -> Option<String> {
        let equal = |at: usize| self.settings.get(at) == other.settings.get(at);
        let names: Vec<&str> =
            SETTINGS.iter().enumerate().filter(|(at, _)| !equal(*at)).map(|(_, name)| *name).collect();
        if names.is_empty() && self.settings.len() == other.settings.len() {
            return None;
        }
        let names = if names.is_empty() { "of another version".to_owned() } else { names.join(", ") };
        let (one, two) = (self.node.min(other.node), self.node.max(other.node));
        Some(format!(
            "Nodes {one} and {two} have different settings ({names}). Those of node {lowest} become part of the state, and a leader \
             that has others changes nothing. Give all nodes the same."
        ))
    }
}

fn lacks(node: NodeNumber, other: NodeNumber, exporter: &str) -> String {
    format!(
        "Node {node} lacks the exporter {exporter} that node {other} has: while node {node} leads a partition, its records do not \
         go there, and they are kept meanwhile. Give all nodes the same exporters."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contacts(of: &[(u32, &[u32], &[&str])]) -> BTreeMap<NodeNumber, Contact> {
        let contact = |settings: &[u32], exporters: &[&str]| {
            let mut contact = Contact::new(std::time::Instant::now());
            contact.status.version = "1".to_owned();
            contact.status.settings = settings.to_vec();
            contact.status.exporters = exporters.iter().map(ToString::to_string).collect();
            contact
        };
        of.iter().map(|(node, settings, exporters)| (NodeNumber(*node), contact(settings, exporters))).collect()
    }

    #[test]
    fn the_settings_of_the_lowest_node_hold_once_it_has_said_them() {
        let exporters = BTreeSet::new();
        let own = |node, settings| SetUp { node: NodeNumber(node), settings, exporters: &exporters };
        let (zero, two): (&[u32], &[u32]) = (&[1, 2, 3], &[1, 9, 3]);
        let mut others = contacts(&[(0, zero, &[]), (2, two, &[])]);
        assert!(own(1, zero).decides_settings(&others));
        assert!(!own(1, two).decides_settings(&others));
        assert!(own(0, two).decides_settings(&contacts(&[(1, zero, &[])])), "it is the lowest itself");
        let said = own(1, two).disagreements(&others);
        let [sentence] = &Vec::from_iter(said)[..] else { panic!("of node 0 alone") };
        assert!(sentence.starts_with("Nodes 0 and 1 have different settings (unique-business-ids)."), "{sentence}");
        // It was never heard of.
        others.insert(NodeNumber(0), Contact::new(std::time::Instant::now()));
        assert!(!own(1, zero).decides_settings(&others));
        assert!(own(1, two).disagreements(&others).is_empty());
    }

    #[test]
    fn who_lacks_an_exporter_is_named_with_it() {
        let exporters = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let own = SetUp { node: NodeNumber(0), settings: &[], exporters: &exporters };
        let said = own.disagreements(&contacts(&[(1, &[], &["a", "c"]), (2, &[], &["a", "b"])]));
        let begins = |begin: &str| said.iter().any(|sentence| sentence.starts_with(begin));
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(begins("Node 0 lacks the exporter c that node 1 has"), "{said:?}");
        assert!(begins("Node 1 lacks the exporter b that node 0 has"), "{said:?}");
    }
}
