//! Which exporters a node has.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::elasticsearch::Flavour;
use crate::{Elasticsearch, Exporter, ExporterError, JsonLines, RecordFilter};

/// Makes an exporter.
pub type ExporterFactory = Arc<dyn Fn() -> Box<dyn Exporter> + Send + Sync>;

const KNOWN_CLASSES: &str = "json-lines, elasticsearch and opensearch";

/// One exporter of a node.
#[derive(Clone)]
pub struct ExporterConfiguration {
    /// Its name, in messages, metrics and the files that keep its positions: letters, digits, `-` and `_`.
    pub name: String,
    /// Makes it.
    pub factory: ExporterFactory,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The records it gets.
    pub filter: RecordFilter,
}

impl ExporterConfiguration {
    /// An exporter of the given class: by its name here, or by that of the reference's exporter that does the same. Of a dotted
    /// name, the last part counts.
    ///
    /// # Errors
    /// When the class or the name is not possible.
    pub fn of_class(name: &str, class: &str, arguments: Map<String, Value>) -> Result<Self, ExporterError> {
        let factory: ExporterFactory = match class.rsplit('.').next() {
            Some("JsonLines") => Arc::new(|| Box::new(JsonLines::default())),
            Some("Elasticsearch" | "ElasticsearchExporter") => {
                Arc::new(|| Box::new(Elasticsearch::new(Flavour::Elasticsearch)))
            }
            Some("Opensearch" | "OpensearchExporter") => Arc::new(|| Box::new(Elasticsearch::new(Flavour::OpenSearch))),
            _ => {
                let (name, class) = (name.to_owned(), class.to_owned());
                return Err(ExporterError::UnknownClass { name, class, known: KNOWN_CLASSES });
            }
        };
        Self::of_factory(name, factory, arguments)
    }

    /// An exporter of the caller's own making.
    ///
    /// # Errors
    /// When the name is not possible.
    pub fn of_factory(
        name: &str,
        factory: ExporterFactory,
        arguments: Map<String, Value>,
    ) -> Result<Self, ExporterError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
            let problem = "must be 1 to 64 letters, digits, '-' or '_', because it names a file; choose another name";
            return Err(ExporterError::argument(name, "name", problem));
        }
        Ok(ExporterConfiguration { name: name.to_owned(), factory, arguments, filter: RecordFilter::default() })
    }
}

impl fmt::Debug for ExporterConfiguration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExporterConfiguration")
            .field("name", &self.name)
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}
