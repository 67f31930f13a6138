//! A request that is carried out once for its idempotency key, if it has one.

use std::fmt::Display;

use serde::Serialize;

use super::{
    request::{IdempotencyError, IdempotentRequest},
    store::{Answered, IdempotencyStore, Record},
};
use base::Time;

/// A request's idempotency key, if it has one, with the store of its response.
#[derive(Clone, Copy)]
pub struct Once<'a>(Option<(&'a IdempotencyStore, &'a IdempotentRequest)>);

/// A resource's state after a change, which may have been made before.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Changed<T> {
    /// The current state.
    pub state: T,
    /// Whether an earlier request with the same key made the change.
    #[serde(skip)]
    pub is_repeated: bool,
}

impl<'a> Once<'a> {
    /// A request without a key.
    pub const NO_KEY: Self = Self(None);

    /// A request with this key, if it has one.
    pub fn of(answers: &'a IdempotencyStore, request: Option<&'a IdempotentRequest>) -> Self {
        Self(request.map(|request| (answers, request)))
    }

    /// Carries out the request, or repeats its first response, like [`IdempotencyStore::once`].
    pub async fn carry_out<T, E>(self, now: Time, work: impl Future<Output = Result<T, E>>) -> Result<Answered<T>, E>
    where
        E: From<IdempotencyError>,
    {
        match self.0 {
            Some((answers, request)) => answers.once(Some(request), now, work).await,
            None => work.await.map(Answered::First),
        }
    }

    /// Makes a change and returns the new state. A repeated request changes nothing and returns the `current` state:
    /// the record has no response, since the state may have changed in the meantime.
    pub async fn change<T, E>(
        self,
        now: Time,
        change: impl Future<Output = Result<T, E>>,
        current: impl Future<Output = Result<T, E>>,
    ) -> Result<Changed<T>, E>
    where
        E: From<IdempotencyError>,
    {
        match self.carry_out(now, change).await? {
            Answered::First(state) => Ok(Changed { state, is_repeated: false }),
            Answered::Again(_) => Ok(Changed { state: current.await?, is_repeated: true }),
        }
    }

    /// The request's record, to be written with its changes, like [`IdempotencyStore::record`].
    pub async fn record(
        self,
        response: &impl Serialize,
        made: &impl Display,
        now: Time,
    ) -> Result<Option<Record>, IdempotencyError> {
        match self.0 {
            Some((answers, request)) => answers.record(Some(request), response, made, now).await,
            None => Ok(None),
        }
    }
}
