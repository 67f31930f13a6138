//! The DynamoDB table.

mod condition;
mod error;
mod expression;
mod key;
mod query;
mod reading;
mod retry;
mod scan;
mod shared_reads;
mod statement;
#[cfg(test)]
mod tests;
mod value;
mod write;
mod writing;

pub use condition::{
    Comparison, Condition, absent, at_least, at_most, begins_with, exists, is, is_new, less, more, present,
};
pub use error::TableError;
pub use key::Key;
pub use query::{Count, Page, PageEnd, Query};
pub use scan::{Scan, Scanned};
pub use value::{Path, Row, Value};
pub use write::{Change, Delete, Put, Transaction, Write, Written};

use aws_sdk_dynamodb::{Client, config::retry::RetryConfig};
use aws_types::SdkConfig;
use base::batcher::Batcher;
use futures::future::BoxFuture;
use tokio::time::Instant;

use shared_reads::{Partitions, Reads};
use statement::Writes;

/// The boxed future of a call to DynamoDB. The compiler generates the code of an `async fn` in the crate that polls its
/// future: without the box, each function's binary would compile the SDK's calls again.
pub type TableFuture<'a, T> = BoxFuture<'a, Result<T, TableError>>;

/// The DynamoDB table.
#[derive(Debug, Clone)]
pub struct Table {
    client: Client,
    name: String,
    writes: Batcher<Writes>,
    reads: Batcher<Reads>,
    eventual_reads: Batcher<Reads>,
    partitions: Batcher<Partitions>,
    /// The deadline for repeating throttled requests; `None` for the default.
    deadline: Option<Instant>,
}

impl Table {
    /// The table with this name, for a program outside of Lambda: with these credentials, at AWS or at this endpoint.
    pub fn connect(aws: &SdkConfig, endpoint: Option<&str>, name: impl Into<String>) -> Self {
        let mut config = aws_sdk_dynamodb::config::Builder::from(aws);
        if let Some(endpoint) = endpoint {
            config.set_endpoint_url(Some(endpoint.to_owned()));
        }
        Self::new(Client::from_conf(config.build()), name)
    }

    /// The table with this name.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        let name = name.into();
        let writes = Batcher::new(Writes { client: without_retries(&client), table: name.clone() });
        let reads = Batcher::new(Reads { client: client.clone(), table: name.clone(), consistent: true });
        let eventual_reads = Batcher::new(Reads { client: client.clone(), table: name.clone(), consistent: false });
        let partitions = Batcher::new(Partitions { client: client.clone(), table: name.clone() });
        Self { client, name, writes, reads, eventual_reads, partitions, deadline: None }
    }

    /// A handle that repeats writes and batched reads until this deadline while DynamoDB throttles them or fails. A
    /// write whose response was lost is carried out twice; the caller's conditions must ensure that the second time
    /// changes nothing.
    pub fn until(&self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self.clone() }
    }

    /// A handle for separate writes that must not be carried out twice: the SDK does not repeat their calls. Throttled
    /// writes are still repeated here, since they were not carried out.
    pub fn once(&self) -> Self {
        Self { client: without_retries(&self.client), ..self.clone() }
    }
}

/// The same client, but the SDK repeats no call.
fn without_retries(client: &Client) -> Client {
    Client::from_conf(client.config().to_builder().retry_config(RetryConfig::disabled()).build())
}
