//! How long this disk takes to make a write durable, measured while the load runs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::LoadError;
use crate::figures::{Latencies, Quantiles};

const WRITE_BYTES: usize = 4096;
const FILE_WRITES: u64 = 256;
const EVERY: Duration = Duration::from_millis(100);

/// Writes 4 KiB and syncs it every 100 ms, until it is asked for the result.
pub(crate) struct FsyncProbe {
    stop: Sender<()>,
    thread: JoinHandle<Latencies>,
    path: PathBuf,
}

impl FsyncProbe {
    pub fn start(directory: &Path) -> Result<Self, LoadError> {
        let path = directory.join(format!(".osmia-load-{}", std::process::id()));
        let failed = |source| LoadError::FsyncProbe { path: path.clone(), source };
        let file = File::create(&path).map_err(failed)?;
        // The file has its full size from the start, like a preallocated log.
        let size = usize::try_from(FILE_WRITES).unwrap_or(usize::MAX) * WRITE_BYTES;
        file.write_all_at(&vec![1; size], 0).and_then(|()| file.sync_all()).map_err(failed)?;
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("load-fsync".into())
            .spawn(move || {
                let mut latencies = Latencies::new();
                let mut number = 0_u64;
                while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let block = [number as u8; WRITE_BYTES];
                    let offset = number % FILE_WRITES * WRITE_BYTES as u64;
                    let start = Instant::now();
                    if file.write_all_at(&block, offset).is_err() || file.sync_data().is_err() {
                        // A full or failing disk shows in the server; the probe simply has no value then.
                        continue;
                    }
                    latencies.record(start.elapsed());
                    number += 1;
                }
                latencies
            })
            .map_err(LoadError::Thread)?;
        Ok(FsyncProbe { stop, thread, path })
    }

    /// Ends it and removes its file.
    pub fn finish(self) -> Quantiles {
        drop(self.stop);
        let latencies = self.thread.join().expect("the sync probe does not panic");
        // The file is hidden and small; failing to remove it is no reason to lose the report.
        let _ = std::fs::remove_file(&self.path);
        latencies.quantiles()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_measures_and_cleans_up() {
        let directory = std::env::temp_dir();
        let probe = FsyncProbe::start(&directory).expect("the temporary directory can be written");
        let path = probe.path.clone();
        // Once the third write is in the file, the two before it are synced.
        let begin = Instant::now();
        let third = |file: Vec<u8>| file.get(2 * WRITE_BYTES) == Some(&2);
        while !third(std::fs::read(&path).expect("the file is there")) {
            assert!(begin.elapsed() < Duration::from_secs(120), "the probe does not write");
            std::thread::sleep(EVERY);
        }
        let quantiles = probe.finish();
        assert!(quantiles.count >= 2 && quantiles.max > 0.0, "{quantiles:?}");
        assert!(!path.exists());
        assert!(FsyncProbe::start(Path::new("/nonexistent")).is_err());
    }
}
