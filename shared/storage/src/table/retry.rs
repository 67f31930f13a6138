//! Repeating what DynamoDB refuses for the moment only.

use std::time::Duration;

use base::{gather::Unanswered, pause};

use super::error::TableError;

/// The pauses before a request is repeated. The SDK repeats only calls that fail as a whole.
pub const PAUSES: [Duration; 5] = [
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(90),
    Duration::from_millis(270),
    Duration::from_millis(810),
];

/// DynamoDB's response to one request, which may have shared its call with others.
#[derive(Debug)]
pub enum TableResponse<T> {
    /// The request is decided.
    Decided(Result<T, TableError>),
    /// "Not now", for this request alone. The others of its call neither wait for it nor fail with it.
    NotNow(TableError),
}

impl<T> TableResponse<T> {
    /// The response to a request of a batch or a transaction that was refused with this reason code.
    pub fn refused(doing: &'static str, code: &str) -> Self {
        match TableError::code(doing, code) {
            error @ TableError::Unavailable { .. } => Self::NotNow(error),
            error => Self::Decided(Err(error)),
        }
    }

    /// The response that came with a shared call; an error when the call ended without one.
    pub fn carried(response: Result<Self, Unanswered>) -> Self {
        response.unwrap_or(Self::Decided(Err(TableError::Missing("the response of a shared call"))))
    }
}

/// Repeats a request until it is decided. After the last pause, the refusal is the error.
pub async fn until_decided<T, R>(request: impl Fn() -> R) -> Result<T, TableError>
where
    R: Future<Output = TableResponse<T>>,
{
    let mut pauses = PAUSES.iter();
    loop {
        match request().await {
            TableResponse::Decided(result) => return result,
            TableResponse::NotNow(error) => pause(*pauses.next().ok_or(error)?).await,
        }
    }
}
