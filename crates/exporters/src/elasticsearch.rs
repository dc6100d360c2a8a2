//! Exporters to Elasticsearch and OpenSearch: every record a document, in indices with the names, the form and the numbers that
//! Zeebe's exporters give them, for whoever reads these.
//!
//! A document has the same name whenever it is sent, so what is sent twice is there once. A partition has a few bulks under way
//! at the same time; each is tried until everything in it is taken, or set aside in a file because the target refuses it for
//! what is in it.

mod answer;
mod bulk;
mod client;
mod date_pattern;
mod lane;
mod look;
mod metrics;
mod partition;
mod refusals;
mod rejected;
mod schema;
mod sequence;
mod settings;

use std::sync::Arc;

use protocol::{PartitionId, ValueType};

use crate::{Context, Exporter, ExporterError, PartitionExporter, WrittenFile};
use client::Client;
use look::Look;
use partition::ElasticsearchPartition;
use rejected::RejectedFile;
use schema::Schema;
use settings::{INDEX_ARGUMENTS, Settings};

/// Which of the two it is. They differ in how old indices are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Elasticsearch,
    OpenSearch,
}

/// Sends records to Elasticsearch or OpenSearch.
pub struct Elasticsearch {
    flavour: Flavour,
    /// Once it is configured.
    target: Option<Arc<Target>>,
}

/// What all partitions share.
struct Target {
    name: String,
    settings: Settings,
    client: Client,
    schema: Schema,
    rejected: RejectedFile,
    look: Look,
}

impl Elasticsearch {
    pub(crate) fn new(flavour: Flavour) -> Elasticsearch {
        Elasticsearch { flavour, target: None }
    }
}

impl Exporter for Elasticsearch {
    fn index_arguments(&self) -> &'static [&'static str] {
        INDEX_ARGUMENTS
    }

    fn configure(&mut self, context: &mut Context) -> Result<(), ExporterError> {
        let settings = Settings::take(context)?;
        let types = ValueType::ALL.iter().copied().filter(|of| context.filter.accepts_value_type(*of)).collect();
        self.target = Some(Arc::new(Target {
            name: context.name.clone(),
            client: Client::new(&settings),
            schema: Schema::new(self.flavour, types),
            rejected: RejectedFile::new(settings.rejected.path.clone(), settings.rejected.bytes_max),
            look: Look::default(),
            settings,
        }));
        Ok(())
    }

    fn files(&self, _last: PartitionId) -> Vec<WrittenFile> {
        let path = |target: &Arc<Target>| target.rejected.path().to_owned();
        let written = |path| WrittenFile { argument: "rejected.path", path, numbered: 1 };
        self.target.iter().map(path).map(written).collect()
    }

    fn partition(&self, partition: PartitionId) -> Box<dyn PartitionExporter> {
        let target = self.target.clone().expect("an exporter is configured before it is used");
        Box::new(ElasticsearchPartition::new(target, partition))
    }
}

#[cfg(test)]
mod tests;
