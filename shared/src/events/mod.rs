//! Events: what may happen, what happened, and the telling of it.

pub mod catalogue;
pub mod event;
pub mod outbox;
pub mod publish;
pub mod store;

pub use catalogue::EventType;
pub use event::Event;
