//! Events: the catalogue of types with the schemas of their data, publishing, and the outbox.

pub mod asyncapi;
pub mod catalogue;
#[cfg(test)]
mod catalogue_tests;
mod counts;
pub mod data_warning;
pub mod event;
#[cfg(test)]
mod guide;
pub mod ingest;
pub(crate) mod json_text;
mod line;
pub mod new_event;
pub mod outbox;
mod packed;
pub(crate) mod payload;
pub mod publish;
pub mod rejected;
mod retention;
pub mod share;
mod shared_reads;
pub mod store;
pub mod subject;
pub mod type_details;
pub(crate) mod unknown;
pub mod validation;

pub use catalogue::EventType;
pub use event::Event;
pub use new_event::NewEvent;
