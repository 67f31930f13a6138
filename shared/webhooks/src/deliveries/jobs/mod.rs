//! Background jobs of the sweep: recovering the failed, cancelled and waiting deliveries of a webhook, replaying events
//! to a webhook, cancelling the waiting deliveries of a removed webhook, taking deliveries out of a feed, making
//! deliveries due at the end of their owner's pause, removing temporary webhooks, and erasing the content in the
//! deliveries of an event.
//!
//! A job is an item in its entity's shard of the index `byDue`: `JOB#{webhook}` / `RECOVER`, `REPLAY`, `CANCEL`,
//! `RELEASE`, `RESUME` or `EXPIRE`, or `JOB#{event}` / `ERASE`. In its entity's turn, a sweep takes it by a lease. With
//! every page the sweep renews the lease and stores its position. After a crash another sweep continues there; a
//! repeated page changes nothing twice, since every delivery is changed on condition of its state, and added on
//! condition of its event. The item is written on condition of its version.
//!
//! A sweep postpones a job that its release cannot read, such as one that a later release wrote, and leaves the rest of
//! the item as it is.

mod entity_turns;
mod erase_page;
mod expedited_ranges;
mod job;
mod pass_page;
mod passes;
mod recover_page;
mod recover_ranges;
mod replay;
mod replay_page;
mod scope;
mod store;
mod worker;

pub(super) use recover_ranges::MAX_RANGES;
pub use recover_ranges::TooManyRanges;
pub(super) use replay::Replay;
pub use replay::{ReplayScope, ReplayUnderWay};
pub use scope::{Include, RecoveryScope};
pub use store::Jobs;
pub use worker::Worker;
