#![doc = include_str!("../README.md")]

pub mod audit;
pub mod batcher;
pub mod clock;
pub mod environment;
pub mod ids;
pub mod logging;
pub mod metric;
#[cfg(unix)]
pub mod private_file;
pub mod random;
pub mod refreshed;
pub mod stage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text_type;
pub mod trace;
pub mod version;
pub mod wait;

pub use clock::{Clock, SharedClock, SystemClock, Time, pause};
pub use environment::{Environment, FromEnvironment};
pub use ids::{ClientSecretId, ConnectionId, DeliveryId, EventId, MAX_DELIVERIES, PanelLinkId, WebhookId};
pub use random::{Random, SharedRandom, SystemRandom};
