//! The node as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Until a management port has answered.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How often the memory of the process is read: shorter peaks may be missed.
const MEMORY_INTERVAL: Duration = Duration::from_millis(10);

/// What a process holds, in MiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Private memory, which the system can take back only by ending the process.
    pub own: u64,
    /// With the pages of files that it has mapped, which the system drops as soon as another process needs the room.
    pub resident: u64,
}

impl Memory {
    pub fn max(self, other: Memory) -> Memory {
        Memory { own: self.own.max(other.own), resident: self.resident.max(other.resident) }
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} MiB, {} MiB with mapped files", self.own, self.resident)
    }
}

/// A running node; it is killed when this is dropped.
pub(crate) struct Node {
    child: Child,
    pub addresses: Addresses,
}

/// Where a node is, for cases that need no more.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub pid: u32,
    /// With `http://` before.
    pub grpc: String,
    /// Host and port.
    pub rest: String,
    pub management: String,
    peak: Arc<Peak>,
}

/// The most memory that was seen.
#[derive(Debug, Default)]
struct Peak {
    own: AtomicU64,
    resident: AtomicU64,
}

impl Peak {
    fn note(&self, memory: Memory) {
        self.own.fetch_max(memory.own, Ordering::Relaxed);
        self.resident.fetch_max(memory.resident, Ordering::Relaxed);
    }
}

impl Node {
    /// Starts a node and waits until it is ready; the reason if it ends before.
    pub fn start(binary: &Path, data: &Path, flags: &[&str]) -> Result<Node, String> {
        let mut child = Command::new(binary)
            .args(["start", "--grpc-port", "0", "--http-port", "0", "--management-port", "0", "--data"])
            .arg(data)
            .args(flags)
            .env("OSMIA_LOG", "error")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", binary.display()))?;
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let ready = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("Osmia is ready"));
        let Some(ready) = ready else {
            let ended = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("the node ended before it was ready: {ended}"));
        };
        // Whatever it prints later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let word_after = |word: &str| {
            let rest = ready.split_once(word).map_or("", |(_, rest)| rest);
            rest.split([',', ' ']).next().unwrap_or_default().to_owned()
        };
        let addresses = Addresses {
            pid: child.id(),
            grpc: format!("http://{}", word_after("gRPC ")),
            rest: word_after("REST http://"),
            management: word_after("management http://"),
            peak: Arc::default(),
        };
        let watched = addresses.clone();
        std::thread::spawn(move || {
            while let Some(memory) = watched.memory() {
                watched.peak.note(memory);
                std::thread::sleep(MEMORY_INTERVAL);
            }
        });
        Ok(Node { child, addresses })
    }

    /// How the process ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        // A process that ends frees its memory first, and may write it to a file before that.
        let ending = self.addresses.memory().is_none();
        let ended = if ending { self.child.wait().map(Some) } else { self.child.try_wait() };
        ended.ok().flatten().map(|status| status.to_string())
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a node publishes, as the text of Prometheus.
#[derive(Default)]
pub(crate) struct Metrics(String);

impl Metrics {
    /// What is said for each partition under this name and with this label: the sum, or the largest.
    pub fn of(&self, name: &str, label: &str, together: fn(f64, f64) -> f64) -> Option<f64> {
        let lines = self.0.lines().filter(|line| line.starts_with(name) && line.contains(label));
        let values = lines.filter_map(|line| line.rsplit(' ').next());
        values.filter_map(|value| value.parse::<f64>().ok()).reduce(together)
    }
}

impl Addresses {
    /// What the node publishes for each partition under this name and with this label: the sum, or the largest.
    pub fn metric(&self, name: &str, label: &str, together: fn(f64, f64) -> f64) -> Option<f64> {
        self.metrics()?.of(name, label, together)
    }

    /// All that the node publishes at one moment.
    pub fn metrics(&self) -> Option<Metrics> {
        self.http("/actuator/prometheus").map(Metrics)
    }

    fn http(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.management).ok()?;
        stream.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }

    /// Memory now; none once the process has freed it.
    pub fn memory(&self) -> Option<Memory> {
        let status = std::fs::read_to_string(self.file("status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1_024)
        };
        Some(Memory { own: field("RssAnon:")? + field("RssShmem:")?, resident: field("VmRSS:")? })
    }

    /// The most memory since [`Self::forget_peak`].
    pub fn peak(&self) -> Memory {
        let seen = &self.peak;
        let peak = Memory { own: seen.own.load(Ordering::Relaxed), resident: seen.resident.load(Ordering::Relaxed) };
        self.memory().map_or(peak, |now| now.max(peak))
    }

    /// The most memory is counted from now on.
    pub fn forget_peak(&self) {
        self.peak.own.store(0, Ordering::Relaxed);
        self.peak.resident.store(0, Ordering::Relaxed);
    }

    /// Descriptors that the process has open.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(self.file("fd")).map_or(0, Iterator::count)
    }

    fn file(&self, name: &str) -> PathBuf {
        ["/proc", &self.pid.to_string(), name].iter().collect()
    }
}
