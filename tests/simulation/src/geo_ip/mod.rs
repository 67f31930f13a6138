//! A history's published geo-IP databases: providers, updates, and an operator who rolls back.

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

/// The deployment's name; all keys begin with it.
pub const ENVIRONMENT: &str = "simulation";
/// The editions, each from a different kind of source: a file with a checksum beside it, MaxMind, and a file alone.
pub const EDITIONS: [&str; 3] = ["summed", "GeoLite2-City", "alone"];
/// The server of all providers. Nothing is dialled.
pub const SERVER: &str = "http://127.0.0.1:9000";
/// The number of turns.
const TURNS: u64 = 64;

/// The action in a step about the databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GeoIpAction {
    /// A provider releases a database.
    Release(usize),
    /// A provider serves an edition in another way.
    Serve(usize, ProviderMood),
    /// The schedule updates all editions.
    Update,
    /// A person updates all editions; nothing is published unless this is `true`.
    UpdateByRequest(bool),
    /// An operator rolls back to the previous release.
    RollBack(usize),
    /// An operator unblocks the release that was blocked last.
    Unblock(usize),
}

/// The shared state.
#[derive(Debug)]
pub struct GeoIp {
    /// S3.
    pub bucket: Bucket,
    /// The editions' providers.
    pub providers: Vec<Provider>,
    /// The sandboxes that ran operators' commands.
    pub operators: Vec<u64>,
    /// The outcome of the last update of a quiet history; `None` before it, or if it returned nothing.
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
/// An update reads and writes files on other threads. This work takes no time on the paused clock, but its order
/// relative to other sandboxes' work in the same millisecond would differ from run to run.
pub async fn in_turn(world: &Arc<World>, sandbox: &Sandbox) {
    let now = world.clock.millis();
    pause(Duration::from_millis((sandbox.id % TURNS + TURNS - now % TURNS) % TURNS)).await;
}

/// A time in which no sandbox has its turn, rounded up.
pub fn between_turns(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or_default().next_multiple_of(TURNS))
}
