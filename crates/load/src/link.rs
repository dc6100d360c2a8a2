//! Connections to all given addresses, some of which may be away for a time.
//!
//! What is sent goes to the connections in turn. One whose address is away is passed over until it answers again, so
//! that the others go on.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gateway_interface::TopologyRequest;
use gateway_interface::gateway_client::GatewayClient;
use serde::Serialize;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

pub(crate) type Client = GatewayClient<Channel>;

/// Between two questions whether an address is back.
pub(crate) const AWAY_PAUSE: Duration = Duration::from_millis(100);
/// How long such a question may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What became of the commands that were sent to one address since the measurement began.
#[derive(Clone, Debug, Serialize)]
pub struct AddressReport {
    /// As it was given.
    pub address: String,
    /// Creations, publications and completions that were acknowledged.
    pub acknowledged: u64,
    /// Those that were refused, so certainly not done.
    pub refused: u64,
    /// Those whose outcome nobody knows: they were unavailable, timed out, or the connection was lost.
    pub unknown: u64,
}

#[derive(Debug)]
struct Counts {
    address: String,
    acknowledged: AtomicU64,
    refused: AtomicU64,
    unknown: AtomicU64,
}

/// Counts what is sent to each address. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct Addresses(Arc<[Counts]>);

impl Addresses {
    pub fn new(addresses: &[String]) -> Self {
        let counts = |address: &String| Counts {
            address: address.clone(),
            acknowledged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
        };
        Addresses(addresses.iter().map(counts).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn name(&self, address: usize) -> &str {
        &self.0[address].address
    }

    /// A command to this address has ended.
    pub fn count<T>(&self, address: usize, result: &Result<T, Status>) {
        let counts = &self.0[address];
        let counter = match result {
            Ok(_) => &counts.acknowledged,
            Err(status) if has_unknown_outcome(status.code()) => &counts.unknown,
            Err(_) => &counts.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts from zero again.
    pub fn forget(&self) {
        for counts in self.0.iter() {
            for counter in [&counts.acknowledged, &counts.refused, &counts.unknown] {
                counter.store(0, Ordering::Relaxed);
            }
        }
    }

    pub fn report(&self) -> Vec<AddressReport> {
        let report = |counts: &Counts| AddressReport {
            address: counts.address.clone(),
            acknowledged: counts.acknowledged.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            unknown: counts.unknown.load(Ordering::Relaxed),
        };
        self.0.iter().map(report).collect()
    }
}

/// Whether a command with this status may have been done nevertheless.
pub(crate) fn has_unknown_outcome(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::Internal
            | Code::DataLoss
    )
}

/// One connection.
pub(crate) struct Link {
    pub client: Client,
    address: usize,
    is_away: AtomicBool,
}

/// Connections, in turn to all addresses. Clones share them.
#[derive(Clone)]
pub(crate) struct Links {
    links: Arc<[Arc<Link>]>,
    addresses: Addresses,
}

impl Links {
    /// Takes at least one connection: the number of its address, the client, and whether the address is there.
    pub fn new(connections: Vec<(usize, Client, bool)>, addresses: Addresses) -> Self {
        let link = |(address, client, is_there): (usize, Client, bool)| {
            Arc::new(Link { client, address, is_away: AtomicBool::new(!is_there) })
        };
        let links = Links { links: connections.into_iter().map(link).collect(), addresses };
        links.links.iter().filter(|link| link.is_away.load(Ordering::Relaxed)).for_each(ask_until_back);
        links
    }

    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The connection with this number, whether its address is there or not.
    pub fn link(&self, number: usize) -> &Arc<Link> {
        &self.links[number % self.links.len()]
    }

    /// The connection with this number, or another one while its address is away.
    pub fn prefer(&self, number: usize) -> &Arc<Link> {
        let link = self.link(number);
        match link.is_away.load(Ordering::Relaxed) {
            true => self.choose(number as u64),
            false => link,
        }
    }

    /// In turn those connections whose addresses are there, so that they share what others cannot take.
    pub fn choose(&self, number: u64) -> &Arc<Link> {
        let is_there = |link: &&Arc<Link>| !link.is_away.load(Ordering::Relaxed);
        let in_turn = |count: usize| (number % count.max(1) as u64) as usize;
        let there = self.links.iter().filter(is_there).count();
        // Meanwhile one of them may have gone.
        let chosen = self.links.iter().filter(is_there).nth(in_turn(there));
        chosen.unwrap_or_else(|| self.link(in_turn(self.links.len())))
    }

    /// A connection whose address is there.
    pub fn any(&self) -> &Client {
        &self.choose(0).client
    }

    /// A command over this connection has ended.
    pub fn count<T>(&self, link: &Arc<Link>, result: &Result<T, Status>) {
        self.addresses.count(link.address, result);
        if let Err(status) = result {
            self.failed(link, status);
        }
    }

    /// Something over this connection has failed. When the network says so and not the server, others are used until
    /// the address answers again.
    pub fn failed(&self, link: &Arc<Link>, status: &Status) {
        let is_lost = status.source().is_some() && has_unknown_outcome(status.code());
        if is_lost && self.addresses.len() > 1 && !link.is_away.swap(true, Ordering::Relaxed) {
            ask_until_back(link);
        }
    }
}

/// Asks an address until it answers, or nobody uses the connection any more.
fn ask_until_back(link: &Arc<Link>) {
    let (link, client) = (Arc::downgrade(link), link.client.clone());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(AWAY_PAUSE).await;
            let mut client = client.clone();
            let answer = tokio::time::timeout(PROBE_TIMEOUT, client.topology(Request::new(TopologyRequest {}))).await;
            let Some(link) = link.upgrade() else { return };
            let is_there = match answer {
                Ok(Ok(_)) => true,
                // The server itself refuses.
                Ok(Err(status)) => status.source().is_none(),
                Err(_) => false,
            };
            if is_there {
                link.is_away.store(false, Ordering::Relaxed);
                return;
            }
        }
    });
}
