//! The answers to requests with an idempotency key, for as long as the key is remembered.
//!
//! An answer that shows a secret is sealed, and repeated for ten minutes: long enough for a client that lost its
//! connection, and too short for a key in an old log to be worth something.

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

/// The sort key of answers.
const ANSWER: &str = "ANSWER";

const LOOKING: &str = "looking for an idempotency key";
const RECORDING: &str = "recording an idempotency key";

/// The answers in the table.
#[derive(Clone)]
pub struct IdempotencyStore {
    table: Table,
    /// Seals answers that show a secret.
    seal: Option<(KeyRings, SharedRandom)>,
}

/// The record of a request, which is written together with what the request makes.
#[derive(Debug, Clone)]
pub struct Record(Put);

/// The answer to a request, which may have come before.
#[derive(Debug)]
pub enum Answered<T> {
    /// The request is carried out.
    First(T),
    /// The request was carried out when its key first came.
    Again(FirstResponse),
}

/// The first answer to a request, as it was given.
#[derive(Debug)]
pub struct FirstResponse {
    /// The identifier of what the request made or was about.
    pub id: String,
    json: SecretText,
}

/// The part of a record that repeats an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptAnswer {
    /// The identifier of what the request made or was about.
    made: String,
    answered_date: Time,
    /// The answer's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The same, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed_answer: Option<String>,
}

impl IdempotencyStore {
    /// IdempotencyStore that show no secret, in this table.
    pub fn new(table: Table) -> Self {
        Self { table, seal: None }
    }

    /// IdempotencyStore that show a secret.
    pub fn sealed(table: Table, rings: KeyRings, random: SharedRandom) -> Self {
        Self { table, seal: Some((rings, random)) }
    }

    /// Carries a request out, or repeats the first answer to it. The work writes the [`Record`] of the request with
    /// what it makes; a request without a key has none.
    ///
    /// Work that fails may have been overtaken by the same request at the same moment: then the answer to that one is
    /// the answer to this one, too.
    pub async fn once<T, E>(
        &self,
        once: Option<&IdempotentRequest>,
        now: Time,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Answered<T>, E>
    where
        E: From<IdempotencyError>,
    {
        let Some(once) = once else { return work.await.map(Answered::First) };
        if let Some(first) = self.find(once, now).await? {
            return Ok(Answered::Again(first));
        }
        match work.await {
            Ok(answer) => Ok(Answered::First(answer)),
            Err(error) => self.find(once, now).await?.map(Answered::Again).ok_or(error),
        }
    }

    /// The record of a request with the answer to it, and with the identifier of what it makes or is about.
    pub async fn record(
        &self,
        once: Option<&IdempotentRequest>,
        answer: &impl Serialize,
        made: &impl Display,
        now: Time,
    ) -> Result<Option<Record>, IdempotencyError> {
        let Some(once) = once else { return Ok(None) };
        let json = SecretText::new(serde_json::to_string(answer).map_err(IdempotencyError::Answer)?);
        self.record_of(once, json, made.to_string(), now).await.map(Some)
    }

    // Boxed, as the futures of `Table`: their code is compiled here, and not in each function's binary.
    fn record_of<'a>(
        &'a self,
        once: &'a IdempotentRequest,
        json: SecretText,
        made: String,
        now: Time,
    ) -> BoxFuture<'a, Result<Record, IdempotencyError>> {
        async move {
            let (answer, sealed_answer) = match &self.seal {
                None => (Some(json.expose().to_owned()), None),
                Some((rings, random)) => {
                    let ring = rings.get().await?;
                    (None, Some(ring.seal(&**random, &context(once), json.expose().as_bytes())))
                }
            };
            let kept = KeptAnswer { made, answered_date: now, answer, sealed_answer };
            Ok(Record(once.put(ANSWER, kept, now, RECORDING)?))
        }
        .boxed()
    }

    fn find<'a>(
        &'a self,
        once: &'a IdempotentRequest,
        now: Time,
    ) -> BoxFuture<'a, Result<Option<FirstResponse>, IdempotencyError>> {
        async move {
            let item: Option<RecordItem<KeptAnswer>> = self.table.get(once.key(ANSWER), true, LOOKING).await?;
            let Some(item) = item.filter(|item| item.is_good(now)) else { return Ok(None) };
            if item.request_hash != once.request_hash {
                return Err(IdempotencyError::Conflict);
            }
            let KeptAnswer { made: id, answered_date, answer, sealed_answer } = item.kept;
            let json = match (answer, sealed_answer, &self.seal) {
                (Some(json), ..) => SecretText::new(json),
                (None, Some(_), _) if now >= answered_date + SECRET_REPEATED => {
                    return Err(IdempotencyError::SecretOver { id });
                }
                (None, Some(sealed), Some((rings, _))) => {
                    let opened = rings.for_text(&sealed).await?.open(&context(once), &sealed)?;
                    SecretText::new(std::str::from_utf8(opened.expose()).map_err(|_| SealError::NotOurs)?)
                }
                _ => return Err(TableError::Missing("the answer of an idempotency key").into()),
            };
            Ok(Some(FirstResponse { id, json }))
        }
        .boxed()
    }
}

/// The place that an answer is sealed for.
fn context(once: &IdempotentRequest) -> String {
    let (partition, sort) = once.key(ANSWER);
    format!("{partition}/{sort}")
}

impl Table {
    /// Writes these items together with the record of the request that makes them, all or nothing; without a record, as
    /// [`Table::write`] and [`Table::write_all`] do. Lost when another condition than the record's did not hold.
    ///
    /// # Errors
    /// [`IdempotencyError::Overtaken`], when the record is there already.
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

    /// The identifier of what the request made, which the first answer has like this.
    pub fn id(&self, of: impl FnOnce(&T) -> String) -> String {
        match self {
            Self::First(answer) => of(answer),
            Self::Again(first) => first.id.clone(),
        }
    }
}

/// The body is the first answer's, byte for byte.
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
    fn a_repeated_answer_is_the_first_byte_for_byte() {
        let json = r#"{ "id":"whk_1", "big":123456789012345678901234567890.10 }"#;
        let again = Answered::<()>::Again(FirstResponse { id: "whk_1".into(), json: SecretText::new(json) });
        assert_eq!(serde_json::to_string(&again).expect("JSON"), json);
        assert!(again.is_repeated() && again.id(|()| String::new()) == "whk_1");
        let first = Answered::First(json!({ "a": 1 }));
        assert_eq!(serde_json::to_string(&first).expect("JSON"), r#"{"a":1}"#);
        assert!(!first.is_repeated());
    }

    #[test]
    fn a_printed_answer_shows_no_secret() {
        let again = FirstResponse { id: "whk_1".into(), json: SecretText::new(r#"{"signingSecret":"hunter2"}"#) };
        assert!(!format!("{again:?}").contains("hunter2"));
    }
}
