//! The records that the target refuses, however often they are sent: one line of JSON each, with the reason.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::durable::{PRIVATE_FILE, make_directory_of, sync_name};

/// Version of a line.
const FORMAT: u32 = 1;

/// The file. When it is full it gets the name `path.1`, and what had that name is deleted.
pub(super) struct RejectedFile {
    path: PathBuf,
    bytes_max: u64,
    opened: Mutex<Option<(File, u64)>>,
}

#[derive(Serialize)]
struct Line<'a> {
    format: u32,
    status: u16,
    error: Option<&'a RawValue>,
    /// Where it was to go. With the next it is what may be sent again.
    action: &'a RawValue,
    record: &'a RawValue,
}

/// The lines to be appended.
#[derive(Default)]
pub(super) struct RejectedLines(Vec<u8>);

impl RejectedLines {
    /// Adds a document.
    pub fn push(
        &mut self,
        (action, record): (&[u8], &[u8]),
        status: u16,
        error: Option<&RawValue>,
    ) -> Result<(), serde_json::Error> {
        let (action, record) = (serde_json::from_slice(action)?, serde_json::from_slice(record)?);
        serde_json::to_writer(&mut self.0, &Line { format: FORMAT, status, error, action, record })?;
        self.0.push(b'\n');
        Ok(())
    }
}

impl RejectedFile {
    pub fn new(path: PathBuf, bytes_max: u64) -> RejectedFile {
        RejectedFile { path, bytes_max, opened: Mutex::new(None) }
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Appends lines and makes them durable. After an error they may be there in part; then they come again.
    pub fn append(&self, lines: &RejectedLines) -> std::io::Result<()> {
        let mut opened = self.opened.lock();
        if opened.as_ref().is_some_and(|(_, length)| *length >= self.bytes_max) {
            *opened = None;
            let mut full = self.path.clone().into_os_string();
            full.push(".1");
            let full = PathBuf::from(full);
            if full.exists() {
                tracing::error!(
                    file = %full.display(),
                    "the older half of the records that were set aside is deleted, because there is no room for more; look at what is \
                     refused, and copy both files before the next"
                );
            }
            match std::fs::rename(&self.path, full) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                // The file that is opened next syncs the directory.
                _ => {}
            }
        }
        // A failed write closes it: the next one begins on a line of its own.
        let (mut file, length) = match opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        file.write_all(&lines.0)?;
        file.sync_data()?;
        *opened = Some((file, length + lines.0.len() as u64));
        Ok(())
    }

    fn open(&self) -> std::io::Result<(File, u64)> {
        make_directory_of(&self.path)?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE_FILE).open(&self.path)?;
        // Records in it are acknowledged: after a power loss they must be found. Also in a file that is there already, for
        // the process that made it may have ended before it synced the name.
        sync_name(&self.path)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            file.read_exact_at(&mut last, length - 1)?;
        }
        if last != [b'\n'] {
            // A crash cut off the last line.
            file.write_all(b"\n")?;
        }
        Ok((file, length))
    }
}
