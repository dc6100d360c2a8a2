//! Two things that clients set, each at its limit or near it. What takes the product of them is looked for here: each alone stays
//! within what a command may do.
//!
//! A pair is data: what there are many of in one instance, and what of much is brought to it.

use gateway_interface::*;
use model_builder::{Event, ProcessBuilder};

use super::Case;
use super::data::activate;
use crate::victim::{Verdict, Victim, answered, refusal};

/// What an instance has many of.
#[derive(Clone, Copy, Debug)]
enum Many {
    /// Conditions that any change of a variable concerns.
    BlindConditions,
    /// Conditions that read a variable.
    Conditions,
    /// Scopes in each other, each with variables.
    Scopes,
    /// Results of an ad-hoc sub-process.
    Choices,
    /// Results of a parallel loop.
    Results,
    /// Results of a loop in sequence.
    ResultsInSequence,
    /// Waits for a signal.
    Signals,
    /// Waits for messages.
    Messages,
    /// Jobs that wait for a worker.
    Jobs,
    /// Listeners to the assignment of one user task.
    Listeners,
    /// Activities that can be undone.
    Compensations,
    /// Called processes.
    Calls,
    /// Processes that a message starts.
    Starts,
    /// Decisions, each of a business rule task.
    Decisions,
}

/// What is brought to them, and how.
#[derive(Clone, Copy, Debug)]
enum Much {
    /// Variables with short names, set together.
    Variables,
    /// Variables with names of 500 bytes, set together.
    LongNames,
    /// A large variable that is there from the beginning.
    Text,
    /// A signal with variables.
    Signal,
    /// A message with variables, to each key that is waited for.
    Message,
    /// Jobs activated with names of variables.
    Names,
    /// Corrections of the candidates of a task.
    Corrections,
    /// Elements activated with variables for each of them.
    Instructions,
    /// The end of the instance.
    Cancel,
}

/// How many and how much, in the shortened set and in the whole one.
#[derive(Clone, Copy)]
struct Size {
    many: usize,
    /// A number of things, or of bytes.
    much: usize,
}

struct Pair {
    name: &'static str,
    many: Many,
    much: Much,
    short: Size,
    long: Size,
}

impl Pair {
    /// Jobs that another pair has left are none of this one's.
    fn job_type(&self) -> String {
        format!("pair {:?} {:?}", self.many, self.much)
    }
}

const fn size(many: usize, much: usize) -> Size {
    Size { many, much }
}

const fn pair(name: &'static str, (many, much): (Many, Much), short: Size, long: Size) -> Pair {
    Pair { name, many, much, short, long }
}

const MIB: usize = 1 << 20;

/// In no order.
const PAIRS: &[Pair] = &[
    pair(
        "conditions on anything × variables",
        (Many::BlindConditions, Much::Variables),
        size(2_000, 2_000),
        size(10_000, 10_000),
    ),
    pair("conditions × variables", (Many::Conditions, Much::Variables), size(2_000, 10_000), size(10_000, 200_000)),
    pair("conditions × long names", (Many::Conditions, Much::LongNames), size(2_000, 1_000), size(10_000, 6_000)),
    pair("nested scopes × variables", (Many::Scopes, Much::Variables), size(60, 5_000), size(120, 20_000)),
    pair("nested scopes × names of variables", (Many::Scopes, Much::Names), size(60, 4_000), size(120, 4_000)),
    pair("ad-hoc results × bytes", (Many::Choices, Much::Text), size(500, 1_600), size(10_000, 1_600)),
    pair("loop results × bytes", (Many::Results, Much::Text), size(500, 20_000), size(10_000, 1_600)),
    pair("results in sequence × bytes", (Many::ResultsInSequence, Much::Text), size(300, 20_000), size(10_000, 1_600)),
    pair("signals × variables", (Many::Signals, Much::Signal), size(200, 1_000), size(2_000, 5_000)),
    pair("messages × variables", (Many::Messages, Much::Message), size(20, 10_000), size(100, 50_000)),
    pair("subscriptions × long keys", (Many::Messages, Much::Cancel), size(1_000, 0), size(20_000, 0)),
    pair("jobs × names of variables", (Many::Jobs, Much::Names), size(1_000, 4_000), size(10_000, 4_000)),
    pair("jobs × visible bytes", (Many::Jobs, Much::Text), size(200, 3 * MIB), size(5_000, 3 * MIB)),
    pair("loops × instructions", (Many::Jobs, Much::Instructions), size(1_000, 500), size(10_000, 5_000)),
    pair("listeners × corrections", (Many::Listeners, Much::Corrections), size(20, 2_000), size(100, 50_000)),
    pair("compensations × bytes", (Many::Compensations, Much::Text), size(500, 10_000), size(10_000, 10_000)),
    pair("calls × variables", (Many::Calls, Much::Variables), size(200, 2_000), size(5_000, 20_000)),
    pair("calls × bytes", (Many::Calls, Much::Text), size(200, 20_000), size(5_000, 20_000)),
    pair("started processes × bytes", (Many::Starts, Much::Message), size(50, 2_000), size(500, 5_000)),
    pair("decisions × bytes", (Many::Decisions, Much::Text), size(200, 100_000), size(5_000, 200_000)),
];

/// Each pair in its shortened size and in its whole one.
pub(super) fn cases() -> Vec<Case> {
    let of = |pair: &'static Pair, is_short: bool| Case {
        group: "pairs of limits",
        name: if is_short { short_name(pair) } else { pair.name },
        is_short,
        run: Box::new(move |victim| Box::pin(run(victim, pair, if is_short { pair.short } else { pair.long }))),
    };
    PAIRS.iter().flat_map(|pair| [of(pair, true), of(pair, false)]).collect()
}

/// The names live as long as the program, which makes the list once.
fn short_name(pair: &Pair) -> &'static str {
    Box::leak(format!("{}, fewer", pair.name).into_boxed_str())
}

async fn run(victim: Victim, pair: &Pair, size: Size) -> Verdict {
    let said = |status: tonic::Status| refusal(&status);
    for (id, xml) in models(pair, size.many) {
        if let Err(status) = victim.deploy(&format!("{id}.bpmn"), xml).await {
            return said(status);
        }
    }
    if let Many::Decisions = pair.many
        && let Err(status) = victim.deploy("pair.dmn", DECISION).await
    {
        return said(status);
    }
    let variables = match pair.much {
        Much::Text => format!("{{\"n\":{},\"x\":0,\"text\":\"{}\"}}", size.many, "x".repeat(size.much)),
        _ => format!("{{\"n\":{},\"x\":0,\"text\":\"\",\"long\":\"{}\"}}", size.many, "k".repeat(480)),
    };
    let instance = match victim.create(ID, &variables).await {
        Ok(instance) => instance,
        Err(status) => return said(status),
    };
    victim.comes_to_rest().await;
    let brought = bring(&victim, pair, instance, size).await?;
    Ok(format!("{brought}, {}", victim.comes_to_rest().await))
}

const ID: &str = "pair";
const MESSAGE: &str = "pair-message";
const SIGNAL: &str = "pair-signal";
const DECISION: &str = "<definitions xmlns=\"https://www.omg.org/spec/DMN/20191111/MODEL/\" id=\"pairs\" name=\"pairs\" \
    namespace=\"x\"><decision id=\"pair-decision\" name=\"d\"><variable name=\"d\"/><literalExpression><text>[text, text]</text>\
    </literalExpression></decision></definitions>";

/// The models with their ids; that of the instance is the last.
fn models(pair: &Pair, count: usize) -> Vec<(String, String)> {
    const NUMBERS: &str = "=for i in 1..n return i";
    let started = || ProcessBuilder::new(ID).start("start");
    let each = || started().sub_process("each").multi_instance(NUMBERS, "i").start("inside");
    let around = |builder: ProcessBuilder| builder.end("done").end_sub_process().end("end");
    let job_type = &pair.job_type();
    let mut others = Vec::new();
    let builder = match pair.many {
        Many::BlindConditions => {
            let never = "=now() > date and time(\"2500-01-01T00:00:00Z\")";
            around(each().catch_event("catch", Event::Condition(never, "")))
        }
        Many::Conditions => around(each().catch_event("catch", Event::Condition("=x > 1000000", ""))),
        Many::Scopes => nested(count, job_type),
        Many::Choices => {
            let builder = started().ad_hoc_sub_process("choices", "=for i in 1..n return \"t\"");
            let builder = builder.ad_hoc_output("results", "=text + \"\"").apart().manual_task("t");
            builder.end_sub_process().end("end")
        }
        Many::Results => {
            let builder = started().manual_task("item").multi_instance(NUMBERS, "i");
            builder.output_collection("results", "=[text]").end("end")
        }
        Many::ResultsInSequence => {
            let builder = started().manual_task("item").sequential_multi_instance(NUMBERS, "i");
            builder.output_collection("results", "=[text]").end("end")
        }
        Many::Signals => around(each().catch_event("catch", Event::Signal(SIGNAL))),
        Many::Messages => around(each().receive_task("wait", MESSAGE, "=long + string(i)")),
        Many::Jobs => started().service_task("item", job_type).multi_instance(NUMBERS, "i").end("end"),
        Many::Listeners => {
            let mut builder = started().user_task("task").assignee("somebody");
            for _ in 0..count {
                builder = builder.task_listener("assigning", job_type);
            }
            builder.end("end")
        }
        Many::Compensations => {
            let builder = each().manual_task("do").compensation("on-undo", "do", "undo", job_type);
            builder.end("done").end_sub_process().compensation_throw("throw").end("end")
        }
        Many::Calls => {
            others.push(("called".to_owned(), ProcessBuilder::new("called").start("s").service_task("t", job_type)));
            started().call_activity("item", "called").multi_instance(NUMBERS, "i").end("end")
        }
        Many::Starts => {
            for number in 0..count {
                let id = format!("pair-started{number}");
                let builder = ProcessBuilder::new(&id).start_event("start", Event::Message(MESSAGE, ""));
                others.push((id, builder.service_task("task", "nobody")));
            }
            started().service_task("item", "nobody").end("end")
        }
        Many::Decisions => {
            let builder = started().called_decision("item", "pair-decision", "made").multi_instance(NUMBERS, "i");
            builder.end("end")
        }
    };
    let others = others.into_iter().map(|(id, builder)| (id, builder.end("end").to_xml()));
    others.chain([(ID.to_owned(), builder.to_xml())]).collect()
}

/// A job deep inside of scopes that have a variable each.
fn nested(levels: usize, job_type: &str) -> ProcessBuilder {
    let mut builder = ProcessBuilder::new(ID).start("start");
    for level in 0..levels {
        builder = builder.sub_process(&format!("sub{level}")).input("=x", &format!("level{level}"));
        builder = builder.start(&format!("start{level}"));
    }
    builder = builder.service_task("item", job_type);
    for level in (0..levels).rev() {
        builder = builder.end(&format!("end{level}")).end_sub_process();
    }
    builder.end("end")
}

async fn bring(victim: &Victim, pair: &Pair, instance: i64, size: Size) -> Verdict {
    let mut client = victim.client();
    let variables = |name: &dyn Fn(usize) -> String| {
        let entries: Vec<String> = (0..size.much).map(|number| format!("\"{}\":{number}", name(number))).collect();
        format!("{{{}}}", entries.join(","))
    };
    let short = |number: usize| format!("v{number}");
    match pair.much {
        Much::Variables | Much::LongNames => {
            let long = |number: usize| format!("v{number:0>499}");
            let variables = if let Much::LongNames = pair.much { variables(&long) } else { variables(&short) };
            let scope = innermost(victim, pair, instance).await;
            let request = SetVariablesRequest { element_instance_key: scope, variables, ..Default::default() };
            answered(client.set_variables(request).await)
        }
        Much::Text => match pair.many {
            Many::Jobs => Ok(format!("{} jobs", taken(victim, pair, &[]).await?)),
            _ => Ok("begun".to_owned()),
        },
        Much::Signal => {
            let (signal_name, variables) = (SIGNAL.to_owned(), variables(&short));
            answered(
                client.broadcast_signal(BroadcastSignalRequest { signal_name, variables, ..Default::default() }).await,
            )
        }
        Much::Message => messages(victim, pair.many, size, variables(&short)).await,
        Much::Names => {
            let names: Vec<String> = (0..size.much).map(|number| format!("{number:x}")).collect();
            Ok(format!("{} jobs", taken(victim, pair, &names).await?))
        }
        Much::Corrections => corrections(victim, pair, size).await,
        Much::Instructions => instructions(victim, instance, size.much).await,
        Much::Cancel => {
            let request = CancelProcessInstanceRequest { process_instance_key: instance, operation_reference: None };
            answered(client.cancel_process_instance(request).await)
        }
    }
}

/// Where variables are set: in nested scopes at the innermost element, so that they are looked for all the way out.
async fn innermost(victim: &Victim, pair: &Pair, instance: i64) -> i64 {
    match pair.many {
        Many::Scopes => match activate(victim, &pair.job_type(), 1).await.as_deref() {
            Ok([job, ..]) => job.element_instance_key,
            _ => instance,
        },
        _ => instance,
    }
}

/// Activates jobs with these names of variables; how many came.
async fn taken(victim: &Victim, pair: &Pair, names: &[String]) -> Result<usize, String> {
    let request = ActivateJobsRequest {
        r#type: pair.job_type(),
        worker: "hostile".to_owned(),
        timeout: 60_000,
        max_jobs_to_activate: 10_000,
        fetch_variable: names.to_owned(),
        request_timeout: 20_000,
        ..ActivateJobsRequest::default()
    };
    let mut responses = match victim.client().activate_jobs(request).await {
        Ok(responses) => responses.into_inner(),
        Err(status) => return refusal(&status).map(|_| 0),
    };
    let mut count = 0;
    loop {
        match responses.message().await {
            Ok(Some(response)) => count += response.jobs.len(),
            Ok(None) => return Ok(count),
            Err(status) => return refusal(&status).map(|_| count),
        }
    }
}

async fn messages(victim: &Victim, many: Many, size: Size, variables: String) -> Verdict {
    let long = "k".repeat(480);
    let keys: Vec<String> = match many {
        Many::Messages => (1..=size.many).map(|number| format!("{long}{number}")).collect(),
        _ => vec!["key".to_owned()],
    };
    let mut said = String::new();
    for correlation_key in keys {
        let request = PublishMessageRequest {
            name: MESSAGE.to_owned(),
            correlation_key,
            variables: variables.clone(),
            ..PublishMessageRequest::default()
        };
        said = answered(victim.client().publish_message(request).await)?;
    }
    Ok(said)
}

/// Each listener names so many candidates.
async fn corrections(victim: &Victim, pair: &Pair, size: Size) -> Verdict {
    for count in 0..size.many {
        let jobs = match activate(victim, &pair.job_type(), 1).await {
            Ok(jobs) => jobs,
            Err(status) => return refusal(&status),
        };
        let Some(job) = jobs.first() else { return Ok(format!("{count} listeners")) };
        let values = (0..size.much).map(|number| format!("candidate {count} {number}")).collect();
        let corrections =
            JobResultCorrections { candidate_users: Some(StringList { values }), ..JobResultCorrections::default() };
        let result = JobResult { corrections: Some(corrections), ..JobResult::default() };
        let request = CompleteJobRequest { job_key: job.key, variables: String::new(), result: Some(result) };
        if let Err(status) = victim.client().complete_job(request).await {
            return refusal(&status).map(|said| format!("after {count} listeners: {said}"));
        }
    }
    Ok(format!("{} listeners", size.many))
}

async fn instructions(victim: &Victim, instance: i64, count: usize) -> Verdict {
    use modify_process_instance_request::{ActivateInstruction, VariableInstruction};

    let entries: Vec<String> = (0..50).map(|number| format!("\"v{number}\":{number}")).collect();
    let variable = VariableInstruction { variables: format!("{{{}}}", entries.join(",")), scope_id: String::new() };
    let activate = ActivateInstruction {
        element_id: "item".to_owned(),
        ancestor_element_instance_key: -1,
        variable_instructions: vec![variable],
    };
    let request = ModifyProcessInstanceRequest {
        process_instance_key: instance,
        activate_instructions: vec![activate; count],
        ..ModifyProcessInstanceRequest::default()
    };
    answered(victim.client().modify_process_instance(request).await)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_pair_is_another_and_its_whole_size_is_the_larger_one() {
        let pairs: BTreeSet<String> = PAIRS.iter().map(|pair| format!("{:?} {:?}", pair.many, pair.much)).collect();
        assert_eq!(pairs.len(), PAIRS.len());
        assert!(pairs.len() >= 12, "{} pairs", pairs.len());
        for pair in PAIRS {
            let (short, long) = (pair.short.many * pair.short.much.max(1), pair.long.many * pair.long.much.max(1));
            assert!(short < long, "{}", pair.name);
        }
    }
}
