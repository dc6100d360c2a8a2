//! What is measured of an exporter and a partition.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use protocol::PartitionId;

/// Numbers of one exporter and partition.
pub(super) struct BulkMetrics {
    /// Records of a bulk that is sent.
    size: Histogram,
    /// Bytes of the bulk that was sent last.
    bytes: Gauge,
    /// From the first record of a bulk until it is sent.
    latency: Histogram,
    /// From when the oldest record of a bulk happened until the bulk is sent.
    record_to_sent: Histogram,
    /// From a request until its answer.
    sent_to_answered: Histogram,
    /// Of that, what the target says that it worked.
    took: Histogram,
    /// From the answer until a document of the bulk is found, of some bulks.
    pub answered_to_searchable: Histogram,
    /// Until a bulk is taken as a whole, with everything that is tried again.
    duration: Histogram,
    /// Requests that did not succeed as a whole.
    failed: Counter,
    /// Records that were refused for good.
    rejected: Counter,
    /// Bulks that are not acknowledged.
    in_flight: Gauge,
}

impl BulkMetrics {
    pub fn new(exporter: &str, partition: PartitionId) -> BulkMetrics {
        let (e, p) = (|| exporter.to_owned(), || partition.to_string());
        BulkMetrics {
            size: histogram!("zeebe_elasticsearch_exporter_bulk_size", "exporter" => e(), "partition" => p()),
            bytes: gauge!("zeebe_elasticsearch_exporter_bulk_memory_size", "exporter" => e(), "partition" => p()),
            latency: histogram!(
                "zeebe_elasticsearch_exporter_flush_latency_seconds", "exporter" => e(), "partition" => p()
            ),
            record_to_sent: histogram!(
                "osmia_elasticsearch_exporter_record_to_sent_seconds", "exporter" => e(), "partition" => p()
            ),
            sent_to_answered: histogram!(
                "osmia_elasticsearch_exporter_sent_to_answered_seconds", "exporter" => e(), "partition" => p()
            ),
            took: histogram!("osmia_elasticsearch_exporter_took_seconds", "exporter" => e(), "partition" => p()),
            answered_to_searchable: histogram!(
                "osmia_elasticsearch_exporter_answered_to_searchable_seconds", "exporter" => e(), "partition" => p()
            ),
            duration: histogram!(
                "zeebe_elasticsearch_exporter_flush_duration_seconds", "exporter" => e(), "partition" => p()
            ),
            failed: counter!("zeebe_elasticsearch_exporter_failed_flush_total", "exporter" => e(), "partition" => p()),
            rejected: counter!(
                "osmia_elasticsearch_exporter_rejected_records_total", "exporter" => e(), "partition" => p()
            ),
            in_flight: gauge!("osmia_elasticsearch_exporter_bulks_in_flight", "exporter" => e(), "partition" => p()),
        }
    }

    /// A bulk goes on its way.
    pub fn sent(&self, records: usize, bytes: usize, latency: Duration, in_flight: usize) {
        self.size.record(records as f64);
        self.bytes.set(bytes as f64);
        self.latency.record(latency);
        self.in_flight.set(in_flight as f64);
    }

    /// A bulk goes on its way so long after its oldest record happened.
    pub fn sent_behind(&self, age: Duration) {
        self.record_to_sent.record(age);
    }

    /// A request was answered, after so long; the target says how much of that it worked.
    pub fn answered(&self, duration: Duration, took: Option<Duration>) {
        self.sent_to_answered.record(duration);
        if let Some(took) = took {
            self.took.record(took);
        }
    }

    /// A bulk was taken, after so long.
    pub fn taken(&self, duration: Duration, in_flight: usize) {
        self.duration.record(duration);
        self.in_flight.set(in_flight as f64);
    }

    /// A request did not succeed as a whole.
    pub fn failed(&self) {
        self.failed.increment(1);
    }

    /// Records were refused for good.
    pub fn rejected(&self, records: usize) {
        self.rejected.increment(records as u64);
    }
}
