//! `osmia settings`: what a node can be told, and what it would be told here, without starting one.

use std::borrow::Cow;
use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::arguments::Start;
use crate::configuration::{Configuration, Environment, SETTINGS, Sources};
use crate::outcome::Outcome;
use crate::output::{Output, print_line};

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print a configuration file with every setting, its meaning, default and variables, all as comments.
    Template,
    /// Check the flags, the environment and the file as a start does, and print what is set and where.
    Check(Box<CheckArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    start: Start,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: SettingsCommand) -> Outcome {
    match command {
        SettingsCommand::Template => Ok(print_line(template())?),
        SettingsCommand::Check(arguments) => check(*arguments),
    }
}

fn check(CheckArguments { start, json }: CheckArguments) -> Outcome {
    let file = start.config.clone();
    let sources = Sources::new(start.settings(), Environment::of_process(), file.as_deref())?;
    let configuration = Configuration::read(&sources)?;
    crate::node::check(&configuration)?;
    let (mut text, mut settings, mut exporters, mut global_listeners) =
        (Vec::new(), Map::new(), Map::new(), Map::new());
    for (name, origin, value) in sources.all() {
        let value = without_password(value);
        text.push(format!("{name}: {value}    # {origin}"));
        settings.insert(name.to_owned(), json!({ "value": value, "origin": origin }));
    }
    for (name, exporter) in &configuration.exporters {
        let settings = without_secrets(&Value::Object(exporter.settings.clone()));
        text.push(format!("exporter {name}: {} {settings}", exporter.kind));
        exporters.insert(name.clone(), json!({ "type": exporter.kind, "settings": settings }));
    }
    for listener in &configuration.global_listeners {
        let settings = json!({
            "eventTypes": listener.event_types, "retries": listener.retries,
            "afterNonGlobal": listener.after_non_global, "priority": listener.priority,
        });
        text.push(format!("global listener {}: {} {settings}", listener.id, listener.job_type));
        global_listeners.insert(listener.id.to_string(), json!({ "type": listener.job_type, "settings": settings }));
    }
    let unknown = &configuration.unknown_variables;
    text.extend(unknown.iter().map(|name| format!("{name} means nothing to this version")));
    let warnings = crate::node::warnings(&configuration);
    text.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
    if text.is_empty() {
        text.push("everything has its default".to_owned());
    }
    let output = Output::new(json);
    let whole = || {
        json!({
            "settings": settings, "exporters": exporters, "globalListeners": global_listeners, "unknownVariables": unknown,
            "warnings": warnings,
        })
    };
    Ok(output.say(text.join("\n"), whole)?)
}

/// What the template shows of settings that have no default, or none of one word.
const EXAMPLES: [(&str, &str); 15] = [
    ("initial-members", "0=10.0.0.1:26502,1=10.0.0.2:26502,2=10.0.0.3:26502"),
    ("cluster-port", "26502"),
    ("advertised-address", "osmia-0.example.com"),
    ("shutdown-drain", "2s"),
    ("allowed-hosts", "'osmia.example.com, *.svc.cluster.local'"),
    ("disk-free-space-low", "1GB"),
    ("disk-reserve", "64MB"),
    ("write-throttle-backlog", "100000"),
    ("read-model-url", "postgresql://osmia@localhost:5432/osmia"),
    ("read-model-keep-completed", "30d"),
    ("read-model-keep-terminated", "30d"),
    ("read-model-audit-anonymous", "all"),
    ("connections-max", "16384"),
    ("tls-certificate", "./server.pem"),
    ("tls-key", "./server-key.pem"),
];

/// Parts of the names of settings that only who sets them should know.
const SECRETS: [&str; 4] = ["password", "secret", "token", "apikey"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    SECRETS.iter().any(|secret| name.contains(secret))
}

/// Settings of an exporter without what lets others in.
fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match value {
                Value::String(_) | Value::Number(_) if is_secret(name) => (name.clone(), Value::from("***")),
                value => (name.clone(), without_secrets(value)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::String(text) => Value::from(without_password(text)),
        other => other.clone(),
    }
}

/// A value that may be an address with a password, behind the user or in the query.
fn without_password(value: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = value.split_once("://") else { return value.into() };
    let names_secret =
        |query: &str| query.split(['&', '?']).any(|part| part.split_once('=').is_some_and(|(name, _)| is_secret(name)));
    // Whether what is before the last '@' is a user or a part of the query cannot be told: rather too much is hidden than too little.
    if rest
        .rsplit_once('@')
        .and_then(|(before, _)| before.split_once('?'))
        .is_some_and(|(_, query)| names_secret(query))
    {
        return format!("{scheme}://***").into();
    }
    // The last '@': a password may hold others.
    let with_user = |(user, host): (&str, &str)| Some(format!("{}:***@{host}", user.split_once(':')?.0));
    let rest = rest.rsplit_once('@').and_then(with_user).map_or(Cow::from(rest), Cow::from);
    let Some((address, query)) = rest.split_once('?') else { return format!("{scheme}://{rest}").into() };
    let parameter = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=***"),
        _ => parameter.to_owned(),
    };
    let query: Vec<_> = query.split('&').map(parameter).collect();
    format!("{scheme}://{address}?{}", query.join("&")).into()
}

/// The file, without a line end at its end.
fn template() -> String {
    let flags = Start::augment_args(clap::Command::new("start"));
    let mut text = String::from(
        "# Settings of a node. Flags have the same names and go before variables of the environment, and those before this file.\n\
         # What is not set has its default.\n",
    );
    for setting in SETTINGS {
        let flag = flags.get_arguments().find(|flag| flag.get_long() == Some(setting.name));
        let help = flag.and_then(clap::Arg::get_help).map(ToString::to_string).unwrap_or_default();
        let (meaning, default) = match help.split_once(" [default: ") {
            Some((meaning, default)) => (meaning.to_owned(), default.split(']').next().map(str::to_owned)),
            None => (help, None),
        };
        let _ = write!(text, "\n# {meaning}.");
        if let Some(default) = &default {
            let _ = write!(text, " Default: {default}.");
        }
        let variables: Vec<_> = std::iter::once(setting.variable())
            .chain(setting.camunda.iter().map(|&variable| variable.to_owned()))
            .collect();
        let _ = write!(text, "\n# {}\n#{}:", variables.join(", "), setting.name);
        // A default that is more than one word is described above, and a switch is off.
        let is_switch = flag.is_some_and(|flag| !flag.get_action().takes_values());
        let value = default.filter(|default| !default.contains(' ')).or(is_switch.then(|| "false".to_owned()));
        let example = EXAMPLES.iter().find(|(name, _)| *name == setting.name).map(|(_, example)| (*example).to_owned());
        let value = value.or(example).unwrap_or_default();
        let _ = writeln!(text, " {value}");
    }
    text.push_str(
        "\n# What gets the records of all partitions, by names of your choice.\n#exporters:\n#  audit:\n#    type: json-lines\n\
         #    path: ./records.jsonl\n#  search:\n#    type: elasticsearch\n#    url: http://localhost:9200\n\
         #    bulk:\n#      delay: 1s\n\n# Listeners of the user tasks of all processes, besides those that clients define.\n#global-listeners:\n\
         #  user-task:\n#  - id: audit\n#    type: audit-log\n#    event-types: [all]",
    );
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_a_start_would_refuse_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("osmia.yaml");
        let checked = |exporter: &str| {
            std::fs::write(&file, format!("exporters:\n  a: {exporter}\n")).expect("a file");
            let sources = Sources::new(BTreeMap::new(), Environment::default(), Some(&file)).expect("it is read");
            crate::node::check(&Configuration::read(&sources).expect("the rest is right"))
                .map_err(|error| error.to_string())
        };
        for right in [
            "{type: json-lines, path: r.jsonl}",
            "{type: elasticsearch, bulk: {delay: 100ms}, index: {prefix: records, job: false}}",
            "{type: opensearch}",
            "{className: io.camunda.zeebe.exporter.ElasticsearchExporter, args: {url: 'http://a:9200', bulk: {delay: 1}}}",
            "{class-name: io.camunda.zeebe.exporter.opensearch.OpensearchExporter}",
        ] {
            assert_eq!(checked(right), Ok(()), "{right}");
        }
        for wrong in [
            "{type: json-lines}",
            "{type: kafka}",
            "{type: json-lines, path: r.jsonl, nonsense: 1}",
            "{type: opensearch, url: nowhere}",
        ] {
            assert!(checked(wrong).unwrap_err().contains('a'), "{wrong}");
        }
        let shared = checked("{type: json-lines, path: r.jsonl}\n  b: {type: json-lines, path: ./r.jsonl}");
        assert!(shared.unwrap_err().contains("which the exporter 'a' writes too"));
    }

    /// What a check says with these flags.
    fn checked(flags: &[(&'static str, &str)]) -> Result<(), String> {
        let flags = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let sources = Sources::new(flags, Environment::default(), None).expect("it is read");
        crate::node::check(&Configuration::read(&sources).expect("each is right")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_certificate_that_no_node_could_use_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().to_str().expect("text");
        let file = |name: &str| format!("{}/tests/tls/{name}.pem", env!("CARGO_MANIFEST_DIR"));
        let with = |certificate: &str, key: &str| {
            checked(&[("data", data), ("tls-certificate", &file(certificate)), ("tls-key", &file(key))])
        };
        assert_eq!(with("certificate", "key"), Ok(()));
        let missing = with("nowhere", "key").unwrap_err();
        assert!(missing.contains("Cannot read the TLS file") && missing.contains("nowhere.pem"), "{missing}");
        let swapped = with("certificate", "certificate").unwrap_err();
        assert!(swapped.contains("must belong to the certificate"), "{swapped}");
    }

    #[test]
    fn a_host_where_no_node_could_listen_is_refused() {
        assert_eq!(checked(&[("host", "127.0.0.1")]), Ok(()));
        assert!(checked(&[("host", "no host")]).unwrap_err().contains("The host 'no host' is not known"));
    }

    /// They are checked for the next start while the node of the present one runs.
    #[test]
    fn a_port_that_somebody_listens_on_is_no_mistake() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = other.local_addr().expect("bound").port().to_string();
        assert_eq!(checked(&[("host", "127.0.0.1"), ("grpc-port", &port)]), Ok(()));
    }

    #[test]
    fn partitions_that_the_data_does_not_have_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        let path = data.to_str().expect("text");
        assert_eq!(checked(&[("data", path), ("partitions", "5")]), Ok(()));
        assert!(!data.exists(), "a check makes nothing");
        let options = broker::NodeOptions { data_directory: data.clone(), partition_count: 2, ..Default::default() };
        let node = broker::Node::start(options).expect("it starts");
        assert_eq!(checked(&[("data", path), ("partitions", "2")]), Ok(()), "also while it runs");
        node.stop().expect("it stops");
        assert_eq!(checked(&[("data", path)]), Ok(()));
        let other = checked(&[("data", path), ("partitions", "5")]).unwrap_err();
        assert!(other.contains("was made with partition count 2, and it cannot be changed to 5"), "{other}");
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("postgresql://osmia:p@ss@db:1/x"), "postgresql://osmia:***@db:1/x");
        for (given, shown) in [
            (
                "postgresql://db:1/x?user=a&password=p&sslmode=require",
                "postgresql://db:1/x?user=a&password=***&sslmode=require",
            ),
            ("postgresql://db:1/x?user=a&password=p@ss&sslmode=require", "postgresql://***"),
            ("postgresql://db/x?password=p@ss", "postgresql://***"),
            ("postgresql://osmia:p?password=x@db", "postgresql://***"),
            ("postgresql://osmia:a?b@db/x?connect_timeout=3", "postgresql://osmia:***@db/x?connect_timeout=3"),
        ] {
            assert_eq!(without_password(given), shown);
        }
        for same in ["postgresql://db/x", "postgresql://osmia@db/x", "info", "http://a:9200"] {
            assert_eq!(without_password(same), same);
        }
        let authentication = json!({ "username": "osmia", "password": "p", "ApiKey": "k" });
        let exporter = json!({ "url": ["http://u:p@a:9200"], "authentication": authentication, "bulk": { "size": 5 } });
        assert_eq!(
            without_secrets(&json!({ "password": 12345, "tokens": { "size": 5 } })),
            json!({ "password": "***", "tokens": { "size": 5 } })
        );
        let shown = json!({ "username": "osmia", "password": "***", "ApiKey": "***" });
        let shown = json!({ "url": ["http://u:***@a:9200"], "authentication": shown, "bulk": { "size": 5 } });
        assert_eq!(without_secrets(&exporter), shown);
    }

    #[test]
    fn the_template_is_a_file_that_may_be_used_as_it_is_and_without_its_marks() {
        let text = template();
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("osmia.yaml");
        let read = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            let sources = Sources::new(BTreeMap::new(), Environment::default(), Some(&file)).expect("it is read");
            Configuration::read(&sources).expect("it is right")
        };
        // YAML takes a file of comments for no mapping at all, so one setting is given.
        let nothing = read(&format!("{text}\ndemo: true\n"));
        assert!(nothing.demo && nothing.exporters.is_empty() && nothing.global_listeners.is_empty());
        let with_defaults: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ') || rest.starts_with("  ")))
            // SQLite has no URL, and a node that others cannot reach is in no cluster.
            .filter(|line| !line.starts_with("read-model-url:") && !line.starts_with("initial-members:"))
            .collect();
        let all = read(&with_defaults.join("\n"));
        assert_eq!((all.grpc_port, all.management_port, all.exporters.len()), (26_500, 9_600, 2));
        assert_eq!(all.global_listeners.iter().map(|listener| &*listener.id).collect::<Vec<_>>(), ["audit"]);
        for setting in SETTINGS {
            assert!(text.contains(&format!("\n#{}: ", setting.name)), "{} is missing", setting.name);
        }
        assert!(!text.contains("# .\n"), "a setting without a meaning:\n{text}");
    }
}
