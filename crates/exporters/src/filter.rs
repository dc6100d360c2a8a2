//! Which records an exporter gets.

use std::collections::BTreeMap;

use protocol::{Record, RecordType, ValueType};

use crate::arguments::relaxed;
use crate::{Arguments, ExporterError};

/// Facts or refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// `EVENT`
    Event,
    /// `COMMAND_REJECTION`
    Rejection,
}

impl RecordKind {
    const ALL: [RecordKind; 2] = [RecordKind::Event, RecordKind::Rejection];

    fn of(record: &Record) -> RecordKind {
        match record.record_type {
            RecordType::Event => RecordKind::Event,
            RecordType::Rejection(_) => RecordKind::Rejection,
        }
    }
}

/// The kinds as settings name them, and whether there are such records here.
const KINDS: [(&str, Option<RecordKind>); 4] = [
    ("event", Some(RecordKind::Event)),
    ("rejection", Some(RecordKind::Rejection)),
    ("commandRejection", Some(RecordKind::Rejection)),
    // Commands are in the log alone.
    ("command", None),
];

/// Lets through records of certain kinds, value types and intents. The default lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    refused_kinds: Vec<RecordKind>,
    refused_types: Vec<u8>,
    /// Of the value types that are named, these intents alone.
    intents: BTreeMap<u8, Vec<String>>,
    /// What the arguments ask for by name.
    wanted_kinds: Vec<RecordKind>,
    wanted_types: Vec<u8>,
}

impl RecordFilter {
    /// Lets only these kinds through.
    #[must_use]
    pub fn only_kinds(mut self, kinds: impl IntoIterator<Item = RecordKind>) -> Self {
        let kinds: Vec<RecordKind> = kinds.into_iter().collect();
        self.refused_kinds.extend(RecordKind::ALL.into_iter().filter(|kind| !kinds.contains(kind)));
        self
    }

    /// Lets only these value types through.
    #[must_use]
    pub fn only_value_types(mut self, types: impl IntoIterator<Item = ValueType>) -> Self {
        let types: Vec<ValueType> = types.into_iter().collect();
        self.refused_types.extend(ValueType::ALL.iter().filter(|of| !types.contains(of)).map(|of| *of as u8));
        self
    }

    /// Of a value type, lets only these intents through.
    #[must_use]
    pub fn only_intents(mut self, of: ValueType, intents: impl IntoIterator<Item = String>) -> Self {
        self.intents.entry(of as u8).or_default().extend(intents);
        self
    }

    /// Of what the arguments do not ask for by name, lets only this through.
    #[must_use]
    pub fn with_defaults(mut self, kinds: &[RecordKind], types: &[ValueType]) -> Self {
        let is_kind = |kind: &RecordKind| kinds.contains(kind) || self.wanted_kinds.contains(kind);
        let is_type = |of: &ValueType| types.contains(of) || self.wanted_types.contains(&(*of as u8));
        self.refused_kinds.extend(RecordKind::ALL.into_iter().filter(|kind| !is_kind(kind)));
        self.refused_types.extend(ValueType::ALL.iter().filter(|of| !is_type(of)).map(|of| *of as u8));
        self
    }

    /// Whether the exporter may get records of a value type.
    pub fn accepts_value_type(&self, of: ValueType) -> bool {
        !of.intent_names().is_empty() && !self.refused_types.contains(&(of as u8))
    }

    /// Whether the exporter gets this record.
    pub fn accepts(&self, record: &Record) -> bool {
        let of = record.payload.value_type() as u8;
        !self.refused_types.contains(&of)
            && (self.refused_kinds.is_empty() || !self.refused_kinds.contains(&RecordKind::of(record)))
            && self.intents.get(&of).is_none_or(|intents| {
                let name = record.payload.intent_name();
                intents.iter().any(|intent| intent == name)
            })
    }

    /// Narrows it by the arguments that every exporter has, under the names of the reference's exporters:
    /// - `index.event`, `index.rejection`, `index.<value type>`: `false` leaves these records out;
    /// - `enabledRecordTypes`, `enabledValueTypes`: lists, and all others are left out;
    /// - `enabledIntents`: `JOB=CREATED,COMPLETED;INCIDENT=CREATED`; of these value types, other intents are left out.
    ///
    /// What the exporter calls its own below `index` stays for it.
    ///
    /// # Errors
    /// When something is named that there is not.
    pub fn with_arguments(self, arguments: &mut Arguments, own: &[&str]) -> Result<RecordFilter, ExporterError> {
        let mut filter = self;
        if let Some(mut index) = arguments.take_group("index")? {
            let is_own = |name: &String| own.iter().any(|own| relaxed(own) == relaxed(name));
            for name in index.names().into_iter().filter(|name| !is_own(name)) {
                let is_on = index.take_switch(&name)?;
                filter.switch(&name, is_on == Some(true), &index)?;
            }
            arguments.put_back("index", index);
        }
        if let Some(names) = arguments.take_words("enabledRecordTypes")? {
            let kinds = names.iter().map(|name| enabled_kind(name, arguments)).collect::<Result<Vec<_>, _>>()?;
            some("enabledRecordTypes", &kinds, arguments)?;
            filter.wanted_kinds.extend(&kinds);
            filter = filter.only_kinds(kinds);
        }
        if let Some(names) = arguments.take_words("enabledValueTypes")? {
            let types = names.iter().map(|name| of_name("enabledValueTypes", name, arguments));
            let types = types.collect::<Result<Vec<_>, _>>()?;
            some("enabledValueTypes", &types, arguments)?;
            filter.wanted_types.extend(types.iter().map(|of| *of as u8));
            filter = filter.only_value_types(types);
        }
        if let Some(text) = arguments.take_text("enabledIntents")? {
            let parts: Vec<&str> = text.split(';').filter(|part| !part.trim().is_empty()).collect();
            some("enabledIntents", &parts, arguments)?;
            for part in parts {
                let problem = "must be like JOB=CREATED,COMPLETED;INCIDENT=CREATED";
                let (name, intents) = part.split_once('=').ok_or_else(|| arguments.error("enabledIntents", problem))?;
                let of = of_name("enabledIntents", name.trim(), arguments)?;
                let intents = intents.split(',').map(str::trim).filter(|intent| !intent.is_empty());
                let intents =
                    intents.map(|intent| intent_name(of, intent, arguments)).collect::<Result<Vec<_>, _>>()?;
                if intents.is_empty() {
                    let problem = format!("names no intent of {}, so that none would be let through", of.name());
                    return Err(arguments.error("enabledIntents", &problem));
                }
                filter = filter.only_intents(of, intents);
            }
        }
        filter.check(arguments)?;
        Ok(filter)
    }

    /// Refuses a filter that lets nothing through.
    pub(crate) fn check(&self, arguments: &Arguments) -> Result<(), ExporterError> {
        if !self.refuses_everything() {
            return Ok(());
        }
        let problem = "and the other filters leave out every record; let some through, or remove the exporter";
        Err(arguments.error("index", problem))
    }

    fn refuses_everything(&self) -> bool {
        // Of the others there are no records.
        let mut types = ValueType::ALL.iter().filter(|of| !of.intent_names().is_empty());
        RecordKind::ALL.iter().all(|kind| self.refused_kinds.contains(kind))
            || types.all(|of| self.refused_types.contains(&(*of as u8)))
    }

    fn switch(&mut self, name: &str, is_on: bool, arguments: &Arguments) -> Result<(), ExporterError> {
        let (kinds, types) = match is_on {
            true => (&mut self.wanted_kinds, &mut self.wanted_types),
            false => (&mut self.refused_kinds, &mut self.refused_types),
        };
        match kind(name) {
            Some(kind) => kinds.extend(kind),
            None => types.push(of_name(name, name, arguments)? as u8),
        }
        Ok(())
    }
}

/// The kind with a name: none inside when there are no records of it.
fn kind(name: &str) -> Option<Option<RecordKind>> {
    KINDS.iter().find(|(known, _)| relaxed(known) == relaxed(name)).map(|(_, kind)| *kind)
}

/// The value type with a name, however it is written: `PROCESS_INSTANCE`, `processInstance`, `ProcessInstanceIntent`.
fn of_name(argument: &str, name: &str, arguments: &Arguments) -> Result<ValueType, ExporterError> {
    let wanted = relaxed(name);
    let wanted = wanted.strip_suffix("intent").unwrap_or(&wanted);
    let found = ValueType::ALL.iter().find(|of| relaxed(of.name()) == wanted);
    found.copied().ok_or_else(|| {
        let problem = format!("names '{name}', and there is no such value type; one is PROCESS_INSTANCE");
        arguments.error(argument, &problem)
    })
}

/// The kind that `enabledRecordTypes` names.
fn enabled_kind(name: &str, arguments: &Arguments) -> Result<RecordKind, ExporterError> {
    let problem = match kind(name) {
        Some(Some(kind)) => return Ok(kind),
        Some(None) => format!("names '{name}', and commands are not exported; there are EVENT and COMMAND_REJECTION"),
        None => format!("names '{name}', and there is no such record type; there are EVENT and COMMAND_REJECTION"),
    };
    Err(arguments.error("enabledRecordTypes", &problem))
}

/// The intent of a value type with a name, however it is written.
fn intent_name(of: ValueType, name: &str, arguments: &Arguments) -> Result<String, ExporterError> {
    let known = of.intent_names();
    if let Some(found) = known.iter().find(|known| relaxed(known) == relaxed(name)) {
        return Ok((*found).to_owned());
    }
    let of = of.name();
    let problem = match known {
        [] => format!("names '{name}' of {of}, and there are no records of this value type; leave it out"),
        known => {
            format!("names '{name}', and {of} has no such intent; there are {}", known.join(", "))
        }
    };
    Err(arguments.error("enabledIntents", &problem))
}

/// Refuses an empty list: it would let nothing through.
fn some<T>(argument: &str, list: &[T], arguments: &Arguments) -> Result<(), ExporterError> {
    if list.is_empty() {
        let problem = "is empty, so that no record would be let through; name what is wanted, or leave it out for all";
        return Err(arguments.error(argument, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{IncidentIntent, JobIntent, Key, Payload, Rejection};
    use serde_json::{Value, json};

    use super::*;

    fn filter(arguments: Value) -> Result<RecordFilter, ExporterError> {
        let Value::Object(values) = arguments else { panic!("a mapping") };
        let mut arguments = Arguments::new("debug", values);
        let filter = RecordFilter::default().with_arguments(&mut arguments, &["prefix"])?;
        arguments.finish("nothing else")?;
        Ok(filter)
    }

    /// Which of a created job, a failed job, an incident and a refusal pass.
    fn passing(arguments: Value) -> [bool; 4] {
        let filter = filter(arguments).expect("right");
        let job = |intent| Record::event(1, 0, Key::NONE, Payload::Job(intent, Arc::default()));
        let incident = Record::event(1, 0, Key::NONE, Payload::Incident(IncidentIntent::Created, Box::default()));
        let refusal =
            Record { record_type: RecordType::Rejection(Rejection::not_found("gone")), ..job(JobIntent::Fail) };
        [job(JobIntent::Created), job(JobIntent::Failed), incident, refusal].map(|record| filter.accepts(&record))
    }

    #[test]
    fn records_pass_by_kind_type_and_intent() {
        assert_eq!(passing(json!({})), [true; 4]);
        assert_eq!(
            passing(json!({"index": {"rejection": false, "command": true, "job": true}})),
            [true, true, true, false]
        );
        assert_eq!(passing(json!({"index": {"incident": false, "processInstance": false}})), [true, true, false, true]);
        assert_eq!(passing(json!({"enabledRecordTypes": "EVENT"})), [true, true, true, false]);
        assert_eq!(passing(json!({"enabled-value-types": ["INCIDENT"]})), [false, false, true, false]);
        assert_eq!(passing(json!({"enabledIntents": "JobIntent=CREATED, fail,"})), [true, false, true, true]);
    }

    #[test]
    fn defaults_give_way_to_what_is_asked_for() {
        let accepted = |arguments: Value| {
            let filter = filter(arguments).expect("right").with_defaults(&[RecordKind::Event], &[ValueType::Job]);
            [ValueType::Job, ValueType::Incident, ValueType::Timer].map(|of| filter.accepts_value_type(of))
        };
        assert_eq!(accepted(json!({})), [true, false, false]);
        assert_eq!(accepted(json!({"index": {"incident": true}})), [true, true, false]);
        assert_eq!(accepted(json!({"enabledValueTypes": "TIMER"})), [false, false, true]);
        let refusal = Rejection::not_found("gone");
        let job = Record::event(1, 0, Key::NONE, Payload::Job(JobIntent::Fail, Arc::default()));
        let refused = Record { record_type: RecordType::Rejection(refusal), ..job };
        let rejections = |arguments: Value| {
            let filter = filter(arguments).expect("right");
            filter.with_defaults(&[RecordKind::Event], ValueType::ALL).accepts(&refused)
        };
        assert!(!rejections(json!({})) && rejections(json!({"index": {"rejection": true}})));
    }

    #[test]
    fn what_an_exporter_calls_its_own_stays_for_it() {
        let Value::Object(values) = json!({"index": {"prefix": "x", "job": false}}) else { unreachable!() };
        let mut arguments = Arguments::new("debug", values);
        RecordFilter::default().with_arguments(&mut arguments, &["prefix"]).expect("right");
        let mut index = arguments.take_group("index").expect("a mapping").expect("there");
        assert_eq!((index.take_text("PREFIX").expect("a text").as_deref(), index.names().len()), (Some("x"), 0));
        let refused = filter(json!({"index": {"prefixes": "x"}})).expect_err("nobody's").to_string();
        assert!(refused.contains("'index.prefixes'"), "{refused}");
    }

    #[test]
    fn a_filter_that_lets_nothing_through_is_refused() {
        let every_type: serde_json::Map<String, Value> =
            ValueType::ALL.iter().map(|of| (of.name().to_owned(), Value::Bool(false))).collect();
        for (arguments, part) in [
            (json!({"enabledRecordTypes": []}), "'enabledRecordTypes' of the exporter 'debug' is empty"),
            (json!({"enabledValueTypes": " , "}), "'enabledValueTypes' of the exporter 'debug' is empty"),
            (json!({"enabledIntents": ";"}), "'enabledIntents' of the exporter 'debug' is empty"),
            (json!({"enabledIntents": "JOB=;INCIDENT=CREATED"}), "names no intent of JOB"),
            (json!({"enabledRecordTypes": "EVENT,COMMAND"}), "names 'COMMAND', and commands are not exported"),
            (
                json!({"enabledIntents": "VARIABLE=CREATED,DONE"}),
                "names 'DONE', and VARIABLE has no such intent; there are CREATED, UPDATED, MIGRATED",
            ),
            (json!({"enabledIntents": "SCALE=DONE"}), "there are no records of this value type"),
            (json!({"enabledValueTypes": "SCALE"}), "leave out every record"),
            (json!({"index": {"event": false, "rejection": false}}), "leave out every record"),
            (json!({"index": every_type}), "leave out every record"),
        ] {
            let error = filter(arguments).expect_err("nothing would pass").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_does_not_exist_is_refused_by_name() {
        for (arguments, part) in [
            (
                json!({"index": {"jobs": false}}),
                "'index.jobs' of the exporter 'debug' names 'jobs', and there is no such value",
            ),
            (json!({"index": {"job": 1}}), "'index.job' of the exporter 'debug' must be true or false"),
            (json!({"enabledRecordTypes": "FACT"}), "names 'FACT', and there is no such record type"),
            (json!({"enabledIntents": "CREATED"}), "must be like JOB=CREATED"),
        ] {
            let error = filter(arguments).expect_err("wrong").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
