//! Compares a ledger with what the nodes find.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::view::{Instance, State, View};
use crate::ledger::{Book, Creation, Outcome};
use crate::model::Tag;
use crate::silence::moment;

/// Findings that are described; further ones are counted.
pub(super) const DESCRIBED_MAX: usize = 20;

/// What kind of wrong something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A node does not have a creation or a completion that was acknowledged.
    Lost,
    /// One creation made two instances, one task two jobs, or a refused creation an instance.
    Doubled,
    /// An instance is active, and no job of it moves.
    Stuck,
    /// The nodes do not agree about an instance.
    Disagreeing,
    /// An instance that the ledger does not name, or that somebody terminated.
    Unexpected,
}

impl Display for FindingKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FindingKind::Lost => "lost",
            FindingKind::Doubled => "doubled",
            FindingKind::Stuck => "stuck",
            FindingKind::Disagreeing => "disagreeing",
            FindingKind::Unexpected => "unexpected",
        })
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of wrong.
    pub kind: FindingKind,
    /// The finding in a sentence.
    pub sentence: String,
}

/// All that is wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub counts: BTreeMap<FindingKind, u64>,
    pub first: Vec<Finding>,
}

impl Findings {
    fn add(&mut self, kind: FindingKind, sentence: impl FnOnce() -> String) {
        *self.counts.entry(kind).or_default() += 1;
        if self.first.len() < DESCRIBED_MAX {
            self.first.push(Finding { kind, sentence: sentence() });
        }
    }

    pub fn count(&self, kind: FindingKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// The nodes with their addresses.
pub(super) struct Comparison<'a> {
    pub book: &'a Book,
    pub nodes: &'a [(String, View)],
}

impl Comparison<'_> {
    /// Everything that is wrong, in the order of the kinds; of one kind in the order of the tags and keys.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        let by_tag = self.by_tag();
        self.lost_creations(&mut findings);
        self.lost_completions(&mut findings);
        self.doubled_instances(&by_tag, &mut findings);
        self.doubled_jobs(&mut findings);
        self.each_instance(&mut findings);
        findings
    }

    /// The keys of the instances with each tag, at any node. Who shows no tags has those that were acknowledged.
    fn by_tag(&self) -> BTreeMap<u64, BTreeSet<i64>> {
        let mut by_tag: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
        for (_, view) in self.nodes {
            for (key, instance) in &view.instances {
                if let Some(tag) = instance.tag {
                    by_tag.entry(tag.0).or_default().insert(*key);
                }
            }
        }
        for (tag, creation) in &self.book.creations {
            if let Outcome::Acknowledged(key) = creation.outcome {
                by_tag.entry(tag.0).or_default().insert(key);
            }
        }
        by_tag
    }

    /// The addresses of those nodes for which this holds.
    fn nodes_where(&self, holds: impl Fn(&View) -> bool) -> String {
        let addresses: Vec<&str> =
            self.nodes.iter().filter(|(_, view)| holds(view)).map(|(address, _)| address.as_str()).collect();
        addresses.join(", ")
    }

    fn lost_creations(&self, findings: &mut Findings) {
        let acknowledged = self.book.creations.iter().filter_map(|(tag, creation)| match creation.outcome {
            Outcome::Acknowledged(key) => Some((key, *tag, creation.at)),
            Outcome::Refused | Outcome::Unknown => None,
        });
        let mut lost: Vec<(i64, Tag, u64)> = acknowledged
            .filter(|(key, ..)| self.nodes.iter().any(|(_, view)| !view.instances.contains_key(key)))
            .collect();
        lost.sort_unstable_by_key(|(key, ..)| *key);
        for (key, tag, at) in lost {
            findings.add(FindingKind::Lost, || {
                let nodes = self.nodes_where(|view| !view.instances.contains_key(&key));
                let sent = moment(at);
                format!("Instance {key} ({tag}), sent at {sent} and acknowledged, is not found at {nodes}.")
            });
        }
    }

    fn lost_completions(&self, findings: &mut Findings) {
        let is_lost = |view: &View, job: &i64| view.jobs.get(job).is_none_or(|job| !job.is_completed);
        let acknowledged = self.book.completions.iter().filter(|(_, completion)| completion.is_acknowledged);
        let mut lost: Vec<i64> = acknowledged
            .map(|(job, _)| *job)
            .filter(|job| self.nodes.iter().any(|(_, view)| is_lost(view, job)))
            .collect();
        lost.sort_unstable();
        for job in lost {
            findings.add(FindingKind::Lost, || {
                let nodes = self.nodes_where(|view| is_lost(view, &job));
                let completion = &self.book.completions[&job];
                let (instance, at) = (completion.instance, moment(completion.at));
                format!(
                    "The completion of job {job} of instance {instance} was acknowledged at {at}, but the job is not \
                     completed at {nodes}."
                )
            });
        }
    }

    fn doubled_instances(&self, by_tag: &BTreeMap<u64, BTreeSet<i64>>, findings: &mut Findings) {
        for (tag, keys) in by_tag {
            let tag = Tag(*tag);
            let listed = || keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            match self.book.creations.get(&tag) {
                Some(creation) if keys.len() > 1 => findings.add(FindingKind::Doubled, || {
                    let (count, sent) = (keys.len(), moment(creation.at));
                    format!("The creation {tag} was sent once, at {sent}, and made {count} instances: {}.", listed())
                }),
                Some(creation) if creation.outcome == Outcome::Refused => findings.add(FindingKind::Doubled, || {
                    let sent = moment(creation.at);
                    format!("The creation {tag}, sent at {sent}, was refused, but there is instance {}.", listed())
                }),
                Some(_) => {}
                None => findings.add(FindingKind::Unexpected, || {
                    format!("The ledger has no creation {tag}, but there is instance {}.", listed())
                }),
            }
        }
    }

    /// No process of this tool comes to a task twice.
    fn doubled_jobs(&self, findings: &mut Findings) {
        let mut doubled: BTreeMap<(i64, u16), BTreeSet<i64>> = BTreeMap::new();
        for (_, view) in self.nodes {
            let mut first: HashMap<(i64, u16), i64> = HashMap::with_capacity(view.jobs.len());
            for (key, job) in &view.jobs {
                let Some(task) = job.task else { continue };
                if let Some(other) = first.insert((job.instance, task), *key) {
                    doubled.entry((job.instance, task)).or_default().extend([other, *key]);
                }
            }
        }
        for ((instance, task), jobs) in doubled {
            findings.add(FindingKind::Doubled, || {
                let jobs = jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                format!("Instance {instance} came to task {task} more than once: jobs {jobs}.")
            });
        }
    }

    /// Instances that are active, terminated, without a tag, or not the same everywhere.
    fn each_instance(&self, findings: &mut Findings) {
        let acknowledged: BTreeSet<i64> = self.book.creations.values().filter_map(acknowledged_key).collect();
        let keys: BTreeSet<i64> = self.nodes.iter().flat_map(|(_, view)| view.instances.keys().copied()).collect();
        for key in keys {
            let found: Vec<(&str, Option<&Instance>)> =
                self.nodes.iter().map(|(address, view)| (address.as_str(), view.instances.get(&key))).collect();
            let states = || {
                let state = |(address, instance): &(&str, Option<&Instance>)| match instance {
                    Some(instance) => format!("{} at {address}", instance.state),
                    None => format!("not found at {address}"),
                };
                found.iter().map(state).collect::<Vec<_>>().join(", ")
            };
            let is_acknowledged = acknowledged.contains(&key);
            let known = || found.iter().filter_map(|(_, instance)| *instance);
            let is_missing = found.iter().any(|(_, instance)| instance.is_none());
            let differs = known().any(|one| known().any(|other| one.state != other.state));
            // One that was acknowledged and is missing is lost, which was said before.
            if differs || is_missing && !is_acknowledged {
                findings.add(FindingKind::Disagreeing, || format!("Instance {key} is {}.", states()));
            } else if known().any(|instance| instance.state == State::Active) {
                let has_incident = known().any(|instance| instance.has_incident);
                findings.add(FindingKind::Stuck, || {
                    let incident = if has_incident { " It has an incident." } else { "" };
                    format!("Instance {key} does not go on: {}.{incident}", states())
                });
            } else if known().any(|instance| instance.state == State::Terminated) {
                findings.add(FindingKind::Unexpected, || format!("Instance {key} is {}.", states()));
            }
            if !is_acknowledged && known().all(|instance| instance.tag.is_none()) {
                findings.add(FindingKind::Unexpected, || {
                    format!("Instance {key} has no tag of a creation in the ledger: {}.", states())
                });
            }
        }
    }
}

fn acknowledged_key(creation: &Creation) -> Option<i64> {
    match creation.outcome {
        Outcome::Acknowledged(key) => Some(key),
        Outcome::Refused | Outcome::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
