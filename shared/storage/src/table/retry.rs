//! Retries of throttled requests.
//!
//! The SDK repeats only calls that fail as a whole, and for about a second. A partition may be throttled for longer, so
//! this module repeats a request until its deadline. Batched writes are repeated only here: the SDK could repeat a call
//! after some of its callers gave up, and carry out writes whose outcome those callers never learn.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use base::{batcher::Unanswered, pause};

use super::error::TableError;

/// How long a request without a deadline is repeated after its first response. For most such requests, a client is
/// waiting that can retry after a 503.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(1_500);
/// The first backoff. Each further one is three times as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// DynamoDB's response to one request, alone or in a batch.
#[derive(Debug)]
pub enum TableResponse<T> {
    /// The request has a final result.
    Decided(Result<T, TableError>),
    /// The request was throttled and not carried out. Other requests in the batch are not affected.
    NotNow(TableError),
    /// The call failed, and the request may have been carried out: its response may be lost.
    Unknown(TableError),
}

impl<T> TableResponse<T> {
    /// The response to a request whose call failed as a whole.
    pub fn failed(error: TableError) -> Self {
        match error {
            TableError::Unavailable { throttled: true, .. } => Self::NotNow(error),
            TableError::Unavailable { .. } => Self::Unknown(error),
            error => Self::Decided(Err(error)),
        }
    }

    /// The response to a request in a batch or transaction that was refused with this reason code.
    pub fn refused(doing: &'static str, code: &str) -> Self {
        match TableError::code(doing, code) {
            error @ TableError::Unavailable { .. } => Self::NotNow(error),
            error => Self::Decided(Err(error)),
        }
    }

    /// The response from a batch; an error if the call ended without one.
    pub fn carried(response: Result<Self, Unanswered>) -> Self {
        response.unwrap_or(Self::Decided(Err(TableError::Missing("a batch's response"))))
    }
}

/// Repeats a request until it has a final result. Returns the last error if the next backoff would exceed the deadline.
///
/// A request that may have been carried out is repeated only if the caller gave a deadline (`Table::until`), and so
/// guarantees that a second execution changes nothing. Without a deadline, the SDK has already repeated it.
pub async fn until_decided<T, R>(deadline: Option<Instant>, request: impl Fn() -> R) -> Result<T, TableError>
where
    R: Future<Output = TableResponse<T>>,
{
    decide(deadline, deadline.is_some(), request).await
}

/// Repeats a request in a batch, which the SDK does not repeat, until it has a final result. Its conditions must ensure
/// that a second execution changes nothing.
pub async fn until_decided_in_batch<T, R>(deadline: Option<Instant>, request: impl Fn() -> R) -> Result<T, TableError>
where
    R: Future<Output = TableResponse<T>>,
{
    decide(deadline, true, request).await
}

async fn decide<T, R>(
    deadline: Option<Instant>,
    repeats_unknown: bool,
    request: impl Fn() -> R,
) -> Result<T, TableError>
where
    R: Future<Output = TableResponse<T>>,
{
    let mut ends = deadline;
    let mut wait = FIRST_PAUSE;
    loop {
        let response = match deadline {
            Some(deadline) => timeout_at(deadline, request()).await.map_err(|_| TableError::late())?,
            // The SDK has a timeout for the call.
            None => request().await,
        };
        let error = match response {
            TableResponse::Decided(result) => return result,
            TableResponse::Unknown(error) if !repeats_unknown => return Err(error),
            TableResponse::NotNow(error) | TableResponse::Unknown(error) => error,
        };
        // A call that hangs for seconds is repeated at least once.
        if Instant::now() + wait > *ends.get_or_insert_with(|| Instant::now() + DEFAULT_DEADLINE) {
            return Err(error);
        }
        pause(wait).await;
        wait = (wait * 3).min(LONGEST_PAUSE);
    }
}
