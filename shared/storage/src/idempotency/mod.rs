//! Idempotency keys: a request that comes with one is carried out once, however often it is sent.
//!
//! A record of the key stands in the table for a day. It is written in the transaction of what the request makes, with
//! the answer, so that neither is there without the other: a crash before it leaves nothing, and the repetition makes
//! everything; a crash after it leaves both, and the repetition gets the answer. Of several such requests at once, one
//! transaction is written, and the others find its record.
//!
//! Publishing writes more than a transaction holds. Its record comes first and has the decision instead of the answer
//! ([`IdempotentRequest::claim`]), and a repetition does the same again, which makes nothing new.
//!
//! | item | pk / sk |
//! |---|---|
//! | answer to a request | `IDEMPOTENCY#{entity}#{hash}` / `ANSWER` |
//! | decision of a publication | `IDEMPOTENCY#{entity}#{hash}` / `PUBLICATION` |

mod request;
mod store;

pub use request::{IdempotencyError, IdempotencyKey, IdempotentRequest, MEMORY, SECRET_REPEATED, Sender};
pub use store::{Answered, FirstResponse, IdempotencyStore, Record};
