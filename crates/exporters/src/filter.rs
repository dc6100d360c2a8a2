//! Which records an exporter gets.

use protocol::{Record, RecordType};

/// Facts or refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// `EVENT`
    Event,
    /// `COMMAND_REJECTION`
    Rejection,
}

impl RecordKind {
    fn of(record: &Record) -> RecordKind {
        match record.record_type {
            RecordType::Event => RecordKind::Event,
            RecordType::Rejection(_) => RecordKind::Rejection,
        }
    }
}

/// Lets through records of certain kinds and value types. The default lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    kinds: Option<Vec<RecordKind>>,
    value_types: Option<Vec<String>>,
}

impl RecordFilter {
    /// Lets only these kinds through.
    #[must_use]
    pub fn only_kinds(mut self, kinds: impl IntoIterator<Item = RecordKind>) -> Self {
        self.kinds = Some(kinds.into_iter().collect());
        self
    }

    /// Lets only these value types through, by their names in the record schema, for example `JOB`.
    #[must_use]
    pub fn only_value_types(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.value_types = Some(names.into_iter().collect());
        self
    }

    /// Whether the exporter gets this record.
    pub fn accepts(&self, record: &Record) -> bool {
        let kind = self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&RecordKind::of(record)));
        let name = record.payload.value_type().name();
        kind && self.value_types.as_ref().is_none_or(|names| names.iter().any(|wanted| wanted == name))
    }
}
