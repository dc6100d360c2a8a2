//! What each metric means, for the HELP lines.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Things that are counted since the start of the process.
const COUNTERS: &[(&str, &str)] = &[
    ("atomix_commit_entries_rate_total", "Entries of the log that were committed; each is a batch of commands."),
    ("atomix_journal_append_data_rate_total", "KiB of entries that were given to the log."),
    ("atomix_journal_append_rate_total", "Entries that were given to the log; each is a batch of commands."),
    ("osmia_connections_refused_total", "Connections that were closed at once because connections-max were open."),
    (
        "osmia_elasticsearch_exporter_rejected_records_total",
        "Records that Elasticsearch or OpenSearch refused for what is in them, and that were set aside in a file.",
    ),
    ("osmia_exporter_missing_records_total", "Records that were not in the stream any more when an exporter came by."),
    ("osmia_gateway_stalled_connections_total", "Connections that were closed because their client read no answers."),
    ("osmia_log_synced_writes_total", "Writes of the log that were brought to the disk; each serves all partitions."),
    ("osmia_log_written_bytes_total", "Bytes written to the log."),
    (
        "zeebe_broker_jobs_push_fail_count_total",
        "Jobs that went back because nobody was there to take them from their stream.",
    ),
    ("osmia_read_model_deleted_instances_total", "Process instances that the read model kept no longer."),
    (
        "osmia_read_model_rebuilds_total",
        "How often the read model lacked records that were gone, and what lives was read from the state.",
    ),
    ("osmia_read_model_rows_total", "Rows that the read model wrote."),
    ("osmia_read_model_set_aside_total", "Damaged files of the read model that were set aside."),
    ("zeebe_broker_jobs_pushed_count_total", "Jobs handed to streams."),
    ("zeebe_dropped_request_count_total", "Commands of clients that flow control refused."),
    ("zeebe_element_instance_events_total", "Elements of processes by what happened to them and their type."),
    ("zeebe_evaluated_dmn_elements_total", "Decisions that were evaluated, with those they require."),
    ("zeebe_executed_instances_total", "Root process instances by what happened to them."),
    (
        "zeebe_elasticsearch_exporter_failed_flush_total",
        "Requests with records to Elasticsearch or OpenSearch after which some had to be sent again.",
    ),
    ("zeebe_exporter_events_total", "Records that an exporter took, or that its filter skipped."),
    ("zeebe_flow_control_total", "Commands of clients by what flow control decided."),
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
    (
        "zeebe_stream_processor_batch_processing_retry_total",
        "Times that the records of a batch could not be written; that is tried again until it works.",
    ),
    ("zeebe_stream_processor_records_total", "Records by what became of them."),
];

/// What is so now.
const GAUGES: &[(&str, &str)] = &[
    ("atomix_journal_open_time", "Milliseconds that opening the log of all partitions took at the start."),
    ("atomix_non_committed_entries", "Entries in the log that are not committed."),
    ("atomix_partition_raft_append_index", "Index of the last entry in the log."),
    ("atomix_partition_raft_commit_index", "Index of the last entry that is committed."),
    ("atomix_role", "Role of this node for a partition: 3 leads it, 1 follows."),
    (
        "osmia_batch_processing_longest_seconds",
        "Longest time that one batch of commands and the writing of its records took since the start.",
    ),
    ("osmia_checkpoint_worst_pause_seconds", "Longest time that a checkpoint stopped a partition since the start."),
    ("osmia_command_application_longest_seconds", "Longest time that the engine took for one command since the start."),
    (
        "osmia_command_application_longest_processor_seconds",
        "Most processor time that the engine took for one command since the start.",
    ),
    ("osmia_feature_level", "The feature level of a partition: by which rules it processes commands."),
    ("osmia_clock_ahead_milliseconds", "How far the time of a partition is ahead of this machine's clock."),
    ("osmia_connections_limit", "Connections that may be open at once."),
    ("osmia_disk_free_bytes", "Free bytes of the disk with the data directory."),
    ("osmia_disk_low_bytes", "Free bytes below which new work is refused."),
    ("osmia_disk_reserve_bytes", "Bytes that are kept for ending work on a full disk."),
    ("osmia_disk_reserve_left_bytes", "Bytes of the reserve that are not used."),
    ("osmia_disk_state", "0: enough room; 1: low, new work is refused; 2: full, all work is refused."),
    ("osmia_disk_total_bytes", "Size of the disk with the data directory."),
    ("osmia_read_model_position", "Position up to which searches see what happened."),
    (
        "osmia_elasticsearch_exporter_bulks_in_flight",
        "Bulks of records to Elasticsearch or OpenSearch that are under way.",
    ),
    ("osmia_exporter_failing", "1 while an exporter fails and is tried again."),
    ("osmia_exporter_lag_records", "Records behind the last one that an exporter has acknowledged."),
    (
        "osmia_exporter_lag_seconds",
        "Age of the oldest record that an exporter has taken or refused and not acknowledged; 0 when it has acknowledged all.",
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
    (
        "zeebe_broker_health_nodes",
        "Health of a partition of this node: 1 healthy, -1 not healthy, -2 stopped until the next start.",
    ),
    ("zeebe_broker_open_job_stream_count", "Job streams that are open."),
    ("zeebe_buffered_messages_count", "Messages that are kept until their time to live is over."),
    (
        "zeebe_execution_latency_current_cached_instances",
        "Jobs and instances whose creation is kept to measure how long they live; of more there is a sample.",
    ),
    (
        "zeebe_elasticsearch_exporter_bulk_memory_size",
        "Bytes of the bulk that was sent to Elasticsearch or OpenSearch last.",
    ),
    ("zeebe_flow_control_exporting_rate", "Records per second that the slowest exporter took lately."),
    (
        "zeebe_flow_control_partition_load",
        "Records written per second over the limit; 0 without one (write-throttle-backlog).",
    ),
    (
        "zeebe_flow_control_write_rate_limit",
        "Records per second that new work may lead to, -1 without a limit (write-throttle-backlog).",
    ),
    ("zeebe_exporter_last_exported_position", "Position of the last record handed to an exporter."),
    ("zeebe_exporter_last_updated_exported_position", "Position up to which an exporter needs no record again."),
    ("zeebe_exporter_state", "1 while an exporter is paused, 2 while it is paused softly, 0 otherwise."),
    ("zeebe_gateway_job_stream_clients", "Clients with open job streams."),
    (
        "zeebe_gateway_job_stream_servers",
        "Nodes that push jobs to the streams of this gateway: itself, if there are streams.",
    ),
    ("zeebe_gateway_job_stream_streams", "Kinds of job streams: job type, worker and settings."),
    ("zeebe_gateway_topology_partition_roles", "Role of each node for each partition: 3 leads it."),
    ("zeebe_health", "1 while a partition is healthy, 0 while it is not."),
    (
        "zeebe_log_appender_last_appended_position",
        "Position of the last record. A record gets it when the committed command behind it is applied.",
    ),
    (
        "zeebe_log_appender_last_committed_position",
        "Position of the last record, which is committed before it has one.",
    ),
    ("zeebe_long_polling_queued_current", "Requests for jobs that wait for some."),
    ("zeebe_pending_incidents_total", "Incidents that are not resolved."),
    (
        "zeebe_replay_last_source_position",
        "Position up to which records were derived again, because this node did not lead or started.",
    ),
    ("zeebe_stream_processor_last_processed_position", "Position of the last command that was applied."),
    (
        "zeebe_stream_processor_state",
        "0 before the first batch, 1 while batches are only replayed, 2 while they are processed, 3 stopped.",
    ),
    ("zeebe_stream_processor_startup_recovery_time", "Milliseconds that a partition took until it led."),
];

/// What is distributed.
const HISTOGRAMS: &[(&str, &str)] = &[
    ("osmia_read_model_checkpoint_duration_seconds", "Time to make durable what the read model wrote."),
    (
        "osmia_read_model_delay_seconds",
        "Time from the arrival of a record in the read model until searches show it, of the first record of each transaction.",
    ),
    ("osmia_read_model_transaction_duration_seconds", "Time of a transaction of the read model."),
    ("atomix_compaction_time_ms_seconds", "Time in which the log forgot what a checkpoint holds."),
    ("atomix_journal_flush_time_seconds", "Time of one sync of the log."),
    ("grpc_server_processing_duration_seconds", "Time from a request to its answer, by method and status."),
    ("http_server_requests_seconds", "Time from a request of the REST API to its answer, by method, path and status."),
    ("osmia_checkpoint_freeze_pause_seconds", "Time that the beginning of a checkpoint stopped a partition."),
    ("osmia_checkpoint_release_pause_seconds", "Time that the end of a checkpoint stopped a partition."),
    (
        "osmia_elasticsearch_exporter_answered_to_searchable_seconds",
        "Time from the answer to a bulk until a search finds a document of it, of a bulk every ten seconds.",
    ),
    (
        "osmia_elasticsearch_exporter_record_to_sent_seconds",
        "Time from the oldest record of a bulk until the bulk is sent.",
    ),
    ("osmia_elasticsearch_exporter_sent_to_answered_seconds", "Time from a request with a bulk until its answer."),
    (
        "osmia_elasticsearch_exporter_took_seconds",
        "Time that Elasticsearch or OpenSearch says that it worked for a request with a bulk.",
    ),
    ("zeebe_elasticsearch_exporter_bulk_size", "Records of a bulk that was sent to Elasticsearch or OpenSearch."),
    (
        "zeebe_elasticsearch_exporter_flush_duration_seconds",
        "Time until Elasticsearch or OpenSearch had taken all of a bulk, with everything that was tried again.",
    ),
    ("zeebe_elasticsearch_exporter_flush_latency_seconds", "Time from the first record of a bulk to its sending."),
    ("zeebe_exporting_latency_seconds", "Time from a record to its export."),
    (
        "zeebe_gateway_job_stream_aggregated_stream_clients",
        "Streams that want the same job type with the same settings, at each look.",
    ),
    ("zeebe_gateway_request_latency_seconds", "Time from a request to its answer, by type."),
    ("zeebe_job_activation_time_seconds", "Time from the creation of a job to its activation."),
    ("zeebe_job_life_time_seconds", "Time from the creation of a job to its completion."),
    (
        "zeebe_leader_transition_latency_seconds",
        "Time from a partition's election of this node to its readiness for commands.",
    ),
    ("zeebe_log_appender_append_latency_seconds", "Time from a batch's arrival to its place in the log."),
    ("zeebe_log_appender_commit_latency_seconds", "Time from a batch's arrival to its commitment."),
    (
        "zeebe_process_instance_execution_time_seconds",
        "Time from the beginning of a process instance to its completion.",
    ),
    ("zeebe_replay_event_batch_replay_duration_seconds", "Time to apply a batch again."),
    ("zeebe_sequencer_batch_length_bytes", "Bytes of a batch of commands."),
    ("zeebe_sequencer_batch_size", "Commands of a batch."),
    ("zeebe_snapshot_duration_seconds", "Time that a checkpoint took to be written."),
    ("zeebe_stream_processor_batch_processing_commands", "Commands of an applied batch."),
    ("zeebe_stream_processor_batch_processing_duration_seconds", "Time to apply a batch and to write its records."),
    (
        "zeebe_stream_processor_batch_processing_post_commit_tasks_seconds",
        "Time to answer clients and to hand out jobs after a batch.",
    ),
    (
        "zeebe_stream_processor_latency_seconds",
        "Time from the admission of a batch's first command to its application.",
    ),
    (
        "zeebe_stream_processor_processing_duration_seconds",
        "Time that the engine took for one command, to the next power of two of a µs.",
    ),
];

/// Registers all of them.
pub(super) fn describe() {
    COUNTERS.iter().for_each(|&(name, text)| describe_counter!(name, text));
    GAUGES.iter().for_each(|&(name, text)| describe_gauge!(name, text));
    HISTOGRAMS.iter().for_each(|&(name, text)| describe_histogram!(name, text));
}
