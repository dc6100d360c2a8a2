//! The tables of a partition: in a file, or in a schema of a server.
//!
//! What many rows have in common stands once: a definition in its own table, and an element of a definition in `element`,
//! together with its counters. Times are milliseconds since the Unix epoch, kinds are the numbers of
//! [`enumerations`](crate::enumerations), and keys are those of the engine.

/// The version of the tables. Those of older ones are brought to it (`migration.rs`).
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// Marks the file as a read model, so that no other SQLite file is taken for one. (Development builds before format 1 had another
/// mark.)
pub(crate) const APPLICATION_ID: i64 = 0x4F53_4D51;

pub(crate) const TABLES: &str = "
CREATE TABLE place(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    partition INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    number INTEGER NOT NULL
);
CREATE TABLE history(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    is_rebuilding INTEGER NOT NULL,
    complete_since INTEGER
);
INSERT INTO history VALUES (1, 0, NULL);
CREATE TABLE process_definition(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    name TEXT,
    version INTEGER NOT NULL,
    version_tag TEXT,
    resource_name TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    state INTEGER NOT NULL,
    xml BLOB
);
CREATE INDEX process_definition_by_id ON process_definition(id, version);
CREATE TABLE element(
    id INTEGER PRIMARY KEY,
    process_definition_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    name TEXT,
    type INTEGER NOT NULL,
    active INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    canceled INTEGER NOT NULL,
    incidents INTEGER NOT NULL
);
CREATE UNIQUE INDEX element_of_definition ON element(process_definition_key, element_id, type);
CREATE INDEX element_by_id ON element(element_id);
CREATE TABLE process_instance(
    key INTEGER PRIMARY KEY,
    process_definition_key INTEGER NOT NULL,
    parent_process_instance_key INTEGER,
    parent_element_instance_key INTEGER,
    root_process_instance_key INTEGER NOT NULL,
    state INTEGER NOT NULL,
    start_date INTEGER NOT NULL,
    end_date INTEGER,
    incidents INTEGER NOT NULL DEFAULT 0,
    tags TEXT,
    business_id TEXT
);
CREATE INDEX process_instance_by_definition ON process_instance(process_definition_key, state);
CREATE INDEX process_instance_by_definition_and_start ON process_instance(process_definition_key, state, start_date);
CREATE INDEX process_instance_by_state ON process_instance(state, end_date);
CREATE INDEX process_instance_by_start ON process_instance(start_date);
CREATE INDEX process_instance_by_end ON process_instance(end_date) WHERE end_date IS NOT NULL;
CREATE INDEX process_instance_by_parent ON process_instance(parent_process_instance_key)
    WHERE parent_process_instance_key IS NOT NULL;
CREATE INDEX process_instance_with_incidents ON process_instance(incidents) WHERE incidents > 0;
CREATE INDEX process_instance_by_business_id ON process_instance(business_id) WHERE business_id IS NOT NULL;
CREATE TABLE element_instance(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    scope_key INTEGER NOT NULL,
    element INTEGER NOT NULL,
    state INTEGER NOT NULL,
    start_date INTEGER NOT NULL,
    end_date INTEGER,
    incidents INTEGER NOT NULL DEFAULT 0,
    incident_key INTEGER
);
CREATE INDEX element_instance_of_instance ON element_instance(process_instance_key);
CREATE INDEX element_instance_by_element ON element_instance(element, state);
CREATE TABLE sequence_flow(
    process_instance_key INTEGER NOT NULL,
    element INTEGER NOT NULL,
    PRIMARY KEY (process_instance_key, element)
) WITHOUT ROWID;
CREATE TABLE variable(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    scope_key INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    comparable TEXT NOT NULL
);
CREATE INDEX variable_of_instance ON variable(process_instance_key);
CREATE INDEX variable_by_value ON variable(name, comparable, process_instance_key);
CREATE TABLE job(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element INTEGER NOT NULL,
    type TEXT NOT NULL,
    worker TEXT NOT NULL,
    state INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    has_failed_with_retries_left INTEGER NOT NULL,
    deadline INTEGER,
    creation_time INTEGER,
    last_update_time INTEGER NOT NULL,
    end_time INTEGER,
    error_code TEXT,
    error_message TEXT,
    custom_headers TEXT NOT NULL,
    listener_event_type INTEGER NOT NULL DEFAULT 0,
    is_denied INTEGER,
    denied_reason TEXT
);
CREATE INDEX job_of_instance ON job(process_instance_key);
CREATE INDEX job_by_state ON job(state, type);
CREATE TABLE incident(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element INTEGER NOT NULL,
    job_key INTEGER,
    error_type INTEGER NOT NULL,
    error_message TEXT NOT NULL,
    error_hash_code INTEGER NOT NULL,
    state INTEGER NOT NULL,
    creation_time INTEGER NOT NULL
);
CREATE INDEX incident_of_instance ON incident(process_instance_key);
CREATE INDEX incident_by_state ON incident(state, error_hash_code);
CREATE TABLE decision_requirements(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    resource_name TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    xml BLOB
);
CREATE TABLE decision_definition(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    decision_requirements_key INTEGER NOT NULL,
    decision_requirements_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL
);
CREATE INDEX decision_definition_by_id ON decision_definition(id, version);
CREATE TABLE decision_instance(
    id INTEGER PRIMARY KEY,
    evaluation_key INTEGER NOT NULL,
    instance_key TEXT NOT NULL,
    decision_definition_key INTEGER NOT NULL,
    decision_definition_id TEXT NOT NULL,
    decision_definition_name TEXT NOT NULL,
    decision_definition_version INTEGER NOT NULL,
    decision_definition_type INTEGER NOT NULL,
    root_decision_definition_key INTEGER NOT NULL,
    decision_requirements_key INTEGER NOT NULL,
    state INTEGER NOT NULL,
    evaluation_date INTEGER NOT NULL,
    failure TEXT,
    result TEXT NOT NULL,
    details TEXT NOT NULL,
    process_definition_key INTEGER,
    process_instance_key INTEGER,
    element_instance_key INTEGER,
    tenant_id TEXT NOT NULL
);
CREATE UNIQUE INDEX decision_instance_by_key ON decision_instance(instance_key);
CREATE INDEX decision_instance_by_decision ON decision_instance(decision_definition_key);
CREATE INDEX decision_instance_of_instance ON decision_instance(process_instance_key)
    WHERE process_instance_key IS NOT NULL;
CREATE INDEX decision_instance_without_instance ON decision_instance(evaluation_date)
    WHERE process_instance_key IS NULL;
CREATE TABLE message_subscription(
    key INTEGER PRIMARY KEY,
    type INTEGER NOT NULL,
    process_definition_key INTEGER,
    process_definition_id TEXT NOT NULL,
    process_instance_key INTEGER,
    element_instance_key INTEGER,
    element_id TEXT NOT NULL,
    message_name TEXT NOT NULL,
    correlation_key TEXT,
    state INTEGER NOT NULL,
    last_updated_date INTEGER NOT NULL,
    tenant_id TEXT NOT NULL
);
CREATE INDEX message_subscription_of_instance ON message_subscription(process_instance_key)
    WHERE process_instance_key IS NOT NULL;
CREATE INDEX message_subscription_by_state ON message_subscription(state);
CREATE TABLE correlated_message_subscription(
    id INTEGER PRIMARY KEY,
    subscription_key INTEGER NOT NULL,
    message_key INTEGER NOT NULL,
    message_name TEXT NOT NULL,
    correlation_key TEXT,
    correlation_time INTEGER NOT NULL,
    process_definition_key INTEGER,
    process_definition_id TEXT NOT NULL,
    process_instance_key INTEGER,
    element_instance_key INTEGER,
    element_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL
);
CREATE INDEX correlated_message_subscription_of_instance
    ON correlated_message_subscription(process_instance_key) WHERE process_instance_key IS NOT NULL;
CREATE TABLE form(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    tenant_id TEXT NOT NULL,
    is_deleted INTEGER NOT NULL,
    content TEXT NOT NULL
);
CREATE INDEX form_by_id ON form(id, version);
CREATE TABLE start_form(
    process_definition_key INTEGER PRIMARY KEY,
    form_id TEXT NOT NULL
);
CREATE TABLE resource(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    version_tag TEXT,
    deployment_key INTEGER NOT NULL,
    tenant_id TEXT NOT NULL
);
CREATE INDEX resource_by_id ON resource(id, version);
CREATE TABLE variable_name(
    process_definition_key INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (process_definition_key, name)
) WITHOUT ROWID;
CREATE TABLE user_task(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element INTEGER NOT NULL,
    state INTEGER NOT NULL,
    assignee TEXT,
    candidate_groups TEXT NOT NULL,
    candidate_users TEXT NOT NULL,
    creation_date INTEGER NOT NULL,
    completion_date INTEGER,
    follow_up_date INTEGER,
    due_date INTEGER,
    external_form_reference TEXT,
    form_key INTEGER,
    priority INTEGER NOT NULL,
    custom_headers TEXT NOT NULL
);
CREATE INDEX user_task_of_instance ON user_task(process_instance_key);
CREATE INDEX user_task_by_assignee ON user_task(assignee, state, creation_date);
CREATE INDEX user_task_by_state ON user_task(state, creation_date);
CREATE TABLE user_task_candidate(
    process_instance_key INTEGER NOT NULL,
    user_task_key INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL
);
CREATE INDEX user_task_candidate_of_instance ON user_task_candidate(process_instance_key, user_task_key);
CREATE INDEX user_task_candidate_by_name ON user_task_candidate(kind, name, user_task_key);
CREATE TABLE timer(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    due_date INTEGER NOT NULL,
    repetitions INTEGER NOT NULL
);
CREATE INDEX timer_of_instance ON timer(process_instance_key);
CREATE TABLE job_count(
    time INTEGER NOT NULL,
    type TEXT NOT NULL,
    worker TEXT NOT NULL,
    created INTEGER NOT NULL,
    created_at INTEGER,
    completed INTEGER NOT NULL,
    completed_at INTEGER,
    failed INTEGER NOT NULL,
    failed_at INTEGER,
    PRIMARY KEY (time, type, worker)
) WITHOUT ROWID;
CREATE TABLE audit_log(
    key INTEGER PRIMARY KEY,
    entity_key INTEGER NOT NULL,
    entity_type INTEGER NOT NULL,
    operation_type INTEGER NOT NULL,
    result INTEGER NOT NULL,
    category INTEGER NOT NULL,
    time INTEGER NOT NULL,
    actor_type INTEGER NOT NULL,
    actor_id TEXT,
    process_definition_key INTEGER,
    process_instance_key INTEGER,
    element_instance_key INTEGER,
    user_task_key INTEGER,
    batch_operation_key INTEGER,
    job_key INTEGER,
    decision_definition_key INTEGER,
    decision_definition_id TEXT,
    decision_requirements_key INTEGER,
    decision_requirements_id TEXT,
    deployment_key INTEGER,
    form_key INTEGER,
    resource_key INTEGER,
    description TEXT,
    tenant_id TEXT
);
CREATE INDEX audit_log_of_instance ON audit_log(process_instance_key);
CREATE INDEX audit_log_of_task ON audit_log(user_task_key) WHERE user_task_key IS NOT NULL;
CREATE INDEX audit_log_by_time ON audit_log(time);
CREATE TABLE usage_count(
    time INTEGER PRIMARY KEY,
    instances INTEGER NOT NULL,
    decisions INTEGER NOT NULL
);
CREATE TABLE usage_assignee(
    time INTEGER NOT NULL,
    assignee INTEGER NOT NULL,
    PRIMARY KEY (time, assignee)
) WITHOUT ROWID;
CREATE TABLE condition(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    expression TEXT NOT NULL,
    events TEXT NOT NULL
);
CREATE INDEX condition_of_instance ON condition(process_instance_key);
CREATE TABLE signal_subscription(
    key INTEGER PRIMARY KEY,
    process_instance_key INTEGER NOT NULL,
    element_instance_key INTEGER NOT NULL,
    element_id TEXT NOT NULL,
    signal_name TEXT NOT NULL
);
CREATE INDEX signal_subscription_of_instance ON signal_subscription(process_instance_key);
CREATE TABLE global_listener(
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    retries INTEGER NOT NULL,
    event_types TEXT NOT NULL,
    after_non_global INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    source INTEGER NOT NULL
);
CREATE TABLE global_listener_event(
    listener_key INTEGER NOT NULL,
    event_type INTEGER NOT NULL,
    PRIMARY KEY (listener_key, event_type)
) WITHOUT ROWID;
";

/// The same for PostgreSQL, with a table for what a file says of itself. Texts are ordered by their bytes there too.
pub(crate) fn tables_of_postgresql(tables: &str) -> String {
    const LAYOUT: &str = "
CREATE TABLE layout(
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    cluster TEXT NOT NULL
);";
    in_words_of_postgresql(&format!("{LAYOUT}{tables}"))
}

/// What makes tables and indexes, for a server.
pub(crate) fn in_words_of_postgresql(tables: &str) -> String {
    tables
        .replace("\n    id INTEGER PRIMARY KEY", "\n    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        .replace(" INTEGER", " BIGINT")
        .replace(" TEXT", " TEXT COLLATE \"C\"")
        .replace(" BLOB", " BYTEA")
        .replace(" WITHOUT ROWID", "")
}

/// The names of all tables.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split('(').next())
}
