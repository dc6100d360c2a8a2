//! Processor time and memory of processes on this machine.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::LoadError;

/// What a set of processes used during a span of time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProcessUse {
    /// User and system time.
    pub cpu_seconds: f64,
    /// The same relative to elapsed time; 100 is one core.
    pub cpu_percent: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
    /// Sum of the highest resident memory that each process ever had, in bytes.
    pub resident_peak_bytes: u64,
}

impl ProcessUse {
    /// Microseconds of processor time per item.
    pub fn cpu_microseconds_per(&self, count: u64) -> Option<f64> {
        (count > 0).then(|| self.cpu_seconds * 1e6 / count as f64)
    }
}

/// The counters of a set of processes at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessSample {
    at: Instant,
    cpu: Duration,
    resident_bytes: u64,
    resident_peak_bytes: u64,
}

impl ProcessSample {
    /// None without a process.
    pub fn take(pids: &[u32]) -> Result<Option<Self>, LoadError> {
        if pids.is_empty() {
            return Ok(None);
        }
        let mut sample =
            ProcessSample { at: Instant::now(), cpu: Duration::ZERO, resident_bytes: 0, resident_peak_bytes: 0 };
        for &pid in pids {
            let read = |file: &str| {
                std::fs::read_to_string(format!("/proc/{pid}/{file}"))
                    .map_err(|error| LoadError::Process { pid, reason: error.to_string() })
            };
            let unreadable = || LoadError::Process { pid, reason: "the system describes it in an unknown form".into() };
            sample.cpu += cpu_time(&read("stat")?).ok_or_else(unreadable)?;
            let status = read("status")?;
            sample.resident_bytes += memory(&status, "VmRSS:").ok_or_else(unreadable)?;
            sample.resident_peak_bytes += memory(&status, "VmHWM:").ok_or_else(unreadable)?;
        }
        Ok(Some(sample))
    }

    /// What was used between an earlier sample and this one.
    pub fn since(&self, earlier: &ProcessSample) -> ProcessUse {
        let cpu = self.cpu.saturating_sub(earlier.cpu).as_secs_f64();
        let clock = self.at.duration_since(earlier.at).as_secs_f64();
        ProcessUse {
            cpu_seconds: cpu,
            cpu_percent: if clock > 0.0 { cpu / clock * 100.0 } else { 0.0 },
            resident_bytes: self.resident_bytes,
            resident_peak_bytes: self.resident_peak_bytes,
        }
    }
}

/// Samples of the server and of this process, taken together.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    server: Option<ProcessSample>,
    own: Option<ProcessSample>,
}

impl Usage {
    pub fn take(server_pids: &[u32]) -> Result<Self, LoadError> {
        Ok(Usage { server: ProcessSample::take(server_pids)?, own: ProcessSample::take(&[std::process::id()])? })
    }

    /// Resident memory of the server.
    pub fn server_resident_bytes(&self) -> Option<u64> {
        self.server.map(|server| server.resident_bytes)
    }

    /// The use of the server and of this process since an earlier sample.
    pub fn since(&self, earlier: &Usage) -> (Option<ProcessUse>, Option<ProcessUse>) {
        let between = |now: Option<ProcessSample>, then: Option<ProcessSample>| Some(now?.since(&then?));
        (between(self.server, earlier.server), between(self.own, earlier.own))
    }
}

/// The sum of `utime` and `stime`, the 14th and 15th fields; the second field is a name that may contain spaces.
fn cpu_time(stat: &str) -> Option<Duration> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64(user.checked_add(system)? as f64 / ticks_per_second()))
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf reads a constant of the system and has no precondition.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

fn memory(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_process_are_found() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 9 0 0 0 150 50 0 0 20 0 1 0 100 0 0";
        let ticks = ticks_per_second();
        assert_eq!(cpu_time(stat), Some(Duration::from_secs_f64(200.0 / ticks)));
        assert_eq!(memory("VmHWM:\t  12 kB\nVmRSS:\t   8 kB\n", "VmRSS:"), Some(8192));
        assert_eq!(cpu_time("nothing"), None);
    }

    #[test]
    fn work_shows_in_the_use_of_this_process() {
        let pids = [std::process::id()];
        let before = ProcessSample::take(&pids).expect("this process exists").expect("one process");
        // On a busy machine this process may wait long for its first tick.
        let end = Instant::now() + Duration::from_secs(30);
        let used = loop {
            let mut sum = 0_u64;
            for _ in 0..10_000_000 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            let after = ProcessSample::take(&pids).expect("this process exists").expect("one process");
            let used = after.since(&before);
            if used.cpu_seconds > 0.0 || Instant::now() > end {
                break used;
            }
        };
        assert!(used.cpu_seconds > 0.0, "{used:?}");
        assert!(used.resident_bytes > 100_000, "{used:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let error = ProcessSample::take(&[u32::MAX]).expect_err("no such process");
        assert!(error.to_string().contains(&u32::MAX.to_string()), "{error}");
    }
}
