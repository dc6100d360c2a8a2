//! Where settings come from.

use std::collections::BTreeMap;
use std::path::Path;

use figment::Figment;
use figment::providers::{Format, Yaml};
use figment::value::{Dict, Value};
use protocol::GlobalListenerValue;
use serde_json::{Map, Value as Json};

use super::{ConfigurationError, ExporterConfiguration, SETTINGS, global_listeners, unknown};

const EXPORTERS: &str = "exporters";
const GLOBAL_LISTENERS: &str = "global-listeners";
/// May be one value, or an object of the settings whose names begin like this.
const READ_MODEL: &str = "read-model";
/// What names of variables about exporters begin with, here and on the reference; a later one overrides an earlier one.
pub(super) const EXPORTERS_VARIABLES: [&str; 3] =
    ["CAMUNDA_DATA_EXPORTERS_", "ZEEBE_BROKER_EXPORTERS_", "OSMIA_EXPORTERS_"];

/// Variables of the process, read once.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    /// By name without underscores, so that users may split names into words as they like.
    relaxed: BTreeMap<String, String>,
}

impl Environment {
    pub(crate) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables: BTreeMap<_, _> = variables.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let relaxed = variables.iter().map(|(name, value)| (relaxed(name), value.clone())).collect();
        Environment { variables, relaxed }
    }

    /// The variables of this process; those that are not text cannot be settings.
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(text))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

/// A name without underscores, in capitals.
pub(super) fn relaxed(name: &str) -> String {
    name.chars().filter(|character| *character != '_').map(|character| character.to_ascii_uppercase()).collect()
}

/// Flags, environment and file.
pub(crate) struct Sources {
    flags: BTreeMap<&'static str, String>,
    environment: Environment,
    file: BTreeMap<String, String>,
    file_exporters: BTreeMap<String, Map<String, Json>>,
    file_global_listeners: Vec<Json>,
}

/// No configuration is larger. What is nested takes the square of its depth to be read.
const FILE_BYTES_MAX: usize = 64 << 10;

/// A key at the top that is there twice. Of such the library takes the last one and says nothing.
fn repeated_key(text: &str) -> Option<&str> {
    let mut seen = std::collections::BTreeSet::new();
    let keys = text.lines().filter(|line| line.starts_with(|first: char| first.is_alphanumeric()));
    keys.filter_map(|line| line.split_once(':')).map(|(key, _)| key.trim_end()).find(|key| !seen.insert(*key))
}

impl Sources {
    /// Reads the file, when there is one, and refuses keys that mean nothing.
    pub(crate) fn new(
        flags: BTreeMap<&'static str, String>,
        environment: Environment,
        file: Option<&Path>,
    ) -> Result<Self, ConfigurationError> {
        let mut sources = Sources {
            flags,
            environment,
            file: BTreeMap::new(),
            file_exporters: BTreeMap::new(),
            file_global_listeners: Vec::new(),
        };
        if let Some(path) = file {
            sources.read_file(path)?;
        }
        Ok(sources)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), ConfigurationError> {
        let failed = |reason: String| ConfigurationError::File { path: path.to_owned(), reason };
        if !path.is_file() {
            return Err(failed("there is no such file".to_owned()));
        }
        let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        if text.len() > FILE_BYTES_MAX {
            return Err(failed(format!("it has {} bytes, but at most {FILE_BYTES_MAX} are possible", text.len())));
        }
        let text = String::from_utf8(text).map_err(|error| failed(format!("it is no UTF-8: {error}")))?;
        if let Some(key) = repeated_key(&text) {
            return Err(failed(format!("it has the key '{key}' more than once")));
        }
        let content: Dict = Figment::from(Yaml::string(&text)).extract().map_err(|error| failed(error.to_string()))?;
        for (key, value) in content {
            if key == EXPORTERS {
                for (name, settings) in value.as_dict().ok_or_else(|| failed(no_object(EXPORTERS)))? {
                    let Ok(Json::Object(settings)) = serde_json::to_value(settings) else {
                        return Err(failed(no_object(&format!("{EXPORTERS}.{name}"))));
                    };
                    self.file_exporters.insert(name.clone(), settings);
                }
            } else if key == GLOBAL_LISTENERS {
                let listeners = serde_json::to_value(&value).unwrap_or_default();
                self.file_global_listeners = global_listeners::of_file(listeners).map_err(failed)?;
            } else if let (READ_MODEL, Some(parts)) = (&*key, value.as_dict()) {
                for (part, value) in parts {
                    let name = if part == "type" { READ_MODEL.to_owned() } else { format!("{READ_MODEL}-{part}") };
                    self.take(path, &format!("{READ_MODEL}.{part}"), &name, value)?;
                }
            } else {
                self.take(path, &key, &key, &value)?;
            }
        }
        Ok(())
    }

    /// The value of a setting, which the file has under this key.
    fn take(&mut self, path: &Path, key: &str, name: &str, value: &Value) -> Result<(), ConfigurationError> {
        let failed = |reason: String| ConfigurationError::File { path: path.to_owned(), reason };
        if !SETTINGS.iter().any(|setting| setting.name == name) {
            let known: Vec<_> =
                SETTINGS.iter().map(|setting| setting.name).chain([EXPORTERS, GLOBAL_LISTENERS]).collect();
            let (path, known) = (path.to_owned(), known.join(", "));
            return Err(ConfigurationError::UnknownKey { path, key: key.to_owned(), known });
        }
        let text = scalar(value).ok_or_else(|| failed(format!("'{key}' must have a single value")))?;
        match self.file.insert(name.to_owned(), text) {
            None => Ok(()),
            Some(_) => Err(failed(format!("it says '{name}' more than once"))),
        }
    }

    /// The value of a setting, if any source has one.
    pub(crate) fn get<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Result<Option<T>, ConfigurationError> {
        let Some((origin, value)) = self.find(name) else { return Ok(None) };
        match read(value) {
            Ok(value) => Ok(Some(value)),
            Err(expected) => Err(ConfigurationError::Value { origin, value: value.to_owned(), expected }),
        }
    }

    /// Every setting that some source has: its name, that source, and the value.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, String, &str)> {
        SETTINGS.iter().filter_map(|setting| {
            let (origin, value) = self.find(setting.name)?;
            Some((setting.name, origin, value))
        })
    }

    /// What is set, and where it says so.
    pub(super) fn find(&self, name: &'static str) -> Option<(String, &str)> {
        if let Some(value) = self.flags.get(name) {
            return Some((format!("--{name}"), value));
        }
        let setting = SETTINGS.iter().find(|setting| setting.name == name)?;
        let own = setting.variable();
        if let Some(value) = self.environment.get(&own) {
            return Some((own, value));
        }
        for camunda in setting.camunda {
            if let Some(value) = self.environment.relaxed.get(&relaxed(camunda)) {
                return Some(((*camunda).to_owned(), value));
            }
        }
        self.file.get(name).map(|value| (format!("'{name}' in the configuration file"), value.as_str()))
    }

    /// Variables that look like settings and are none; refuses those that ask for protection.
    pub(crate) fn unknown_variables(&self, is_encrypted: bool) -> Result<Vec<String>, ConfigurationError> {
        unknown::unknown(&self.environment, is_encrypted)
    }

    /// The first of these variables of Camunda that is set, however it is split into words.
    pub(super) fn variable_of(&self, names: &[&'static str]) -> Option<(String, String)> {
        names.iter().find_map(|name| Some(((*name).to_owned(), self.environment.relaxed.get(&relaxed(name))?.clone())))
    }

    /// The listeners of the user tasks of all processes that the file defines.
    pub(crate) fn global_listeners(&self) -> Result<Vec<GlobalListenerValue>, ConfigurationError> {
        global_listeners::read(&self.file_global_listeners)
    }

    /// The exporters of the file, completed and overridden by variables such as `OSMIA_EXPORTERS_<NAME>_<SETTING>`.
    pub(crate) fn exporters(&self) -> Result<BTreeMap<String, ExporterConfiguration>, ConfigurationError> {
        let of_file = self.file_exporters.iter().map(|(name, settings)| (name.clone(), flat(settings.clone())));
        let mut all: BTreeMap<String, Map<String, Json>> = of_file.collect();
        for prefix in EXPORTERS_VARIABLES {
            for (name, settings) in self.exporters_of_variables(prefix) {
                let same = all.keys().find(|known| known.eq_ignore_ascii_case(&name)).cloned();
                merge(all.entry(same.unwrap_or(name)).or_default(), flat(settings));
            }
        }
        let typed = |(name, mut settings): (String, Map<String, Json>)| match settings.remove("type") {
            Some(Json::String(kind)) => Ok((name, ExporterConfiguration { kind, settings })),
            _ => Err(ConfigurationError::NoExporterType { name }),
        };
        all.into_iter().map(typed).collect()
    }

    fn exporters_of_variables(&self, prefix: &str) -> BTreeMap<String, Map<String, Json>> {
        let mut all: BTreeMap<String, Map<String, Json>> = BTreeMap::new();
        for (variable, value) in &self.environment.variables {
            let Some(rest) = variable.strip_prefix(prefix) else { continue };
            let lower = rest.to_ascii_lowercase();
            let Some((name, setting)) = lower.split_once('_') else { continue };
            set(all.entry(name.to_owned()).or_default(), setting, value);
        }
        all
    }
}

/// The settings of an exporter as they are written here. The reference's form has the class instead of the type, what the
/// exporter is told below `args`, and the file that the class comes from, which there is no use for.
fn flat(mut settings: Map<String, Json>) -> Map<String, Json> {
    if let Some(class) = remove_relaxed(&mut settings, "className") {
        settings.entry("type").or_insert(class);
    }
    remove_relaxed(&mut settings, "jarPath");
    if let Some(Json::Object(arguments)) = settings.remove("args") {
        settings.extend(arguments);
    }
    settings
}

/// Lets settings override others, however their names are written.
fn merge(into: &mut Map<String, Json>, from: Map<String, Json>) {
    for (name, value) in from {
        match (remove_relaxed(into, &name), value) {
            (Some(Json::Object(mut earlier)), Json::Object(later)) => {
                merge(&mut earlier, later);
                into.insert(name, Json::Object(earlier));
            }
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// Takes out a setting of an exporter, however its name is written.
fn remove_relaxed(settings: &mut Map<String, Json>, name: &str) -> Option<Json> {
    let plain = |name: &str| relaxed(&name.replace('-', "_"));
    let found = settings.keys().find(|key| plain(key) == plain(name))?.clone();
    settings.remove(&found)
}

/// Sets a value at a path of names that are joined by underscores.
fn set(settings: &mut Map<String, Json>, path: &str, value: &str) {
    match path.split_once('_') {
        Some((first, rest)) => {
            let nested = settings.entry(first).or_insert_with(|| Json::Object(Map::new()));
            if !nested.is_object() {
                *nested = Json::Object(Map::new());
            }
            if let Json::Object(nested) = nested {
                set(nested, rest, value);
            }
        }
        None => {
            // Numbers and booleans are recognized, everything else is text.
            let json = match serde_json::from_str(value) {
                Ok(json @ (Json::Number(_) | Json::Bool(_))) => json,
                _ => Json::String(value.to_owned()),
            };
            settings.insert(path.to_owned(), json);
        }
    }
}

fn no_object(key: &str) -> String {
    format!("'{key}' must be a mapping")
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(_, text) => Some(text.clone()),
        Value::Bool(_, switch) => Some(switch.to_string()),
        Value::Num(_, _) => value
            .to_i128()
            .map(|number| number.to_string())
            .or_else(|| value.to_u128().map(|number| number.to_string()))
            .or_else(|| value.to_f64().map(|number| number.to_string())),
        _ => None,
    }
}
