//! How many applications, secrets and keys may be made for a managing entity in an hour. Each of
//! them is an entry in the list of revocations when it is removed, and removing is never refused,
//! so that making is limited.

use std::time::Duration;

use super::caller::Caller;
use base::Time;
use problem::{Problem, ProblemKind};
use storage::{Allowance, Allowances, TableError};

/// Why no more may be made.
#[derive(Debug, thiserror::Error)]
pub enum AllowanceError {
    /// The allowance of this hour is spent; the next hour begins after this time.
    #[error("the entity's allowance of applications, secrets and keys is spent for {} s", .0.as_secs())]
    Spent(Duration),
    /// The table could not count.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Counts the applications, secrets and keys that are about to be made for the caller's entity.
pub(super) async fn spend(
    allowances: &Allowances,
    caller: &Caller<'_>,
    many: u32,
    now: Time,
) -> Result<(), AllowanceError> {
    let Some(entity) = caller.entity() else { return Ok(()) };
    match allowances.spend(Allowance::Credentials, many, entity.id().as_str(), now).await? {
        None => Ok(()),
        Some(end) => Err(AllowanceError::Spent(end.since(now))),
    }
}

impl From<AllowanceError> for Problem {
    fn from(error: AllowanceError) -> Self {
        match error {
            AllowanceError::Spent(wait) => {
                let seconds = wait.as_secs() + 1;
                let detail = format!(
                    "As many applications, secrets and keys were made for this managing entity as may be in an hour; try again \
                     in {seconds} seconds."
                );
                Self::new(ProblemKind::TooManyCredentials, detail).with_retry_after(seconds)
            }
            AllowanceError::Table(error) => error.into(),
        }
    }
}
