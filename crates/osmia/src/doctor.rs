//! `osmia doctor`: inspects the data directory of a stopped node.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use broker::Pause;
use broker::doctor::{
    self, Checkpoint, LogRange, PartitionReport, Refusal, RefusedCommand, Report, SegmentsRange, Suspect,
};
use clap::Args;
use protocol::{PartitionId, RecordPlace};
use serde_json::{Value, json};

use crate::outcome::Outcome;

/// How many characters of a command's value are printed.
const VALUE_CHARACTERS_MAX: usize = 2_000;

/// Inspect a data directory: its contents, and which log entry crashed the node, if one did. The node must be stopped.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Directory of all data
    #[arg(long, env = "OSMIA_DATA", value_name = "DIR", default_value = "./osmia-data")]
    data: PathBuf,
    /// Refuse an entry of a partition's log, or one command of it, instead of processing it, and let the partition
    /// start again. Do the same for every replica of the partition
    #[arg(long, value_name = "PARTITION:INDEX[:COMMAND]", conflicts_with = "retry")]
    refuse: Option<Entry>,
    /// Let a partition that was left out start again, with the same entry
    #[arg(long, value_name = "PARTITION")]
    retry: Option<u16>,
    /// Note that the directory was put back from an older copy: from the next start on, keys and positions go on far behind
    /// those that exporters' targets and workers may know of the life that is lost
    #[arg(long, conflicts_with_all = ["refuse", "retry"])]
    restored: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An entry of a log, or one of its commands.
#[derive(Debug, Clone, Copy)]
struct Entry(Refusal);

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let parsed = match parts[..] {
            [partition, index] => partition.parse().ok().zip(index.parse().ok()).map(|both| (both, None)),
            [partition, index, number] => {
                let number: Option<u32> = number.parse().ok();
                partition.parse().ok().zip(index.parse().ok()).zip(number).map(|(both, number)| (both, Some(number)))
            }
            _ => None,
        };
        let ((partition, index), number) = parsed.ok_or_else(|| {
            format!("expected partition:index or partition:index:command, for example 2:1234:5, but it is '{text}'")
        })?;
        Ok(Entry(Refusal { partition, index, number }))
    }
}

/// Does what was asked for.
pub(crate) fn run(arguments: &DoctorArguments) -> Outcome {
    let data = &arguments.data;
    if let Some(Entry(refusal)) = arguments.refuse {
        let refused = doctor::refuse(data, refusal)?;
        return print(&if arguments.json {
            refused_json(refusal.partition, &refused).to_string()
        } else {
            refused_text(refusal, &refused)
        });
    }
    if let Some(partition) = arguments.retry {
        let ended = doctor::retry(data, partition)?;
        let times = ended.as_ref().map_or(0, |ended| ended.times);
        let text = match ended {
            Some(ended) => format!(
                "Partition {partition} takes part in the next start again and applies {} again, at which the process ended {times} time(s) \
                 in a row.",
                ended.applying
            ),
            None => format!("Nothing to do: no entry of partition {partition} is known to have ended the process."),
        };
        return print(&if arguments.json {
            json!({ "partition": partition, "times": times }).to_string()
        } else {
            text
        });
    }
    if arguments.restored {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let incarnation = doctor::restored(data, seconds)?;
        return print(&if arguments.json {
            json!({ "incarnation": incarnation }).to_string()
        } else {
            format!(
                "From the next start on, the partitions are at incarnation {incarnation}: their keys and positions go on far behind those \
                 that were given before, and records are told apart from those of the life that is lost."
            )
        });
    }
    let report = doctor::examine(data)?;
    print(&if arguments.json { format!("{:#}", report_json(&report)) } else { report_text(&report) })?;
    match problems(&report) {
        0 => Ok(()),
        1 => Err("there is 1 problem, which stands above".into()),
        count => Err(format!("there are {count} problems, which stand above").into()),
    }
}

fn print(text: &str) -> Outcome {
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    Ok(())
}

fn refused_text(refusal: Refusal, refused: &RefusedCommand) -> String {
    let number = refused.number.map(|number| format!(":{number}")).unwrap_or_default();
    let (partition, index) = (refusal.partition, refused.index);
    format!(
        "From the next start on, {refused} of partition {partition} is refused: it leaves a rejection, and the instance that it \
         is about is banned, if there is one.\n\
         Every replica of the partition must do the same. Before it starts again, run on each other node that has one:\n\
         \n  osmia doctor --data DIR --refuse {partition}:{index}{number}\n\n\
         and check that it names the same content: {:08x}.",
        refused.checksum
    )
}

fn refused_json(partition: u16, refused: &RefusedCommand) -> Value {
    let RefusedCommand { index, checksum, number } = refused;
    json!({ "partition": partition, "index": index, "command": number, "content": format!("{checksum:08x}") })
}

/// What cannot be read, and partitions that the next start leaves out.
fn problems(report: &Report) -> usize {
    let of_partition = |partition: &PartitionReport| {
        let left_out = matches!(&partition.suspect, Ok(Some(suspect)) if suspect.is_left_out && !suspect.is_refused);
        let unreadable = [
            // A log that cannot be opened is one problem, not one for each partition.
            partition.log.is_err() && report.log_problem.is_none(),
            partition.checkpoint.is_err(),
            partition.records.is_err(),
            partition.suspect.is_err(),
            partition.refused.is_err(),
            left_out,
        ];
        unreadable.iter().filter(|problem| **problem).count()
    };
    let exporters = report.exporters.iter().filter(|exporter| exporter.positions.is_err()).count();
    let of_all = usize::from(report.log_problem.is_some()) + usize::from(report.restored.is_err());
    let of_all = of_all + usize::from(report.pause.is_err());
    of_all + exporters + report.partitions.iter().map(of_partition).sum::<usize>()
}

fn report_text(report: &Report) -> String {
    let Report { directory, format, node, cluster_id, starts, log_problem, partitions, exporters, pause, restored } =
        report;
    let mut text = format!(
        "data directory {}: format {format}, node {node}, {} partition(s), cluster {cluster_id}, started {starts} time(s)\n",
        directory.display(),
        partitions.len()
    );
    if let Some(problem) = log_problem {
        text.push_str(&format!("log: cannot be read: {problem}\n"));
    }
    match restored {
        Ok(None) => {}
        Ok(Some(incarnation)) => text.push_str(&format!(
            "put back from a copy, as was noted: since the first start after that, the partitions are at incarnation {incarnation} at least\n"
        )),
        Err(problem) => text.push_str(&format!("put back from a copy: {problem}\n")),
    }
    for partition in partitions {
        text.push_str(&partition_text(partition, directory));
    }
    for exporter in exporters {
        let positions = described(&exporter.positions, |positions| {
            let each =
                positions.iter().map(|(partition, place)| format!("partition {partition} up to {}", place.position));
            format!("acknowledged {}", each.collect::<Vec<_>>().join(", "))
        });
        text.push_str(&format!("exporter {}: {positions}\n", exporter.name));
    }
    match pause {
        Ok(Pause::None) => {}
        Ok(Pause::Hard) => text.push_str("exporting: paused\n"),
        Ok(Pause::Soft) => text.push_str("exporting: paused softly\n"),
        Err(problem) => text.push_str(&format!("exporting: the node takes it for paused, because {problem}\n")),
    }
    text
}

fn described<T>(found: &Result<T, String>, describe: impl FnOnce(&T) -> String) -> String {
    found.as_ref().map_or_else(|problem| format!("cannot be read: {problem}"), describe)
}

fn partition_text(partition: &PartitionReport, directory: &Path) -> String {
    let PartitionReport { id, log, checkpoint, records, suspect, refused } = partition;
    let log = described(log, |log| log.as_ref().map_or_else(|| "none yet".to_owned(), log_text));
    let checkpoint =
        described(checkpoint, |found| found.as_ref().map_or_else(|| "none yet".to_owned(), checkpoint_text));
    let records = described(records, records_text);
    let mut text = format!("partition {id}\n  log: {log}\n  checkpoint: {checkpoint}\n  records: {records}\n");
    match suspect {
        Ok(None) => text.push_str("  applying: nothing when the process ended\n"),
        Ok(Some(suspect)) => text.push_str(&suspect_text(id.0, suspect, directory)),
        Err(problem) => text.push_str(&format!("  applying: cannot be read: {problem}\n")),
    }
    match refused {
        Ok(refused) => refused.iter().for_each(|refused| text.push_str(&format!("  refused: {refused}\n"))),
        Err(problem) => text.push_str(&format!("  refused: cannot be read: {problem}\n")),
    }
    text
}

fn log_text(log: &LogRange) -> String {
    let LogRange { first_index, last, term, committed_index } = log;
    if *first_index > last.index {
        return format!("empty behind entry {} of term {}, in term {term}", last.index, last.term);
    }
    format!(
        "entries {first_index} to {} (of term {}), in term {term}, at least {committed_index} committed",
        last.index, last.term
    )
}

fn checkpoint_text(checkpoint: &Checkpoint) -> String {
    let Checkpoint { applied, schema, last_position, last_timestamp, incidents, banned_instances, file_bytes } =
        checkpoint;
    format!(
        "up to entry {applied}, schema {schema}, record position {last_position} of {}, {incidents} incident(s), \
         {banned_instances} banned instance(s), {file_bytes} bytes",
        time(*last_timestamp)
    )
}

fn time(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds).map_or_else(|_| milliseconds.to_string(), |time| time.to_string())
}

fn records_text(records: &SegmentsRange) -> String {
    let SegmentsRange { segments, bytes, first_position, last_position } = records;
    match first_position.zip(*last_position) {
        Some((first, last)) => format!("positions {first} to {last}, {segments} segment(s), {bytes} bytes"),
        None => format!("none, {segments} segment(s), {bytes} bytes"),
    }
}

fn suspect_text(partition: u16, suspect: &Suspect, directory: &Path) -> String {
    let Suspect { ended, description, is_left_out, is_refused, entry } = suspect;
    let mut text = format!("  applying: the process ended {} time(s) in a row at {description}\n", ended.times);
    match entry {
        Ok(entry) => {
            let time = entry.timestamp.map(|at| format!(", of {}", time(at))).unwrap_or_default();
            text.push_str(&format!(
                "    entry: term {}, {} bytes, content {:08x}{time}\n",
                entry.term, entry.bytes, entry.checksum
            ));
            if let Some(command) = &entry.command {
                text.push_str(&format!("    value: {}\n", shortened(&command.value)));
            }
        }
        Err(problem) => text.push_str(&format!("    entry: cannot be read: {problem}\n")),
    }
    let next = match (is_refused, is_left_out) {
        (true, _) => "refuses it".to_owned(),
        (false, false) => "applies it again".to_owned(),
        (false, true) => {
            let data = directory.display();
            let applying = &ended.applying;
            let number = if applying.number == 0 { String::new() } else { format!(":{}", applying.number) };
            format!(
                "leaves the partition out\n    to have it refused: osmia doctor --data {data} --refuse {partition}:{}{number}\n    \
                 to have it tried again: osmia doctor --data {data} --retry {partition}",
                applying.index
            )
        }
    };
    text.push_str(&format!("    the next start {next}\n"));
    text
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{} … ({} bytes in all; --json prints everything)", &value[..end], value.len()),
        None => value.to_owned(),
    }
}

fn report_json(report: &Report) -> Value {
    let Report { directory, format, node, cluster_id, starts, log_problem, partitions, exporters, pause, restored } =
        report;
    let exporters = exporters.iter().map(|exporter| {
        let positions = found(&exporter.positions, |positions| {
            let place = |(partition, place): (&PartitionId, &RecordPlace)| {
                let RecordPlace { incarnation, position, number } = place;
                let place = json!({ "incarnation": incarnation, "position": position, "number": number });
                (partition.to_string(), place)
            };
            json!({ "acknowledged": positions.iter().map(place).collect::<serde_json::Map<_, _>>() })
        });
        (exporter.name.clone(), positions)
    });
    json!({
        "directory": directory.display().to_string(),
        "format": format,
        "node": node,
        "cluster": cluster_id,
        "starts": starts,
        "problems": problems(report),
        "logProblem": log_problem,
        "restored": found(restored, |noted| noted.map(|incarnation| json!({ "incarnation": incarnation })).unwrap_or_default()),
        "partitions": partitions.iter().map(partition_json).collect::<Vec<_>>(),
        "exporters": exporters.collect::<serde_json::Map<_, _>>(),
        "exporting": found(pause, |pause| match pause {
            Pause::None => json!("EXPORTING"),
            Pause::Hard => json!("PAUSED"),
            Pause::Soft => json!("SOFT_PAUSED"),
        }),
    })
}

/// What was found, or the problem with it.
fn found<T>(found: &Result<T, String>, describe: impl FnOnce(&T) -> Value) -> Value {
    found.as_ref().map_or_else(|problem| json!({ "problem": problem }), describe)
}

fn partition_json(partition: &PartitionReport) -> Value {
    let id = partition.id.0;
    let log = |log: &LogRange| {
        json!({
            "firstIndex": log.first_index, "lastIndex": log.last.index, "lastTerm": log.last.term, "term": log.term,
            "committedIndex": log.committed_index,
        })
    };
    let checkpoint = |checkpoint: &Checkpoint| {
        json!({
            "applied": checkpoint.applied, "schema": checkpoint.schema, "lastPosition": checkpoint.last_position,
            "lastTimestamp": checkpoint.last_timestamp, "incidents": checkpoint.incidents,
            "bannedInstances": checkpoint.banned_instances, "fileBytes": checkpoint.file_bytes,
        })
    };
    let records = |records: &SegmentsRange| {
        json!({
            "segments": records.segments, "bytes": records.bytes, "firstPosition": records.first_position,
            "lastPosition": records.last_position,
        })
    };
    json!({
        "partition": id,
        "log": found(&partition.log, |found| found.as_ref().map(log).unwrap_or_default()),
        "checkpoint": found(&partition.checkpoint, |found| found.as_ref().map(checkpoint).unwrap_or_default()),
        "records": found(&partition.records, records),
        "suspect": found(&partition.suspect, |found| found.as_ref().map(suspect_json).unwrap_or_default()),
        "refused": found(&partition.refused, |all| all.iter().map(|refused| refused_json(id, refused)).collect()),
    })
}

fn suspect_json(suspect: &Suspect) -> Value {
    let applying = &suspect.ended.applying;
    let entry = found(&suspect.entry, |entry| {
        let command = entry.command.as_ref().map(|command| {
            // What is not valid JSON stays a text.
            let value = serde_json::from_str(&command.value).unwrap_or_else(|_| Value::from(command.value.as_str()));
            json!({ "valueType": command.value_type, "intent": command.intent, "key": command.key, "value": value })
        });
        json!({
            "term": entry.term, "bytes": entry.bytes, "content": format!("{:08x}", entry.checksum),
            "timestamp": entry.timestamp, "command": command,
            "processInstanceKey": entry.subject.process_instance.map(|key| key.raw()),
            "bpmnProcessId": entry.subject.bpmn_process_id,
        })
    });
    json!({
        "times": suspect.ended.times, "index": applying.index, "command": applying.number,
        "commands": applying.commands, "description": suspect.description, "leftOut": suspect.is_left_out,
        "isRefused": suspect.is_refused, "entry": entry,
    })
}
