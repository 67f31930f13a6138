//! Events: the catalogue of their types, publishing, and the outbox.

pub mod catalogue;
mod counts;
pub mod event;
pub mod ingest;
pub mod new_event;
pub mod outbox;
mod packed;
pub mod publish;
pub mod rejected;
pub mod share;
pub mod store;
pub mod subject;
pub(crate) mod unknown;

pub use catalogue::EventType;
pub use event::Event;
pub use new_event::NewEvent;
