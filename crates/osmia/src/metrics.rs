//! Metrics of the process, in the format that Prometheus reads.

mod descriptions;

use std::fmt::Write;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds, from a tenth of a millisecond upwards.
const SECONDS_BUCKETS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Everything else: counts and bytes.
const BUCKETS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 4e6, 16e6,
];
/// How often collected values are moved into the histograms, so that they do not pile up between two scrapes.
pub(crate) const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// All metrics of the process.
#[derive(Clone)]
pub(crate) struct Metrics {
    handle: PrometheusHandle,
    started: Instant,
}

impl Metrics {
    /// From here on, collects what any part of the process measures.
    pub(crate) fn install() -> Result<Metrics, Box<dyn std::error::Error + Send + Sync>> {
        let recorder = PrometheusBuilder::new()
            .set_buckets(BUCKETS)?
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS_BUCKETS)?
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder)?;
        descriptions::describe();
        Ok(Metrics { handle, started: Instant::now() })
    }

    /// Moves collected values into the histograms.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// The text for Prometheus.
    pub(crate) fn render(&self) -> String {
        let mut text = self.handle.render();
        let mut add = |kind: &str, name: &str, labels: &str, help: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{labels} {value}\n\n");
        };
        let version = concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
        add("gauge", "osmia_build_info", version, "The version of this binary.", 1.0);
        let uptime = self.started.elapsed().as_secs_f64();
        add("gauge", "process_uptime_seconds", "", "Time since the start of the process.", uptime);
        if let Some(bytes) = resident_bytes() {
            add("gauge", "process_resident_memory_bytes", "", "Memory of the process, with mapped files.", bytes);
        }
        if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
            add(
                "gauge",
                "process_files_open_files",
                "",
                "Files and connections that are open.",
                entries.count() as f64,
            );
        }
        if let Some(seconds) = cpu_seconds() {
            add("counter", "process_cpu_seconds_total", "", "Processor time of the process.", seconds);
        }
        text
    }
}

/// From the second field of `/proc/self/statm`, which counts pages.
fn resident_bytes() -> Option<f64> {
    const PAGE_BYTES: f64 = 4096.0;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// User and system time from `/proc/self/stat`, which counts hundredths of a second.
fn cpu_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The command's name in parentheses may contain anything, so fields are counted from its closing parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}
