//! The door for other domains: they announce events of their own through the outbox, and use nothing else of this
//! crate.

pub use crate::events::{
    EventType,
    catalogue::own as event_type,
    outbox::{Announcement, Outbox},
};
