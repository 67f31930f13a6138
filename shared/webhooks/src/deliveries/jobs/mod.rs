//! Work on many deliveries of a webhook, done in the background by the sweep: recovering those that failed, were
//! cancelled, or wait, and cancelling those that wait for a webhook that was removed.
//!
//! A job is an item, `JOB#{webhook}` / `RECOVER` or `CANCEL`, in its entity's shard of the index `byDue`. When it is
//! its entity's turn, a sweep takes it by a lease. With every page that it worked through, the sweep renews the lease
//! and writes the place that it has reached. After a crash another sweep goes on there; a page that is done twice
//! changes nothing twice, since every delivery is changed on condition of its state. An item has a version, on
//! condition of which it is written.

mod cancel_page;
mod cancel_progress;
mod entity_turns;
mod expedited_ranges;
mod job;
mod recover_page;
mod recover_ranges;
mod scope;
mod store;
mod worker;

pub(super) use recover_ranges::MAX_RANGES;
pub use recover_ranges::TooManyRanges;
pub use scope::{Include, RecoveryScope};
pub use store::Jobs;
pub use worker::Worker;
