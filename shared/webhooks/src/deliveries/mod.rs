//! Deliveries: each is one event on its way to one webhook, with every attempt to deliver it. The table is the source
//! of truth; queue messages are only hints. A lost or late message only costs time, and a repeated one delivers an
//! event twice at worst.
//!
//! | module | contents |
//! |---|---|
//! | `state` | a delivery's life: its states, what happens next, and how each event changes it |
//! | `view` | deliveries and attempts, as clients see them |
//! | `store` | deliveries in the table |
//! | `queue` | the messages that announce attempts, and the two queues |
//! | `dispatch` | an attempt, from its message to its record |
//! | `feed` | a pull webhook's feed: reading it, and its readers' answers |
//! | `outcome` | attempts whose end no dispatcher saw: a reader's, and those of workers that died |
//! | `sweep` | announces overdue deliveries again |
//! | `requests` | resend or cancel a delivery, recover a range, erase an event |
//! | `jobs` | background work on many deliveries, a page at a time: recoveries, cancellations, erasures |
//! | `queries` | show, list and diagnose |

pub mod dispatch;
pub mod error;
pub mod feed;
pub mod jobs;
pub(crate) mod outcome;
pub mod queries;
pub mod queue;
pub mod requests;
pub mod state;
pub mod store;
pub mod sweep;
pub mod view;

pub use error::DeliveryError;
pub use state::delivery::{Delivery, Status};
pub use store::Deliveries;
pub use view::DeliveryView;
