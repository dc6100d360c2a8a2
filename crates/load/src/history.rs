//! A file of results, a line of JSON each, and how a new one compares with those before it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::LoadError;
use crate::figures::Quantiles;
use crate::report::{Outcome, Report, row};
use crate::trial::RateReport;

/// As many results of the same settings are compared with.
const COMPARED: usize = 10;
/// A longer file is not read; a line has about a kilobyte.
const FILE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;
/// What of the settings does not belong to what is measured: names of this machine.
const NOT_COMPARED: [&str; 4] = ["addresses", "server_pids", "fsync_directory", "progress"];

/// A file of results, read and open for one more.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
    /// Where the last line begins if it lacks its end, because its writing was cut.
    cut_at: Option<u64>,
}

/// One result.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// In milliseconds since the Unix epoch.
    started_at: u64,
    /// The commit or whatever else names what was measured.
    commit: Option<String>,
    /// Version of the server.
    version: String,
    /// What has to be the same for results to be compared.
    settings: Value,
    /// By name, with the unit at its end.
    figures: BTreeMap<String, f64>,
    /// What went wrong; then the figures are not compared with.
    failure: Option<String>,
}

/// A result beside the last ones of the same settings.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// How many it is compared with: ten at most, and none that failed.
    pub results: usize,
    /// The oldest and the newest of them, by their commits.
    pub commits: Option<(String, String)>,
    /// Each figure.
    pub figures: Vec<ComparedFigure>,
}

/// A figure beside those of the last results.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedFigure {
    /// Its name, with the unit at its end.
    pub name: String,
    /// Its value now.
    pub now: f64,
    /// The smallest before.
    pub least: f64,
    /// The median before.
    pub median: f64,
    /// The largest before.
    pub most: f64,
}

impl History {
    /// Reads the file, or makes it.
    pub fn open(path: PathBuf) -> Result<History, LoadError> {
        let failed = |reason: String| LoadError::History { path: path.clone(), reason };
        let open = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let mut file = open.map_err(|error| failed(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
        if !metadata.is_file() {
            return Err(failed("it is not a regular file".to_owned()));
        }
        if metadata.len() > FILE_LIMIT_BYTES {
            return Err(failed(format!("it has {} bytes, more than {FILE_LIMIT_BYTES}", metadata.len())));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let cut_at = (whole.len() < text.len()).then_some(whole.len() as u64);
        let read = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| failed(format!("line {} is no result: {error}", number + 1)))
        };
        let lines = whole.lines().enumerate().filter(|(_, line)| !line.is_empty());
        let entries = lines.map(read).collect::<Result<Vec<Entry>, LoadError>>()?;
        Ok(History { path, file, entries, cut_at })
    }

    /// Appends a result, and compares it with the last ones of the same settings.
    pub fn append(mut self, report: &Report, commit: Option<String>) -> Result<Comparison, LoadError> {
        let entry = Entry {
            started_at: report.started_at,
            commit,
            version: report.context.server.version.clone(),
            settings: compared_settings(report),
            figures: figures(report),
            failure: report.failure.clone(),
        };
        let failed = |error: std::io::Error| LoadError::History { path: self.path.clone(), reason: error.to_string() };
        let mut line = serde_json::to_vec(&entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        // A line whose writing was cut is no result.
        if let Some(whole_bytes) = self.cut_at {
            self.file.set_len(whole_bytes).map_err(failed)?;
        }
        self.file.write_all(&line).map_err(failed)?;
        Ok(compare(&self.entries, &entry))
    }
}

/// The settings without names of this machine, and how large the cluster is.
fn compared_settings(report: &Report) -> Value {
    // Settings are structures of numbers and names, which always become JSON.
    let mut settings = serde_json::to_value(&report.settings).unwrap_or_default();
    forget_names(&mut settings);
    let server = &report.context.server;
    serde_json::json!({
        "run": settings,
        "nodes": server.nodes,
        "partitions": server.partitions,
        "replication_factor": server.replication_factor,
    })
}

fn forget_names(value: &mut Value) {
    if let Value::Object(object) = value {
        object.retain(|name, _| !NOT_COMPARED.contains(&name.as_str()));
        object.values_mut().for_each(forget_names);
    }
}

/// What of a run is worth comparing.
fn figures(report: &Report) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    match &report.outcome {
        Outcome::Rate(rate) => of_rate(&mut figures, rate),
        Outcome::Maximum(maximum) => {
            figures.insert("sustainable_rate_per_second".to_owned(), maximum.sustainable_rate);
            if let Some(confirmation) = &maximum.confirmation {
                of_rate(&mut figures, confirmation);
            }
        }
        // All their numbers, by their names in the report.
        other => {
            let outcome = serde_json::to_value(other).unwrap_or_default();
            collect_numbers(&mut figures, "", &outcome);
        }
    }
    if let Some(fsync) = &report.fsync {
        of_quantiles(&mut figures, "fsync", fsync);
    }
    figures
}

fn of_rate(figures: &mut BTreeMap<String, f64>, rate: &RateReport) {
    figures.insert("completed_per_second".to_owned(), rate.sum.completed_per_second);
    of_quantiles(figures, "process_latency", &rate.sum.process_latency);
    of_quantiles(figures, "overhead", &rate.sum.overhead);
    of_quantiles(figures, "creation_latency", &rate.sum.creation_latency);
    let cpu = rate.server_cpu_microseconds_per_instance;
    figures.extend(cpu.map(|cpu| ("server_cpu_per_instance_us".to_owned(), cpu)));
    let memory = rate.server.map(|server| crate::report::mebibytes(server.resident_peak_bytes));
    figures.extend(memory.map(|memory| ("server_memory_peak_mib".to_owned(), memory)));
    if let Some(availability) = &rate.availability {
        of_quantiles(figures, "found_by_key", &availability.sum.by_key);
        of_quantiles(figures, "found_by_filter", &availability.sum.by_filter);
    }
}

fn of_quantiles(figures: &mut BTreeMap<String, f64>, name: &str, quantiles: &Quantiles) {
    if quantiles.count > 0 {
        figures.insert(format!("{name}_p50_ms"), quantiles.p50);
        figures.insert(format!("{name}_p99_ms"), quantiles.p99);
    }
}

/// Single numbers, not those of lists: those are courses of time.
fn collect_numbers(figures: &mut BTreeMap<String, f64>, name: &str, value: &Value) {
    match value {
        Value::Number(number) => figures.extend(number.as_f64().map(|number| (name.to_owned(), number))),
        Value::Object(object) => {
            for (inner, value) in object {
                let name = if name.is_empty() { inner.clone() } else { format!("{name}.{inner}") };
                collect_numbers(figures, &name, value);
            }
        }
        _ => {}
    }
}

fn compare(entries: &[Entry], entry: &Entry) -> Comparison {
    let alike = |other: &&Entry| other.settings == entry.settings && other.failure.is_none();
    let mut before: Vec<&Entry> = entries.iter().rev().filter(alike).take(COMPARED).collect();
    before.reverse();
    let name = |entry: &&Entry| entry.commit.clone().unwrap_or_else(|| entry.version.clone());
    let figure = |(name, now): (&String, &f64)| {
        let mut values: Vec<f64> = before.iter().filter_map(|entry| entry.figures.get(name).copied()).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Some(ComparedFigure { name: name.clone(), now: *now, least, median, most })
    };
    Comparison {
        results: before.len(),
        commits: before.first().map(name).zip(before.last().map(name)),
        figures: entry.figures.iter().filter_map(figure).collect(),
    }
}

impl Display for Comparison {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Some((first, last)) = &self.commits else {
            return row(formatter, "history", "the first result of these settings");
        };
        row(formatter, "history", format_args!("{} results of these settings, from {first} to {last}", self.results))?;
        writeln!(
            formatter,
            "{:<36} {:>11} {:>11} {:>11} {:>11} {:>9}",
            "compared", "now", "least", "median", "most", "change"
        )?;
        for ComparedFigure { name, now, least, median, most } in &self.figures {
            let change = match *median {
                0.0 => String::from("-"),
                median => format!("{:+.1} %", (now / median - 1.0) * 100.0),
            };
            writeln!(formatter, "{name:<36} {now:>11.2} {least:>11.2} {median:>11.2} {most:>11.2} {change:>9}")?;
        }
        Ok(())
    }
}
