//! The published geo-IP databases in a history: providers, updates, and an operator who rolls back.

mod act;
mod provider;
mod provider_wires;

use std::{sync::Arc, time::Duration};

use base::pause;

pub use act::{act, finish};
pub use provider::{ProviderMood, Release};
pub use provider_wires::ProviderWires;

use crate::{aws::bucket::Bucket, sandbox::Sandbox, world::World};
use provider::Provider;

/// The name of the deployment, which all keys begin with.
pub const ENVIRONMENT: &str = "simulation";
/// The editions, each from a different kind of source: a file with a separate checksum, MaxMind, and a file without a
/// checksum.
pub const EDITIONS: [&str; 3] = ["summed", "GeoLite2-City", "alone"];
/// The server for all providers. No connection is made.
pub const SERVER: &str = "http://127.0.0.1:9000";
/// The number of turns in a cycle.
const TURNS: u64 = 64;

/// The action in a step about the databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GeoIpAction {
    /// A provider releases a database.
    Release(usize),
    /// A provider changes how it serves an edition.
    Serve(usize, ProviderMood),
    /// The schedule updates all editions.
    Update,
    /// A person updates all editions; the databases are published only if this is `true`.
    UpdateByRequest(bool),
    /// An operator rolls back to the previous release.
    RollBack(usize),
    /// An operator unblocks the most recently blocked release.
    Unblock(usize),
}

/// The state that all sandboxes share.
#[derive(Debug)]
pub struct GeoIp {
    /// The S3 bucket.
    pub bucket: Bucket,
    /// The provider of each edition.
    pub providers: Vec<Provider>,
    /// The sandboxes that ran operators' commands.
    pub operators: Vec<u64>,
    /// The outcome of a history's last update after all faults ended; `None` before that update, or if it returned
    /// nothing.
    pub last_update: Option<Result<String, String>>,
}

impl Default for GeoIp {
    fn default() -> Self {
        let providers = EDITIONS.iter().map(|edition| Provider::new(edition)).collect();
        Self { bucket: Bucket::default(), providers, operators: Vec::new(), last_update: None }
    }
}

/// Waits for the next millisecond that belongs to a sandbox alone.
///
/// An update reads and writes files on other threads. This work takes no time on the paused clock, but in relation to
/// other sandboxes' work in the same millisecond, its order would differ from run to run.
pub async fn in_turn(world: &Arc<World>, sandbox: &Sandbox) {
    let now = world.clock.millis();
    pause(Duration::from_millis((sandbox.id % TURNS + TURNS - now % TURNS) % TURNS)).await;
}

/// A duration after which no sandbox has its turn, rounded up.
pub fn between_turns(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or_default().next_multiple_of(TURNS))
}
