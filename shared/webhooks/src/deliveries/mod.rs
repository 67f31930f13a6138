//! Deliveries: each is one event on its way to one webhook, with every attempt to deliver it. The table is the source
//! of truth; queue messages are only hints. A lost or late message only costs time, and a repeated one at worst
//! delivers an event twice.
//!
//! | module | contents |
//! |---|---|
//! | `delivery`, `attempt` | a delivery, its states and its attempts, as stored |
//! | `view` | deliveries and attempts, as clients see them |
//! | `store` | the items of the table and the keys of the indexes |
//! | `queue` | the messages that announce attempts, and the two queues |
//! | `dispatch` | an attempt, from its message to its record |
//! | `feed` | the feed of a webhook that is pulled: reading it, and the answers of its readers |
//! | `sweep` | announces overdue deliveries again |
//! | `requests` | resend or cancel a delivery, recover a range, erase an event |
//! | `jobs` | background work on many deliveries, a page at a time: recoveries, cancellations, erasures |
//! | `queries` | show, list and diagnose |
//! | `lease_times` | the times that claims, messages and the sweep agree on |

pub mod attempt;
pub mod delivery;
pub mod dispatch;
pub mod error;
pub mod feed;
pub mod jobs;
pub(crate) mod lease_times;
pub mod queries;
pub mod queue;
pub mod requests;
pub mod store;
pub mod sweep;
pub mod view;

pub use delivery::{Delivery, Status};
pub use error::DeliveryError;
pub use store::Deliveries;
pub use view::DeliveryView;
