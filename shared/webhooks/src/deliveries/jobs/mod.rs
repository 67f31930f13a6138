//! Background jobs of the sweep:
//!
//! - recover a webhook's failed, cancelled and waiting deliveries,
//! - replay events to a webhook,
//! - cancel a removed webhook's waiting deliveries,
//! - take deliveries out of a feed,
//! - make deliveries due at the end of their owner's pause,
//! - remove temporary webhooks,
//! - erase the content in an event's deliveries.
//!
//! A job is an item in its entity's shard of the index `byDue`: `JOB#{webhook}` / `RECOVER`, `REPLAY`, `CANCEL`,
//! `RELEASE`, `RESUME` or `EXPIRE`, or `JOB#{event}` / `ERASE`. In its entity's turn, a sweep takes the job with a
//! lease. With every page, the sweep renews the lease and stores its position. After a crash, another sweep continues
//! there. A repeated page changes nothing twice: a change to a delivery is conditional on its state, and adding one is
//! conditional on its event. Writing the item itself is conditional on its version.
//!
//! A sweep postpones a job that its release cannot read, such as a job of a later release, and leaves the rest of the
//! item unchanged.

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
