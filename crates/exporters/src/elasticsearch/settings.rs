//! The arguments of the exporter, under the names of the reference's exporters.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use protocol::ValueType;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem};

use super::date_pattern::DatePattern;
use crate::{Arguments, Context, ExporterError, RecordKind};

/// What of `index` is no switch of records.
pub(super) const INDEX_ARGUMENTS: &[&str] = &[
    "prefix",
    "indexSuffixDatePattern",
    "createTemplate",
    "numberOfShards",
    "numberOfReplicas",
    "templatePriority",
    "refreshInterval",
];
const KNOWN: &str = "'url', 'requestTimeoutMs', 'index', 'bulk', 'retention', 'authentication', 'security', 'rejected', \
                     'includeEnabledRecords', 'enabledRecordTypes', 'enabledValueTypes' and 'enabledIntents'";
/// A bulk may be so large. Servers take 100 MiB unless they are told otherwise.
const BULK_BYTES_MAX: u64 = 100 << 20;
/// A bulk may hold so many records.
const BULK_RECORDS_MAX: u64 = 100_000;
/// So many bulks of a partition may be under way.
const IN_FLIGHT_MAX: u64 = 16;
/// An answer may be waited for so long.
const REQUEST_TIMEOUT_MAX_MILLISECONDS: u64 = 600_000;
const SHARDS_MAX: u64 = 1_024;
const REPLICAS_MAX: u64 = 100;
const TEMPLATE_PRIORITY_MAX: u64 = 1_000_000;
/// The smallest file of rejected records.
const REJECTED_BYTES_MIN: u64 = 64 << 10;
/// The pause after a first failure, and the longest one: each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// What is sent unless the arguments ask for more: what other programs that read these indices cannot do without.
const REQUIRED: &[ValueType] = &[
    ValueType::Deployment,
    ValueType::Process,
    ValueType::Incident,
    ValueType::Variable,
    ValueType::ProcessInstance,
    ValueType::UserTask,
    ValueType::Job,
];
/// What `includeEnabledRecords` does not turn on, beside the value types that are ours alone.
const LEFT_OUT: &[ValueType] = &[
    ValueType::JobBatch,
    ValueType::MessageBatch,
    ValueType::ProcessInstanceBatch,
    ValueType::ProcessEvent,
    ValueType::Checkpoint,
    ValueType::AsyncRequest,
    ValueType::BatchOperationCreation,
    ValueType::BatchOperationExecution,
    ValueType::BatchOperationChunk,
    ValueType::BatchOperationLifecycleManagement,
    ValueType::BatchOperationPartitionLifecycle,
    ValueType::BatchOperationInitialization,
];
/// The codes of value types that are ours alone.
const OURS: std::ops::RangeInclusive<u8> = 200..=252;

/// What the exporter was told.
#[derive(Debug)]
pub(super) struct Settings {
    /// Addresses of the nodes, without a slash at the end.
    pub urls: Vec<String>,
    /// How long an answer is waited for.
    pub request_timeout: Duration,
    /// The value of the header `authorization`.
    pub authorization: Option<String>,
    /// Who is trusted; none for the usual authorities.
    pub certificates: Option<Vec<Certificate<'static>>>,
    pub index: Arc<IndexSettings>,
    pub bulk: BulkSettings,
    pub retention: Option<Retention>,
    pub rejected: RejectedSettings,
    /// The pause after a first failure, and the longest one.
    pub pauses: (Duration, Duration),
}

/// What becomes of records that the target refuses for what is in them.
#[derive(Debug)]
pub(super) struct RejectedSettings {
    /// Where they are written.
    pub path: PathBuf,
    /// The size of the file at which the next one begins.
    pub bytes_max: u64,
    /// Whether they are kept when most are refused, and not set aside.
    pub stops_when_many: bool,
}

/// How indices are named and made.
#[derive(Debug)]
pub(super) struct IndexSettings {
    pub prefix: String,
    pub suffix: DatePattern,
    pub creates_templates: bool,
    pub shards: Option<u64>,
    pub replicas: Option<u64>,
    pub template_priority: u64,
    pub refresh_interval: Option<String>,
}

/// When a bulk is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct BulkSettings {
    /// It holds so many records,
    pub records: usize,
    /// or so many bytes,
    pub bytes: usize,
    /// or this time has passed since the last one was sent.
    pub delay: Duration,
    /// So many of a partition may be under way.
    pub in_flight: usize,
}

/// How old indices go.
#[derive(Debug)]
pub(super) struct Retention {
    /// Or it is to be undone: it may have been on before.
    pub is_enabled: bool,
    pub minimum_age: String,
    pub policy: String,
    /// Whether the exporter makes the policy, or somebody else does.
    pub is_managed: bool,
}

impl Settings {
    /// Takes the arguments, and narrows the filter to what is sent unless they ask for more.
    pub fn take(context: &mut Context) -> Result<Settings, ExporterError> {
        let arguments = &mut context.arguments;
        let urls = urls(arguments)?;
        let timeout = arguments.take_number("requestTimeoutMs", 1..=REQUEST_TIMEOUT_MAX_MILLISECONDS)?;
        let settings = Settings {
            urls,
            request_timeout: Duration::from_millis(timeout.unwrap_or(30_000)),
            authorization: authorization(arguments)?,
            certificates: certificates(arguments)?,
            index: Arc::new(index(arguments)?),
            bulk: bulk(arguments)?,
            retention: retention(arguments)?,
            rejected: rejected(&context.name, &context.directory, arguments)?,
            pauses: PAUSES,
        };
        let includes_enabled = arguments.take_switch("includeEnabledRecords")?.unwrap_or(false);
        let is_usual = |of: &&ValueType| !LEFT_OUT.contains(of) && !OURS.contains(&(**of as u8));
        let types = match includes_enabled {
            true => ValueType::ALL.iter().filter(is_usual).copied().collect(),
            false => REQUIRED.to_vec(),
        };
        context.filter = std::mem::take(&mut context.filter).with_defaults(&[RecordKind::Event], &types);
        context.filter.check(arguments)?;
        std::mem::take(arguments).finish(KNOWN)?;
        Ok(settings)
    }
}

/// Lets something take the arguments of a group, and refuses what it leaves.
fn group<T>(
    arguments: &mut Arguments,
    name: &str,
    known: &str,
    take: impl FnOnce(&mut Arguments) -> Result<T, ExporterError>,
) -> Result<T, ExporterError> {
    let mut group = match arguments.take_group(name)? {
        Some(group) => group,
        None => arguments.empty_group(name),
    };
    let taken = take(&mut group)?;
    group.finish(known)?;
    Ok(taken)
}

fn urls(arguments: &mut Arguments) -> Result<Vec<String>, ExporterError> {
    let urls = arguments.take_words("url")?.unwrap_or_else(|| vec!["http://localhost:9200".to_owned()]);
    let problem = |url: &str| {
        let Ok(uri) = url.parse::<Uri>() else { return Some("is no address") };
        match (uri.scheme_str(), uri.authority()) {
            (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
                Some("has a user in it; set authentication.username and authentication.password instead")
            }
            (Some("http" | "https"), Some(_)) if uri.query().is_some() => Some("has a query"),
            (Some("http" | "https"), Some(_)) => None,
            _ => Some("is no address"),
        }
    };
    if urls.is_empty() {
        return Err(arguments.error("url", "must be one or more addresses, such as http://localhost:9200"));
    }
    for url in &urls {
        if let Some(problem) = problem(url) {
            // A password may be in it, so it is not repeated.
            let problem = format!("{problem}; it must be one or more addresses such as http://localhost:9200");
            return Err(arguments.error("url", &problem));
        }
    }
    Ok(urls.into_iter().map(|url| url.trim_end_matches('/').to_owned()).collect())
}

fn authorization(arguments: &mut Arguments) -> Result<Option<String>, ExporterError> {
    const KNOWN: &str = "'username', 'password' and 'apiKey'";
    group(arguments, "authentication", KNOWN, |group| {
        let username = group.take_text("username")?;
        // Of the environment, a password of digits comes as a number.
        let password = match group.take("password") {
            Some(serde_json::Value::Number(number)) => Some(number.to_string()),
            Some(serde_json::Value::String(text)) if !text.is_empty() => Some(text),
            None => None,
            Some(_) => return Err(group.error("password", "must be a text that is not empty")),
        };
        let key = group.take_text("apiKey")?;
        match (username, password, key) {
            (None, None, None) => Ok(None),
            (Some(username), Some(password), None) if !username.contains(':') => {
                Ok(Some(format!("Basic {}", BASE64_STANDARD.encode(format!("{username}:{password}")))))
            }
            (Some(_), Some(_), None) => Err(group.error("username", "must not contain a colon")),
            (None, None, Some(key)) if key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Some(format!("ApiKey {key}")))
            }
            (None, None, Some(_)) => Err(group.error("apiKey", "must be the encoded key, in one word")),
            (Some(_), None, None) => Err(group.error("password", "is missing, and there is a user name")),
            (None, Some(_), None) => Err(group.error("username", "is missing, and there is a password")),
            (_, _, Some(_)) => {
                Err(group.error("apiKey", "and a user name or password cannot both count; leave one out"))
            }
        }
    })
}

fn certificates(arguments: &mut Arguments) -> Result<Option<Vec<Certificate<'static>>>, ExporterError> {
    group(arguments, "security", "'certificatePath'", |group| {
        let Some(path) = group.take_text("certificatePath")? else { return Ok(None) };
        let failed = |problem: String| group.error("certificatePath", &problem);
        let pem =
            std::fs::read(&path).map_err(|error| failed(format!("names {path}, which cannot be read: {error}")))?;
        let mut certificates = Vec::new();
        for item in ureq::tls::parse_pem(&pem) {
            match item {
                Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
                Ok(_) => {}
                Err(error) => return Err(failed(format!("names {path}, which is no PEM file: {error}"))),
            }
        }
        if certificates.is_empty() {
            return Err(failed(format!("names {path}, and there is no certificate in it; it must be a PEM file")));
        }
        Ok(Some(certificates))
    })
}

fn index(arguments: &mut Arguments) -> Result<IndexSettings, ExporterError> {
    group(arguments, "index", "the value types", |group| {
        let prefix = group.take_text("prefix")?.unwrap_or_else(|| "zeebe-record".to_owned());
        if let Some(problem) = prefix_problem(&prefix) {
            return Err(group.error("prefix", problem));
        }
        let pattern = group.take_text("indexSuffixDatePattern")?.unwrap_or_else(|| "yyyy-MM-dd".to_owned());
        let suffix = DatePattern::parse(&pattern).map_err(|problem| group.error("indexSuffixDatePattern", problem))?;
        Ok(IndexSettings {
            prefix,
            suffix,
            creates_templates: group.take_switch("createTemplate")?.unwrap_or(true),
            shards: group.take_number("numberOfShards", 1..=SHARDS_MAX)?,
            replicas: group.take_number("numberOfReplicas", 0..=REPLICAS_MAX)?,
            template_priority: group.take_number("templatePriority", 0..=TEMPLATE_PRIORITY_MAX)?.unwrap_or(20),
            refresh_interval: group.take_text("refreshInterval")?,
        })
    })
}

/// What is wrong with a prefix, as the rest of the sentence. The delimiter of the parts of an index must not be in it.
fn prefix_problem(prefix: &str) -> Option<&'static str> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if prefix.contains('_') {
        Some("must not contain '_', which separates the parts of an index's name")
    } else if prefix.len() > 100 || !prefix.bytes().all(allowed) {
        Some("must be at most 100 lower-case letters, digits, '-' and '.'")
    } else if prefix.starts_with(['-', '.']) {
        Some("must begin with a letter or a digit")
    } else {
        None
    }
}

fn bulk(arguments: &mut Arguments) -> Result<BulkSettings, ExporterError> {
    group(arguments, "bulk", "'size', 'memoryLimit', 'delay' and 'inFlight'", |group| {
        let bytes = group.take_bytes("memoryLimit")?.unwrap_or(10 << 20);
        if bytes == 0 || bytes > BULK_BYTES_MAX {
            return Err(group.error("memoryLimit", &format!("must be from 1 to {BULK_BYTES_MAX} bytes")));
        }
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(BulkSettings {
            records: size(group.take_number("size", 1..=BULK_RECORDS_MAX)?.unwrap_or(1_000)),
            bytes: size(bytes),
            delay: group.take_duration("delay")?.unwrap_or(Duration::from_secs(5)),
            in_flight: size(group.take_number("inFlight", 1..=IN_FLIGHT_MAX)?.unwrap_or(2)),
        })
    })
}

fn retention(arguments: &mut Arguments) -> Result<Option<Retention>, ExporterError> {
    group(arguments, "retention", "'enabled', 'minimumAge', 'policyName' and 'managePolicy'", |group| {
        let enabled = group.take_switch("enabled")?;
        let minimum_age = group.take_text("minimumAge")?.unwrap_or_else(|| "30d".to_owned());
        let is_age = minimum_age
            .strip_suffix(['d', 'h', 'm', 's'])
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_age {
            return Err(group.error("minimumAge", "must be a number with one of the units d, h, m and s, such as 30d"));
        }
        let policy = group.take_text("policyName")?.unwrap_or_else(|| "zeebe-record-retention-policy".to_owned());
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if policy.starts_with('_') || policy.len() > 255 || !policy.bytes().all(allowed) {
            let problem = "must be at most 255 letters, digits, '-', '_' and '.', and not begin with '_'";
            return Err(group.error("policyName", problem));
        }
        let is_managed = group.take_switch("managePolicy")?.unwrap_or(true);
        Ok(enabled.map(|is_enabled| Retention { is_enabled, minimum_age, policy, is_managed }))
    })
}

fn rejected(
    name: &str,
    directory: &std::path::Path,
    arguments: &mut Arguments,
) -> Result<RejectedSettings, ExporterError> {
    group(arguments, "rejected", "'path', 'maxFileSize' and 'stopWhenMany'", |group| {
        let path = group.take_text("path")?.map(PathBuf::from);
        let bytes = group.take_bytes("maxFileSize")?.unwrap_or(100 << 20);
        if bytes < REJECTED_BYTES_MIN {
            return Err(group.error("maxFileSize", &format!("must be at least {REJECTED_BYTES_MIN} bytes")));
        }
        Ok(RejectedSettings {
            path: path.unwrap_or_else(|| directory.join(format!("{name}.rejected.jsonl"))),
            bytes_max: bytes,
            stops_when_many: group.take_switch("stopWhenMany")?.unwrap_or(true),
        })
    })
}
