//! A PostgreSQL server: how it is reached, and the tables of a partition there.
//!
//! Each partition has a schema of its own, with the tables that a file of SQLite has. So the same statements mean the same rows,
//! keys of partitions do not meet, and partitions do not wait for each other.

use std::sync::Arc;
use std::time::Duration;

use protocol::{PartitionId, RecordPlace};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use timed_postgres::config::SslMode;
use timed_postgres::error::SqlState;
use timed_postgres::{Config, Connection};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::postgresql::{Session, is_away};
use super::{Bound, Database, Error, Result};
use crate::file::is_being_made;
use crate::migration::Format;
use crate::schema::{in_words_of_postgresql, tables_of_postgresql};

/// How long it takes to find out that nobody is there.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a statement of the fold may take before the server is taken for one that stands still.
const WRITER_TIME_MAX: Duration = Duration::from_secs(60);
/// The same while tables are brought to another format.
const MAKING_TIME_MAX: Duration = Duration::from_secs(1_800);
/// A peer that says nothing for so long is asked whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// What was sent and arrives nowhere for so long ends the connection.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(15);
/// What a session is told that writes. A node that stands still in a transaction holds up its successor no longer than that.
const WRITER: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '30s'; SET jit = off";
/// What a session is told that reads: plans are made for the values that are asked for.
const READER: &str = "SET default_transaction_read_only = on; SET jit = off; SET plan_cache_mode = force_custom_plan";
/// With the number of the partition, the lock of those who make its tables.
const MAKING: i64 = 0x4F53_4D52 << 16;

/// Why a server cannot be what searches read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what each field is")]
pub enum ServerError {
    /// The address means nothing.
    #[error("{0}")]
    Address(String),
    /// It is not there.
    #[error("the PostgreSQL server {server} cannot be used: {reason}")]
    Session { server: String, reason: String },
    /// It refuses, and will until somebody changes something.
    #[error(
        "the PostgreSQL server {server} refuses: {reason}. Correct the user, the password and the database in read-model-url, or \
         create them there and let the user create schemas"
    )]
    Refused { server: String, reason: String },
    /// What is in it is of something else.
    #[error("the schema {schema} of the PostgreSQL server {server} {problem}")]
    Other { server: String, schema: String, problem: String },
}

impl ServerError {
    /// Whether nothing gets better until an operator changes something.
    pub fn needs_operator(&self) -> bool {
        !matches!(self, ServerError::Session { .. })
    }
}

/// What a look at a server came to in which nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// It can be used, and what is in it is of this cluster, as far as the node knows its cluster already.
    Usable {
        /// Whether the node knows it.
        is_cluster_known: bool,
    },
    /// It is not there, or not now.
    Away,
}

/// A server.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    /// Host and database, for sentences.
    pub name: String,
}

impl Server {
    /// The one that a URL names: `postgresql://user:password@host:port/database`, with `sslmode` and `sslrootcert` as usual.
    pub fn at(url: &str) -> std::result::Result<Server, ServerError> {
        if !["postgresql://", "postgres://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(ServerError::Address("It must begin with postgresql://".to_owned()));
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut rest, mut mode, mut root) = (Vec::new(), "disable", None);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", value)) => root = Some(value),
                _ => rest.push(part),
            }
        }
        let wrong = |error| ServerError::Address(timed_postgres::Error::Said(error).to_string());
        let mut config: Config = format!("{address}?{}", rest.join("&")).parse().map_err(wrong)?;
        let tls = match mode {
            "disable" => None,
            "require" | "verify-ca" | "verify-full" => Some(encryption(root)?),
            other => {
                return Err(ServerError::Address(format!(
                    "sslmode is {other}, but it must be disable (as without it) or verify-full"
                )));
            }
        };
        config
            .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable })
            .connect_timeout(CONNECT_TIME_MAX)
            .keepalives_idle(KEEPALIVE_IDLE)
            .tcp_user_timeout(UNACKNOWLEDGED_TIME_MAX);
        if config.get_application_name().is_none() {
            config.application_name("osmia");
        }
        // Without user and password.
        let name = address
            .rsplit_once('@')
            .map_or_else(|| address.split_once("//").map_or(address, |(_, behind)| behind), |(_, behind)| behind);
        Ok(Server { config, tls, name: name.to_owned() })
    }

    fn connect(&self, time_max: Duration) -> Result<Session> {
        Ok(Session::new(Connection::open(&self.config, self.tls.as_ref(), time_max)?))
    }

    /// A session for searches, which is there within a limit.
    pub fn reader(&self, time_max: Duration) -> Result<Session> {
        let session = self.connect(time_max.min(CONNECT_TIME_MAX))?;
        session.run(READER)?;
        Ok(session)
    }

    /// A session that writes the tables of a partition, which are made or brought to the present format, and up to where they
    /// were written. Only nodes of this cluster may.
    pub fn writer(
        &self,
        partition: PartitionId,
        cluster: &str,
    ) -> std::result::Result<(Database, RecordPlace), ServerError> {
        self.writer_in_format(&Format::PRESENT, partition, cluster)
    }

    /// As [`Server::writer`], in another format.
    pub fn writer_in_format(
        &self,
        format: &Format,
        partition: PartitionId,
        cluster: &str,
    ) -> std::result::Result<(Database, RecordPlace), ServerError> {
        let schema = schema_of(partition);
        let opened = self.opened(format, &schema, partition, cluster).map_err(|error| self.error_of(&error))?;
        opened.map_err(|problem| ServerError::Other { server: self.name.clone(), schema, problem })
    }

    /// Looks whether it lets the node in, and whether what is in it is of the cluster, as far as that is known.
    pub fn look(
        &self,
        partitions: impl Iterator<Item = PartitionId>,
        cluster: Option<&str>,
    ) -> std::result::Result<Looked, ServerError> {
        let looked = self.connect(CONNECT_TIME_MAX).and_then(|session| {
            let database = Database::PostgreSql(Box::new(session));
            for partition in partitions {
                let schema = schema_of(partition);
                if let Some(problem) = cluster.map(|of| problem_of(&database, &schema, of)).transpose()?.flatten() {
                    return Ok(Some(ServerError::Other { server: self.name.clone(), schema, problem }));
                }
            }
            Ok(None)
        });
        match looked.map_err(|error| self.error_of(&error)) {
            Ok(None) => Ok(Looked::Usable { is_cluster_known: cluster.is_some() }),
            Err(ServerError::Session { .. }) => Ok(Looked::Away),
            Ok(Some(error)) | Err(error) => Err(error),
        }
    }

    fn error_of(&self, error: &Error) -> ServerError {
        let (server, reason) = (self.name.clone(), error.to_string());
        if error.needs_operator() {
            ServerError::Refused { server, reason }
        } else {
            ServerError::Session { server, reason }
        }
    }

    fn opened(
        &self,
        format: &Format,
        schema: &str,
        partition: PartitionId,
        cluster: &str,
    ) -> Result<std::result::Result<(Database, RecordPlace), String>> {
        let session = self.connect(CONNECT_TIME_MAX)?;
        session.run(WRITER)?;
        session.set_time_max(WRITER_TIME_MAX);
        session.turn_to(schema)?;
        let database = Database::PostgreSql(Box::new(session));
        let Database::PostgreSql(session) = &database else { unreachable!("it was just made") };
        let transaction = database.begin()?;
        // Until the end of the transaction: another node may begin at the same time.
        let lock = [Bound::Integer(MAKING + i64::from(partition.0))];
        database.query("SELECT pg_advisory_xact_lock(?)::text", &lock, |_| Ok(()))?;
        let exists = database.first("SELECT 1 FROM pg_namespace WHERE nspname = ?", &[schema.into()], |_| Ok(()))?;
        if exists.is_none() {
            session.run(&format!("CREATE SCHEMA {schema}; {}", tables_of_postgresql(&format.tables)))?;
            database.execute("INSERT INTO layout VALUES (1, ?, ?)", &[format.version.into(), cluster.into()])?;
            database.execute("INSERT INTO place VALUES (1, ?, 0, 0, 0)", &[partition.0.into()])?;
        }
        let select = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'layout'";
        if database.first(select, &[schema.into()], |_| Ok(()))?.is_none() {
            return Ok(Err(
                "was written by a development build before format 1 of the read model, which no version reads. Use an \
                           empty database, or drop the schema"
                    .to_owned(),
            ));
        }
        let select = "SELECT version, cluster FROM layout";
        let layout = database.first(select, &[], |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))?;
        let Some((version, of)) = layout else { return Ok(Err("has no format".to_owned())) };
        if let Some(problem) = problem_with(format, version, &of, cluster) {
            return Ok(Err(problem));
        }
        // Who is writing the older format has done so before the steps look at its rows.
        database.query("SELECT 1 FROM place FOR UPDATE", &[], |_| Ok(()))?;
        // New indexes may be made of many rows.
        session.set_time_max(MAKING_TIME_MAX);
        for (_, step) in format.steps_from(version) {
            session.run(&in_words_of_postgresql(step))?;
        }
        database.execute("UPDATE layout SET version = ? WHERE version <> ?1", &[format.version.into()])?;
        let place = database.first("SELECT incarnation, position, number FROM place", &[], |row| {
            let unsigned = |column| row.get::<i64>(column).map(i64::unsigned_abs);
            Ok(RecordPlace { incarnation: unsigned(0)?, position: unsigned(1)?, number: unsigned(2)? })
        })?;
        let Some(place) = place else { return Ok(Err("has no place".to_owned())) };
        transaction.commit()?;
        session.set_time_max(WRITER_TIME_MAX);
        session.fence(place);
        Ok(Ok((database, place)))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why this node must not write the tables of a schema, if there are any.
fn problem_of(database: &Database, schema: &str, cluster: &str) -> Result<Option<String>> {
    let select = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'layout'";
    if database.first(select, &[schema.into()], |_| Ok(()))?.is_none() {
        return Ok(None);
    }
    let select = format!("SELECT version, cluster FROM {schema}.layout");
    let format = database.first(&select, &[], |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))?;
    Ok(format.and_then(|(version, of)| problem_with(&Format::PRESENT, version, &of, cluster)))
}

fn problem_with(format: &Format, version: i64, of: &str, cluster: &str) -> Option<String> {
    if of != cluster {
        return Some(format!(
            "is the read model of the cluster {of}, but this node is of the cluster {cluster}. Each cluster needs a database of its own"
        ));
    }
    let is_reached = format.is_reached_from(version);
    (!is_reached).then(|| format!("has the format {version}, and this version has {}", format.version))
}

/// Where the tables of a partition are.
pub(crate) fn schema_of(partition: PartitionId) -> String {
    format!("osmia_{partition}")
}

impl Error {
    /// Whether it stays so until somebody changes something: who may come in, what there is, and what is allowed.
    pub fn needs_operator(&self) -> bool {
        let Error::PostgreSql(error) = self else { return false };
        let is_refusal = error.code().is_some_and(|code| {
            matches!(code.code().get(..2), Some("28" | "3D")) || *code == SqlState::INSUFFICIENT_PRIVILEGE
        });
        is_refusal || error.is_of_configuration()
    }

    /// Whether another time may be better.
    pub fn is_away(&self) -> bool {
        match self {
            Error::PostgreSql(error) => is_away(error),
            Error::Sqlite(error) => is_being_made(error),
            Error::Type(_) | Error::Overtaken | Error::Late | Error::TooMuch => false,
        }
    }
}

/// Checks the certificate of the server: by the authorities of a file, or else by those that browsers know.
fn encryption(file: Option<&str>) -> std::result::Result<MakeRustlsConnect, ServerError> {
    let wrong = |reason: String| {
        ServerError::Address(format!("the certificates in {} cannot be used: {reason}", file.unwrap_or_default()))
    };
    let mut roots = RootCertStore::empty();
    match file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
        }
    }
    if roots.is_empty() {
        return Err(wrong("there is none".to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ServerError::Address(error.to_string()))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_understood_and_said_without_its_password() {
        let server = Server::at("postgresql://osmia:secret@db.example:6543/processes").expect("an address");
        assert_eq!((&*server.name, server.tls.is_some()), ("db.example:6543/processes", false));
        assert!(!format!("{server:?}").contains("secret"));
        let server = Server::at("postgres://db/processes?sslmode=verify-full&connect_timeout=1").expect("an address");
        assert!(server.tls.is_some());
        for (wrong, why) in [
            ("db.example:5432", "begin with postgresql://"),
            ("postgresql://db/p?sslmode=prefer", "sslmode is prefer"),
            ("postgresql://db/p?sslmode=require&sslrootcert=/not/there", "/not/there"),
            ("postgresql://db/p?color=red", "color"),
        ] {
            let error = Server::at(wrong).expect_err(wrong).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
