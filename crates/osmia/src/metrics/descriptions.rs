//! What each metric means, for the HELP lines.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Things that are counted since the start of the process.
const COUNTERS: &[(&str, &str)] = &[
    ("osmia_connections_refused_total", "Connections that were closed at once because connections-max were open."),
    ("osmia_gateway_stalled_connections_total", "Connections that were closed because their client read no answers."),
    ("osmia_jobs_yielded_total", "Jobs that went back because nobody was there to take them from their stream."),
    ("osmia_log_synced_writes_total", "Writes of the log that were brought to the disk; each serves all partitions."),
    ("osmia_log_written_bytes_total", "Bytes written to the log."),
    ("zeebe_broker_jobs_pushed_count_total", "Jobs handed to streams."),
    ("zeebe_dropped_request_count_total", "Commands of clients that flow control refused."),
    ("zeebe_element_instance_events_total", "Elements of processes by what happened to them and their type."),
    ("zeebe_executed_instances_total", "Root process instances by what happened to them."),
    ("zeebe_exporter_events_total", "Records that an exporter took, or that its filter skipped."),
    ("zeebe_gateway_failed_requests_total", "Requests that were answered with an error."),
    ("zeebe_gateway_job_stream_push_total", "Jobs sent to clients on streams."),
    ("zeebe_gateway_total_requests_total", "Requests of clients."),
    ("zeebe_incident_events_total", "Incidents created and resolved."),
    ("zeebe_job_events_total", "Jobs by what happened to them and their type."),
    ("zeebe_log_appender_record_appended_total", "Commands written to the log."),
    ("zeebe_process_instance_creations_total", "Process instances created by clients."),
    ("zeebe_received_request_count_total", "Commands of clients that flow control saw."),
    ("zeebe_replay_events_total", "Commands applied again at the start, because they are newer than the checkpoint."),
    ("zeebe_snapshot_count_total", "Checkpoints of the state that were completed."),
    ("zeebe_stream_processor_records_total", "Records by what became of them."),
];

/// What is so now.
const GAUGES: &[(&str, &str)] = &[
    ("atomix_role", "Role of this node for a partition: 3 leads it, 1 follows."),
    ("osmia_batch_processing_longest_seconds", "Longest time that one batch of commands took since the start."),
    ("osmia_checkpoint_worst_pause_seconds", "Longest time that a checkpoint stopped a partition since the start."),
    ("osmia_clock_ahead_milliseconds", "How far the time of a partition is ahead of this machine's clock."),
    ("osmia_connections_limit", "Connections that may be open at once."),
    ("osmia_disk_free_bytes", "Free bytes of the disk with the data directory."),
    ("osmia_disk_low_bytes", "Free bytes below which new work is refused."),
    ("osmia_disk_reserve_bytes", "Bytes that are kept for ending work on a full disk."),
    ("osmia_disk_reserve_left_bytes", "Bytes of the reserve that are not used."),
    ("osmia_disk_state", "0: enough room; 1: low, new work is refused; 2: full, all work is refused."),
    ("osmia_disk_total_bytes", "Size of the disk with the data directory."),
    ("osmia_exporter_failing", "1 while an exporter fails and is tried again."),
    ("osmia_exporter_lag_records", "Positions between what an exporter has acknowledged and the last record."),
    (
        "osmia_exporter_lag_seconds",
        "Age of the record that an exporter took or refused last; 0 when it has acknowledged all.",
    ),
    ("osmia_gateway_unread_answers_bytes", "Bytes of answers that wait for clients to read them."),
    ("osmia_job_streams_blocked", "Streams that have used up their credit: their clients are slow."),
    ("osmia_job_streams_undelivered_bytes", "Bytes of jobs that wait for clients to read their streams."),
    ("osmia_open_connections", "Connections that are open."),
    ("osmia_state_file_bytes", "Size of the state's file."),
    ("osmia_state_overlay_bytes", "Changes of the state in memory that are in no checkpoint yet."),
    ("zeebe_backpressure_inflight_requests_count", "Commands of clients under way."),
    ("zeebe_backpressure_requests_limit", "Commands of clients that may be under way now."),
    ("zeebe_banned_instances_total", "Process instances that are banned because the engine failed on them."),
    ("zeebe_broker_open_job_stream_count", "Job streams that are open."),
    ("zeebe_exporter_last_exported_position", "Position of the last record handed to an exporter."),
    ("zeebe_exporter_last_updated_exported_position", "Position up to which an exporter needs no record again."),
    ("zeebe_exporter_state", "0 while an exporter is not paused, which it never is here."),
    ("zeebe_gateway_job_stream_clients", "Clients with open job streams."),
    ("zeebe_gateway_job_stream_streams", "Kinds of job streams: job type, worker and settings."),
    ("zeebe_gateway_topology_partition_roles", "Role of each node for each partition: 3 leads it."),
    ("zeebe_health", "1 while a partition is healthy, 0 while it is not."),
    ("zeebe_long_polling_queued_current", "Requests for jobs that wait for some."),
    ("zeebe_pending_incidents_total", "Incidents that are not resolved."),
    ("zeebe_stream_processor_last_processed_position", "Position of the last command that was applied."),
    ("zeebe_stream_processor_startup_recovery_time", "Milliseconds that a partition took until it led."),
];

/// What is distributed.
const HISTOGRAMS: &[(&str, &str)] = &[
    ("atomix_journal_flush_time_seconds", "Time of one sync of the log."),
    ("grpc_server_processing_duration_seconds", "Time from a request to its answer, by method and status."),
    ("osmia_checkpoint_freeze_pause_seconds", "Time that the beginning of a checkpoint stopped a partition."),
    ("osmia_checkpoint_release_pause_seconds", "Time that the end of a checkpoint stopped a partition."),
    ("zeebe_exporting_latency_seconds", "Time from a record to its export."),
    ("zeebe_gateway_request_latency_seconds", "Time from a request to its answer, by type."),
    ("zeebe_log_appender_append_latency_seconds", "Time from a batch's arrival to its place in the log."),
    ("zeebe_log_appender_commit_latency_seconds", "Time from a batch's arrival to its commitment."),
    ("zeebe_sequencer_batch_length_bytes", "Bytes of a batch of commands."),
    ("zeebe_sequencer_batch_size", "Commands of a batch."),
    ("zeebe_snapshot_duration_seconds", "Time that a checkpoint took to be written."),
    ("zeebe_stream_processor_batch_processing_commands", "Commands of an applied batch."),
    ("zeebe_stream_processor_batch_processing_duration_seconds", "Time to apply a batch and to write its records."),
    (
        "zeebe_stream_processor_batch_processing_post_commit_tasks_seconds",
        "Time to answer clients and to hand out jobs after a batch.",
    ),
];

/// Registers all of them.
pub(super) fn describe() {
    COUNTERS.iter().for_each(|&(name, text)| describe_counter!(name, text));
    GAUGES.iter().for_each(|&(name, text)| describe_gauge!(name, text));
    HISTOGRAMS.iter().for_each(|&(name, text)| describe_histogram!(name, text));
}
