//! Events: the catalogue of their types, publishing, and the outbox.

pub mod catalogue;
pub mod event;
pub mod ingest;
mod members;
pub mod outbox;
pub mod publish;
pub mod rejected;
pub mod share;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod turns;

pub use catalogue::EventType;
pub use event::Event;
