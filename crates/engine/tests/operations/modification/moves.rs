//! What moves from one element to another.

use super::*;

#[test]
fn all_instances_of_an_element_move() {
    let mut partition = partition(&[two_tasks()]);
    let instance = start(&mut partition, "p", "");
    accepted(&Modify::instance(instance).activate("a").submit(&mut partition));
    let output = Modify::instance(instance).move_all("a", "b").submit(&mut partition);
    let value = modified(&output);
    assert_eq!((value.activate_instructions.len(), value.terminate_instructions.len()), (2, 2));
    assert_eq!(value.move_instructions, []);
    assert_eq!(living(&partition), ["p: activated", "b: activated", "b: activated"]);
    accepted(&Modify::instance(instance).move_all("a", "b").submit(&mut partition));
    partition.check();
}

#[test]
fn one_element_instance_moves_with_its_variables() {
    let mut partition = partition(&[two_tasks()]);
    let instance = start(&mut partition, "p", "");
    let task = partition.elements["a"];
    let output = Modify::instance(instance)
        .move_one(task, "b")
        .where_(|instruction| {
            let variables = "{\"x\":1}".into();
            instruction.variable_instructions =
                vec![ModificationVariableInstruction { variables, ..Default::default() }];
        })
        .submit(&mut partition);
    happened(&output, &["VARIABLE CREATED x = 1", "PROCESS_INSTANCE ELEMENT_TERMINATED SERVICE_TASK a"]);
    assert_eq!(living(&partition), ["p: activated", "b: activated"]);
    partition.check();
}

#[test]
fn a_move_finds_its_scope_as_it_was_told() {
    let mut partition = partition(&[nested()]);
    let instance = start(&mut partition, "p", "");
    for _ in 0..2 {
        accepted(&Modify::instance(instance).activate_in("deep", instance).submit(&mut partition));
    }
    let output = Modify::instance(instance).move_all("deep", "deeper").submit(&mut partition);
    refused(&output, RejectionType::InvalidArgument, &["more than one active instance: 'outer'"]);
    let moves = |source: &str, target: &str| Modify::instance(instance).move_all(source, target);
    let parent = moves("deep", "deeper").where_(|instruction| instruction.use_source_parent_as_ancestor = true);
    let output = parent.submit(&mut partition);
    did_not_happen(&output, "SUB_PROCESS");
    // From the inner sub-process to the outer one: each in its own.
    let inferred = moves("deeper", "shallow").where_(|instruction| instruction.infer_ancestor_scope = true);
    let output = inferred.submit(&mut partition);
    assert_eq!(modified(&output).activate_instructions.len(), 2);
    let lines = living(&partition);
    let count = |id: &str| lines.iter().filter(|line| line.starts_with(id)).count();
    assert_eq!((count("outer"), count("inner"), count("shallow")), (2, 0, 2), "{lines:?}");
    // From the process into a sub-process: the living one, if there is one.
    let inferred = moves("before", "shallow").where_(|instruction| instruction.infer_ancestor_scope = true);
    refused(&inferred.submit(&mut partition), RejectionType::InvalidArgument, &["more than one active instance"]);
    let named = moves("before", "shallow").where_(|instruction| instruction.ancestor_scope_key = instance);
    accepted(&named.submit(&mut partition));
    partition.check();
}

#[test]
fn moves_that_cannot_be_are_refused() {
    let mut partition = partition(&[two_tasks()]);
    start(&mut partition, "p", "");
    let foreign = partition.elements["a"];
    let instance = start(&mut partition, "p", "");
    let task = partition.elements["a"];
    let moves = || Modify::instance(instance).move_all("a", "b");
    let cases = [
        (moves().move_all("", "b"), "either or both the source or target element id missing"),
        (moves().move_all("b", ""), "either or both the source or target element id missing"),
        (moves().where_(|instruction| instruction.source_element_instance_key = task), "only one of them is allowed"),
        (moves().move_all("a", "e"), "multiple move instructions with identical source element ids: 'a'"),
        (
            moves().where_(|instruction| {
                instruction.infer_ancestor_scope = true;
                instruction.use_source_parent_as_ancestor = true;
            }),
            "multiple ancestor scope options set",
        ),
        (moves().move_one(Key::from_raw(77), "b"), "source element instance that could not be found: '77'"),
        (moves().move_one(foreign, "b"), "does not belong to the modified process instance"),
        (moves().move_one(task, "nowhere"), "could not be found: 'nowhere'"),
    ];
    for (modify, part) in cases {
        refused(&modify.submit(&mut partition), RejectionType::InvalidArgument, &[part]);
    }
    partition.check();
}
