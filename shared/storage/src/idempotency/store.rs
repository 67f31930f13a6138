//! The store of responses to requests with an idempotency key.
//!
//! A response with a secret is sealed, and repeated for ten minutes: long enough for a client that lost its connection,
//! and too short for a leaked key to be useful.

use std::{fmt::Display, future::Future};

use futures::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize, Serializer, ser::Error};
use serde_json::value::RawValue;

use super::request::{IdempotencyError, IdempotentRequest, RecordItem, SECRET_REPEATED};
use crate::{
    sealing::{KeyRings, SealError},
    secrets::SecretText,
    table::{Put, Table, TableError, Transaction, Written},
};
use base::{SharedRandom, Time};

/// The sort key of responses.
const ANSWER: &str = "ANSWER";

const LOOKING: &str = "looking for an idempotency key";
const RECORDING: &str = "recording an idempotency key";

/// The responses in the table.
#[derive(Clone)]
pub struct IdempotencyStore {
    table: Table,
    /// The keys for sealing; `None` if responses show no secret.
    seal: Option<(KeyRings, SharedRandom)>,
}

/// A request's record, which is written together with the items that the request creates.
#[derive(Debug, Clone)]
pub struct Record(Put);

/// The response to a request, new or repeated.
#[derive(Debug)]
pub enum Answered<T> {
    /// The response to a request that was carried out now.
    First(T),
    /// The first response to a request that was carried out before.
    Again(FirstResponse),
}

/// The first response to a request.
#[derive(Debug)]
pub struct FirstResponse {
    /// The identifier of the resource that the request created or changed.
    pub id: String,
    json: SecretText,
}

/// The response in a record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredResponse {
    /// The identifier of the resource that the request created or changed.
    made: String,
    answered_date: Time,
    /// The response's body; absent if it is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The sealed body of a response with a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed_answer: Option<String>,
}

impl IdempotencyStore {
    /// The store in this table, for responses without secrets.
    pub fn new(table: Table) -> Self {
        Self { table, seal: None }
    }

    /// The store in this table, for responses with a secret.
    pub fn sealed(table: Table, rings: KeyRings, random: SharedRandom) -> Self {
        Self { table, seal: Some((rings, random)) }
    }

    /// Carries out a request, or repeats its first response. The work must write the [`Record`] of the request with the
    /// items that it creates; a request without a key has no record.
    ///
    /// If the work fails because a concurrent repetition was faster, returns that request's response.
    pub async fn once<T, E>(
        &self,
        request: Option<&IdempotentRequest>,
        now: Time,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Answered<T>, E>
    where
        E: From<IdempotencyError>,
    {
        let Some(request) = request else { return work.await.map(Answered::First) };
        if let Some(first) = self.find(request, now).await? {
            return Ok(Answered::Again(first));
        }
        match work.await {
            Ok(response) => Ok(Answered::First(response)),
            Err(error) => self.find(request, now).await?.map(Answered::Again).ok_or(error),
        }
    }

    /// The record of a request with its response, and with the identifier of the resource that it creates or changes.
    pub async fn record(
        &self,
        request: Option<&IdempotentRequest>,
        response: &impl Serialize,
        made: &impl Display,
        now: Time,
    ) -> Result<Option<Record>, IdempotencyError> {
        let Some(request) = request else { return Ok(None) };
        let json = SecretText::new(serde_json::to_string(response).map_err(IdempotencyError::Answer)?);
        self.record_of(request, json, made.to_string(), now).await.map(Some)
    }

    // Boxed like the futures of `Table`, so that their code is compiled here rather than in each function's binary.
    fn record_of<'a>(
        &'a self,
        request: &'a IdempotentRequest,
        json: SecretText,
        made: String,
        now: Time,
    ) -> BoxFuture<'a, Result<Record, IdempotencyError>> {
        async move {
            let (answer, sealed_answer) = match &self.seal {
                None => (Some(json.expose().to_owned()), None),
                Some((rings, random)) => {
                    let ring = rings.get().await?;
                    (None, Some(ring.seal(&**random, &context(request), json.expose().as_bytes())))
                }
            };
            let response = StoredResponse { made, answered_date: now, answer, sealed_answer };
            Ok(Record(request.put(ANSWER, response, now, RECORDING)?))
        }
        .boxed()
    }

    fn find<'a>(
        &'a self,
        request: &'a IdempotentRequest,
        now: Time,
    ) -> BoxFuture<'a, Result<Option<FirstResponse>, IdempotencyError>> {
        async move {
            let item: Option<RecordItem<StoredResponse>> = self.table.get(request.key(ANSWER), true, LOOKING).await?;
            let Some(item) = item.filter(|item| item.is_valid(now)) else { return Ok(None) };
            if !request.is_of(&item) {
                return Err(IdempotencyError::Conflict);
            }
            let StoredResponse { made: id, answered_date, answer, sealed_answer } = item.kept;
            let json = match (answer, sealed_answer, &self.seal) {
                (Some(json), ..) => SecretText::new(json),
                (None, Some(_), _) if now >= answered_date + SECRET_REPEATED => {
                    return Err(IdempotencyError::SecretOver { id });
                }
                (None, Some(sealed), Some((rings, _))) => {
                    let opened = rings.for_text(&sealed).await?.open(&context(request), &sealed)?;
                    SecretText::new(std::str::from_utf8(opened.expose()).map_err(|_| SealError::NotOurs)?)
                }
                _ => return Err(TableError::Missing("the response in an idempotency key's record").into()),
            };
            Ok(Some(FirstResponse { id, json }))
        }
        .boxed()
    }
}

/// A sealed response's context: its key.
fn context(request: &IdempotentRequest) -> String {
    let (partition, sort) = request.key(ANSWER);
    format!("{partition}/{sort}")
}

impl Table {
    /// Writes items and the record of the request that creates them in one transaction; without a record, behaves like
    /// [`Table::write`] and [`Table::write_all`]. `Lost` if a condition other than the record's did not hold.
    ///
    /// # Errors
    /// [`IdempotencyError::Overtaken`] if the record already exists.
    pub fn write_recorded(
        &self,
        writes: Transaction,
        record: Option<Record>,
        doing: &'static str,
    ) -> BoxFuture<'_, Result<Written<()>, IdempotencyError>> {
        async move {
            let Some(Record(record)) = record else {
                return Ok(match <[_; 1]>::try_from(writes.0) {
                    Ok([alone]) => self.write(alone, doing).await?,
                    Err(none) if none.is_empty() => Written::Done(()),
                    Err(several) => self.write_all(Transaction(several), doing).await?,
                });
            };
            let all = Transaction::new().with(record).with_all(writes.0);
            match self.transact(all, doing).await? {
                Ok(()) => Ok(Written::Done(())),
                Err(cancelled) if cancelled.is_by(0) => Err(IdempotencyError::Overtaken),
                Err(_) => Ok(Written::Lost(None)),
            }
        }
        .boxed()
    }
}

impl<T> Answered<T> {
    /// Whether the request was carried out before.
    pub const fn is_repeated(&self) -> bool {
        matches!(self, Self::Again(_))
    }

    /// The identifier of the resource that the request created; `of` takes it from a new response.
    pub fn id(&self, of: impl FnOnce(&T) -> String) -> String {
        match self {
            Self::First(answer) => of(answer),
            Self::Again(first) => first.id.clone(),
        }
    }
}

/// A repeated response equals the first one, byte for byte.
impl<T: Serialize> Serialize for Answered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::First(answer) => answer.serialize(serializer),
            Self::Again(FirstResponse { json, .. }) => {
                let json: &RawValue = serde_json::from_str(json.expose()).map_err(S::Error::custom)?;
                json.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_repeated_response_equals_the_first_byte_for_byte() {
        let json = r#"{ "id":"whk_1", "big":123456789012345678901234567890.10 }"#;
        let again = Answered::<()>::Again(FirstResponse { id: "whk_1".into(), json: SecretText::new(json) });
        assert_eq!(serde_json::to_string(&again).expect("JSON"), json);
        assert!(again.is_repeated() && again.id(|()| String::new()) == "whk_1");
        let first = Answered::First(json!({ "a": 1 }));
        assert_eq!(serde_json::to_string(&first).expect("JSON"), r#"{"a":1}"#);
        assert!(!first.is_repeated());
    }

    #[test]
    fn a_printed_response_shows_no_secret() {
        let again = FirstResponse { id: "whk_1".into(), json: SecretText::new(r#"{"signingSecret":"hunter2"}"#) };
        assert!(!format!("{again:?}").contains("hunter2"));
    }
}
