//! A connection to a PostgreSQL server for plain threads, on which nothing waits without limit.
//!
//! A server whose machine or processes stand still keeps its connections open: the operating system goes on taking what is sent, so
//! neither keep-alives nor time-outs of TCP notice, and time-outs of the server do not run. So the side that waits looks at the
//! clock. A connection that was waited for in vain is given up: whatever comes on it later is nobody's.

use std::cell::Cell;
use std::error::Error as _;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use tokio_postgres::{Config, Row, Statement, config, error, types};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server, or the way to it, says so.
    #[error("{}", words(.0))]
    Said(#[from] tokio_postgres::Error),
    /// Nobody says anything.
    #[error("the server has not answered for {} ms", .0.as_millis())]
    Silent(Duration),
    /// The operating system has no means to wait.
    #[error("the connection cannot be waited for: {0}")]
    System(#[from] std::io::Error),
}

/// What comes back.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether it is of how the connection was asked for, and nothing of the server: a password that is missing, a certificate that
    /// is not trusted.
    pub fn is_of_configuration(&self) -> bool {
        let Error::Said(error) = self else { return false };
        // The library tells kinds apart in its words alone.
        let said = error.to_string();
        ["invalid configuration", "authentication error", "error performing TLS handshake"]
            .iter()
            .any(|kind| said.starts_with(kind))
            && !is_of_the_way(error)
    }

    /// What the server calls it.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Error::Said(error) => error.code(),
            Error::Silent(_) | Error::System(_) => None,
        }
    }
}

/// Whether the way to the server failed, which may be better another time.
fn is_of_the_way(error: &tokio_postgres::Error) -> bool {
    let mut cause = error.source();
    while let Some(this) = cause {
        // What is wrong with a certificate comes as data that is.
        if let Some(of_way) = this.downcast_ref::<std::io::Error>()
            && !matches!(of_way.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::Other)
        {
            return true;
        }
        cause = this.source();
    }
    false
}

fn words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// A connection. It is used by one thread at a time, and everything on it is waited for within a limit.
pub struct Connection {
    client: Client,
    time_max: Cell<Duration>,
    /// Set once it was waited for in vain: for so long.
    given_up: Cell<Option<Duration>>,
    /// Last: what drives the connection ends with it.
    runtime: Runtime,
}

impl Connection {
    /// Connects within a limit, which is that of all further steps too until it is changed.
    ///
    /// # Errors
    /// When nobody is there, does not answer, or refuses.
    pub fn open(config: &Config, tls: Option<&MakeRustlsConnect>, time_max: Duration) -> Result<Connection> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connecting = async {
            match tls {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    tokio::spawn(connection);
                    Ok(client)
                }
                Some(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    tokio::spawn(connection);
                    Ok(client)
                }
            }
        };
        // Also for the greeting behind the connection, which nothing else limits.
        let connected = runtime.block_on(async { tokio::time::timeout(time_max, connecting).await });
        let client: std::result::Result<Client, tokio_postgres::Error> =
            connected.map_err(|_| Error::Silent(time_max))?;
        Ok(Connection { client: client?, time_max: Cell::new(time_max), given_up: Cell::new(None), runtime })
    }

    /// How long each further step may take.
    pub fn set_time_max(&self, time_max: Duration) {
        self.time_max.set(time_max);
    }

    /// Carries out statements without parameters.
    ///
    /// # Errors
    /// When the server refuses, or says nothing.
    pub fn batch_execute(&self, sql: &str) -> Result<()> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// When the server refuses, or says nothing.
    pub fn prepare(&self, sql: &str) -> Result<Statement> {
        self.wait(self.client.prepare(sql))
    }

    /// Carries out a statement; how many rows it concerned.
    ///
    /// # Errors
    /// When the server refuses, or says nothing.
    pub fn execute(&self, statement: &Statement, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64> {
        self.wait(self.client.execute(statement, parameters))
    }

    /// Carries out a statement; its rows.
    ///
    /// # Errors
    /// When the server refuses, or says nothing.
    pub fn query(&self, statement: &Statement, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.wait(self.client.query(statement, parameters))
    }

    fn wait<T>(&self, step: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>) -> Result<T> {
        if let Some(waited) = self.given_up.get() {
            return Err(Error::Silent(waited));
        }
        let time_max = self.time_max.get();
        let Ok(done) = self.runtime.block_on(async { tokio::time::timeout(time_max, step).await }) else {
            self.given_up.set(Some(time_max));
            return Err(Error::Silent(time_max));
        };
        Ok(done?)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_says_nothing_is_given_up() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = silent.local_addr().expect("an address").port();
        let config: Config = format!("postgresql://nobody@127.0.0.1:{port}/nothing").parse().expect("an address");
        let limit = Duration::from_millis(50);
        let error = Connection::open(&config, None, limit).map(drop).expect_err("nobody answers");
        assert!(matches!(error, Error::Silent(waited) if waited == limit), "{error}");
        assert_eq!(error.to_string(), "the server has not answered for 50 ms");
        drop(silent);
        let error = Connection::open(&config, None, Duration::from_secs(60)).map(drop).expect_err("nobody is there");
        assert!(matches!(error, Error::Said(_)), "{error}");
    }
}
