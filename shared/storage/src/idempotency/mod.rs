//! Idempotency keys: a request with a key is carried out once, even if it is sent several times.
//!
//! The table stores a record of the key for a day. The record contains the response, and is written in the same
//! transaction as the items that the request creates. After a crash before the transaction, a repeated request is
//! carried out; after a later crash, it gets the response. Of several concurrent requests, one transaction succeeds,
//! and the others find its record. A change's record has no response: a repeated request gets the current state of the
//! resource ([`Once::change`]).
//!
//! A repeated request must have an equal body: the same JSON values in any notation (`problem::canonical`).
//!
//! A transaction costs twice the write units, and an event to many ordered webhooks already fills one. So a
//! publication's record is written first, and contains the plan instead of the response ([`IdempotentRequest::claim`]).
//! A repeated request repeats all of the plan's writes, which changes nothing. The record of a feed read contains the
//! receipts of the deliveries that it hands out, and ends with their leases.
//!
//! | item | pk / sk |
//! |---|---|
//! | response to a request | `IDEMPOTENCY#{entity}#{hash}` / `ANSWER` |
//! | a publication's plan | `IDEMPOTENCY#{entity}#{hash}` / `PUBLICATION` |
//! | a feed read's batch | `IDEMPOTENCY#{entity}#{hash}` / `BATCH` |

mod once;
mod request;
mod store;

pub use once::{Changed, Once};
pub use request::{IdempotencyError, IdempotencyKey, IdempotentRequest, RETENTION, SECRET_REPEATED, Sender};
pub use store::{Answered, FirstResponse, IdempotencyStore, Record};
