//! How many applications, secrets and keys may be made for a managing entity in an hour. Each of
//! them is an entry in the list of revocations when it is removed, and removing is never refused,
//! so that making is limited.

use super::{caller::Caller, error::ApplicationError};
use base::Time;
use storage::{Allowance, Allowances};

/// Counts the applications, secrets and keys that are about to be made for the caller's entity.
pub(super) async fn spend(
    allowances: &Allowances,
    caller: &Caller<'_>,
    many: u32,
    now: Time,
) -> Result<(), ApplicationError> {
    let Some(entity) = caller.entity() else { return Ok(()) };
    match allowances.spend(Allowance::Credentials, many, entity.id().as_str(), now).await? {
        None => Ok(()),
        Some(end) => Err(ApplicationError::AllowanceSpent(end.since(now))),
    }
}
