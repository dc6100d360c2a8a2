//! The fields of exported records, which consumers rely on: `data/exported_fields.tsv` has them by value type. A field that
//! disappears fails this test, and so does one that is added without being written down there.

mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use protocol::*;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

const EXPORTED_FIELDS: &str = include_str!("data/exported_fields.tsv");
/// The row of what all records have.
const EVERY_RECORD: &str = "(every record)";

/// The names of the fields of a JSON value, those of inner objects behind the names that lead to them. A name that comes twice
/// in one object is an error: consumers take one of them or refuse the record.
#[derive(Default)]
struct Fields(BTreeSet<String>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = BTreeSet::new();
        while let Some((name, Fields(inner))) = map.next_entry::<String, Fields>()? {
            fields.extend(inner.iter().map(|inner| format!("{name}.{inner}")));
            if !fields.insert(name.clone()) {
                return Err(A::Error::custom(format!("the field '{name}' comes twice")));
            }
        }
        Ok(Fields(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Fields, A::Error> {
        let mut fields = BTreeSet::new();
        while let Some(Fields(inner)) = items.next_element()? {
            fields.extend(inner);
        }
        Ok(Fields(fields))
    }

    fn visit_unit<E>(self) -> Result<Fields, E> {
        Ok(Fields::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Fields, E> {
        Ok(Fields::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Fields, E> {
        Ok(Fields::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Fields, E> {
        Ok(Fields::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Fields, E> {
        Ok(Fields::default())
    }
}

/// The fields of the values by their types, and those of the records around them.
fn exported() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut rows = BTreeMap::<_, BTreeSet<String>>::new();
    for record in samples::records() {
        let value_type = record.payload.value_type().name();
        let json = record.to_json(&RecordSource::new(PartitionId(1))).expect("valid");
        let Fields(fields) =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{value_type}: {error}: {json}"));
        for field in fields {
            match field.strip_prefix("value.") {
                Some(field) => rows.entry(value_type).or_default().insert(field.to_owned()),
                None => rows.entry(EVERY_RECORD).or_default().insert(field),
            };
        }
    }
    rows
}

fn written(rows: &BTreeMap<&str, BTreeSet<String>>) -> String {
    let mut text = "value type\tfields\n".to_owned();
    for (value_type, fields) in rows {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        writeln!(text, "{value_type}\t{}", fields.join(" ")).expect("writing into a text does not fail");
    }
    text
}

#[test]
fn exported_records_have_the_fields_that_are_written_down() {
    let exported = exported();
    let rows = EXPORTED_FIELDS.lines().skip(1).map(|row| row.split_once('\t').expect("two columns"));
    let kept: BTreeMap<&str, BTreeSet<String>> =
        rows.map(|(value_type, fields)| (value_type, fields.split(' ').map(str::to_owned).collect())).collect();
    let none = BTreeSet::new();
    for value_type in exported.keys().chain(kept.keys()) {
        let now = exported.get(value_type).unwrap_or(&none);
        let before = kept.get(value_type).unwrap_or(&none);
        let gone: Vec<_> = before.difference(now).collect();
        let new: Vec<_> = now.difference(before).collect();
        assert!(gone.is_empty(), "{value_type}: consumers may rely on {gone:?}, which must stay");
        assert!(new.is_empty(), "{value_type}: {new:?} must be written down (write_the_exported_fields does it)");
    }
    assert_eq!(EXPORTED_FIELDS, written(&exported), "one row for each value type, in their order");
}

#[test]
fn there_is_a_sample_of_every_value_type_that_has_records() {
    let sampled: BTreeSet<&str> = samples::records().iter().map(|record| record.payload.value_type().name()).collect();
    let with_records = ValueType::ALL.iter().filter(|value_type| !value_type.intent_names().is_empty());
    assert_eq!(sampled, with_records.map(|value_type| value_type.name()).collect());
}

/// Every text of every sample in turn is JSON with line breaks. Whatever of it is exported as JSON must come on one line: those who
/// write a line for each record write what a client made up as a record otherwise.
#[test]
fn a_record_is_one_line_whatever_breaks_there_are_in_the_json_of_clients() {
    const BROKEN: &str = "{\"x\":\n{\"position\":1,\r\n\"y\":\"\\n\"\r}\n}";
    /// As it is encoded.
    const EMPTY_TEXT: u8 = 0x60;
    const JOINED: &str = r#"{"x": {"position":1,  "y":"\n" } }"#;
    let source = RecordSource::new(PartitionId(1));
    let broken = minicbor::to_vec(BROKEN).expect("writing into memory");
    let mut json_values = 0;
    for record in samples::records() {
        let encoded = encode_to_vec(&record);
        for (place, _) in encoded.iter().enumerate().filter(|(_, byte)| **byte == EMPTY_TEXT) {
            let bytes = [&encoded[..place], &broken, &encoded[place + 1..]].concat();
            // The byte may be a part of something else.
            let Ok(record) = decode::<Record>(&bytes) else { continue };
            let mut out = b"before\n".to_vec();
            record.write_json(&source, &mut out).expect("valid");
            let line = out.strip_prefix(b"before\n").expect("what was there stays");
            assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "{}", String::from_utf8_lossy(line));
            serde_json::from_slice::<IgnoredAny>(line).expect("JSON");
            let line = std::str::from_utf8(line).expect("a text");
            assert_eq!(record.to_json(&source).expect("valid"), line);
            json_values += usize::from(line.contains(JOINED));
        }
    }
    assert!(json_values >= 25, "{json_values} values are exported as JSON");
}

#[test]
fn a_field_that_comes_twice_is_found() {
    for twice in [r#"{"a":1,"a":2}"#, r#"{"a":[{"b":"x","b":"y"}]}"#] {
        let error = serde_json::from_str::<Fields>(twice).err().expect("an error").to_string();
        assert!(error.contains("comes twice"), "{twice}: {error}");
    }
    serde_json::from_str::<IgnoredAny>(r#"{"a":1,"a":2}"#).expect("readers of JSON do not see it");
}

/// After a field was added. None may be taken out.
#[test]
#[ignore = "writes files of the source"]
fn write_the_exported_fields() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exported_fields.tsv");
    std::fs::write(file, written(&exported())).expect("writable");
}
