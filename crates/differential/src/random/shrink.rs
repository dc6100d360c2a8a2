//! Makes a difference smaller: as long as both sides still differ, steps and items are left out.

use super::run::{Case, Finding, Sides, replay};
use crate::driver::DriverError;
use crate::model::Item;

/// How often a smaller case is tried.
const TRIES_MAX: usize = 200;

/// A smaller case in which the sides still differ, perhaps elsewhere.
///
/// # Errors
/// When a side is gone.
pub fn shrink(sides: &mut Sides<'_>, finding: Finding) -> Result<Finding, DriverError> {
    let mut best = finding;
    let mut tries = 0;
    loop {
        let mut found = None;
        for candidate in candidates(&best.case) {
            if tries == TRIES_MAX {
                return Ok(best);
            }
            tries += 1;
            // A model that only one side deploys is another difference.
            let smaller = replay(sides, &candidate)?;
            if let Some(smaller) = smaller.filter(|smaller| smaller.case.steps.is_empty() == best.case.steps.is_empty())
            {
                found = Some(smaller);
                break;
            }
        }
        match found {
            Some(smaller) => best = smaller,
            None => return Ok(best),
        }
    }
}

/// Cases that are a little smaller, the largest leaps first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut candidates = Vec::new();
    let count = case.steps.len();
    let mut size = count / 2;
    while size > 0 {
        for from in (0..count).step_by(size) {
            let mut steps = case.steps.clone();
            steps.drain(from..(from + size).min(count));
            candidates.push(Case { steps, ..case.clone() });
        }
        size /= 2;
    }
    let processes = case.model.processes.len();
    for index in 0..processes {
        for smaller in smaller_items(&case.model.processes[index]) {
            let mut model = case.model.clone();
            model.processes[index] = smaller;
            candidates.push(Case { model, steps: case.steps.clone() });
        }
    }
    if processes > 1 {
        let mut model = case.model.clone();
        model.processes.truncate(1);
        candidates.push(Case { model, steps: case.steps.clone() });
    }
    candidates
}

/// An item with one thing less inside.
fn smaller_items(item: &Item) -> Vec<Item> {
    let mut smaller = Vec::new();
    for index in 0..item.items.len() {
        let mut without = item.clone();
        let removed = without.items.remove(index);
        smaller.push(without.clone());
        if matches!(removed.keyword.as_str(), "sub" | "loop") {
            let mut unwrapped = without.clone();
            unwrapped.items.splice(index..index, removed.items.iter().filter(|inner| is_node(inner)).cloned());
            smaller.push(unwrapped);
        }
        for branch in removed.items.iter().filter(|inner| inner.keyword == "branch") {
            let mut unwrapped = without.clone();
            unwrapped.items.splice(index..index, branch.items.iter().cloned());
            smaller.push(unwrapped);
        }
    }
    for (index, inner) in item.items.iter().enumerate() {
        for changed in smaller_items(inner) {
            let mut with = item.clone();
            with.items[index] = changed;
            smaller.push(with);
        }
    }
    for index in 0..item.attributes.len() {
        let mut without = item.clone();
        without.attributes.remove(index);
        smaller.push(without);
    }
    smaller
}

fn is_node(item: &Item) -> bool {
    !matches!(item.keyword.as_str(), "on" | "event")
}
