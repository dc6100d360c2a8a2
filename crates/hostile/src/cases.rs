//! The cases, by what they attack.

mod cluster_port;
mod connections;
mod data;
mod dear_searches;
mod decisions;
mod deployments;
mod expressions;
mod flows;
mod frames;
mod global_listeners;
mod listeners;
mod loops;
mod names;
mod pairs;
mod people;
mod rest;
mod searches;

use std::pin::Pin;

use crate::victim::{Verdict, Victim};

/// A case that is being carried out.
type Running = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// One kind of hostile input.
pub struct Case {
    /// What it attacks.
    pub group: &'static str,
    /// What it does.
    pub name: &'static str,
    /// Whether it belongs to the shortened set.
    pub is_short: bool,
    pub(crate) run: Box<dyn Fn(Victim) -> Running>,
}

/// A list of cases: `short` or `long`, what it does, and the function that does it.
macro_rules! cases {
    (@ short) => { true };
    (@ long) => { false };
    ($group:literal: $($length:ident $name:literal $function:path;)*) => {
        vec![$($crate::cases::Case {
            group: $group,
            name: $name,
            is_short: $crate::cases::cases!(@ $length),
            run: Box::new(|victim| Box::pin($function(victim))),
        }),*]
    };
}
pub(crate) use cases;

/// All cases, group by group.
pub fn all() -> Vec<Case> {
    [
        names::cases(),
        flows::cases(),
        loops::cases(),
        people::cases(),
        listeners::cases(),
        global_listeners::cases(),
        expressions::cases(),
        decisions::cases(),
        data::cases(),
        pairs::cases(),
        deployments::cases(),
        connections::cases(),
        cluster_port::cases(),
        frames::cases(),
        rest::cases(),
        searches::cases(),
        dear_searches::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A variable `text` of this many bytes.
fn text(bytes: usize) -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_and_groups_stand_together() {
        let cases = super::all();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len());
        assert!(cases.len() >= 60, "{} cases", cases.len());
        assert!(cases.iter().any(|case| case.is_short) && cases.iter().any(|case| !case.is_short));
        let mut groups: Vec<&str> = cases.iter().map(|case| case.group).collect();
        groups.dedup();
        assert_eq!(groups.len(), groups.iter().collect::<BTreeSet<_>>().len());
    }
}
