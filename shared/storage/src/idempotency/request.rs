//! Requests with an idempotency key, and the plan in a publication's record.

use std::time::Duration;

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::sealing::SealError;
use crate::table::{Condition, Put, Table, TableError, Written, at_most, is_new};
use base::Time;
use problem::{Problem, ProblemKind, canonical};

/// How long a key is remembered.
pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a response with a secret can be repeated. A replaced data key is kept for longer, so that it can open the
/// response.
pub const SECRET_REPEATED: Duration = Duration::from_secs(10 * 60);

/// The longest key, in bytes.
const MAX_KEY_LENGTH: usize = 255;
/// The sort key of publications' plans.
const PUBLICATION: &str = "PUBLICATION";
/// The sort key of feed reads' batches.
const BATCH: &str = "BATCH";

const CLAIMING: &str = "claiming an idempotency key";
const LOOKING: &str = "looking for a claimed idempotency key";

/// The value of an `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyKey<'a>(&'a str);

impl<'a> IdempotencyKey<'a> {
    /// Reads the key from all values of the header, if there are any.
    ///
    /// # Errors
    /// The fault, as the second half of a sentence that begins with the header's name.
    pub fn read(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Self>, String> {
        let fault = || format!("must be sent only once, with 1 to {MAX_KEY_LENGTH} printable ASCII characters");
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => {
                let text = std::str::from_utf8(value).ok().map(str::trim);
                let is_key = |text: &&str| {
                    (1..=MAX_KEY_LENGTH).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
                };
                let text = text.filter(is_key);
                text.map(|text| Some(Self(text))).ok_or_else(fault)
            }
            _ => Err(fault()),
        }
    }
}

/// A request's sender, and its path. Equal keys with different senders or paths are different keys.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The request's managing entity.
    pub entity: &'a str,
    /// The application's client identifier.
    pub client: &'a str,
    /// The path, with the identifiers in it.
    pub path: &'a str,
}

/// A request with an idempotency key: the partition of its record, and its body's hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    partition: String,
    /// SHA-256 of the body's canonical form, in Base64. It must be equal whenever the request is repeated.
    request_hash: String,
    /// SHA-256 of the body's bytes. Records from release 1.0.0 have it, and live for a day.
    hash_of_bytes: String,
}

/// A record in the table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordItem<T> {
    pk: String,
    sk: String,
    request_hash: String,
    expires_at: i64,
    #[serde(flatten)]
    pub(super) kept: T,
}

impl<T> RecordItem<T> {
    /// Whether the record is still valid. The table removes a record some days after its end.
    pub(super) fn is_valid(&self, now: Time) -> bool {
        self.expires_at > now.as_seconds()
    }
}

impl IdempotentRequest {
    /// A sender's request with this key and this body.
    pub fn of_request(Sender { entity, client, path }: Sender<'_>, key: IdempotencyKey<'_>, body: &[u8]) -> Self {
        // No part contains a line break, so that different parts always give different strings.
        let text = format!("{client}\n{path}\n{}", key.0);
        let form = canonical::of_body(body);
        Self {
            partition: partition(entity, &text),
            request_hash: hash(form.as_ref().map_or(body, |form| form.as_bytes())),
            hash_of_bytes: hash(body),
        }
    }

    /// An event from the event bus for this managing entity, identified by its identifier on the bus.
    pub fn of_bus(entity: &str, id: &str, content: &[u8]) -> Self {
        let hash_of_bytes = hash(content);
        Self { partition: partition(entity, &format!("bus:{id}")), request_hash: hash_of_bytes.clone(), hash_of_bytes }
    }

    /// Adds a fact that is not in the body, such as rights from the token. Requests with different values of `more` are
    /// different requests.
    #[must_use]
    pub fn meaning(self, more: &str) -> Self {
        let with_more = |before: &str| hash(format!("{before}\n{more}").as_bytes());
        let request_hash = with_more(&self.request_hash);
        let hash_of_bytes = with_more(&self.hash_of_bytes);
        Self { request_hash, hash_of_bytes, ..self }
    }

    /// Separates a verb's keys from those of POST at the same path.
    #[must_use]
    pub fn with_verb(self, verb: &str) -> Self {
        Self { partition: format!("{}#{verb}", self.partition), ..self }
    }

    /// Whether a record belongs to a request with an equal body.
    pub(super) fn is_of<T>(&self, item: &RecordItem<T>) -> bool {
        [&self.request_hash, &self.hash_of_bytes].contains(&&item.request_hash)
    }

    /// Writes and returns a plan, or returns that of an earlier request with the key; `None` if that request had a
    /// different body. Of several concurrent requests, the first wins, and all of them continue with its plan.
    pub async fn claim<T>(&self, table: &Table, plan: T, now: Time) -> Result<Option<T>, TableError>
    where
        T: Serialize + DeserializeOwned,
    {
        self.claim_with(table, self.put(PUBLICATION, plan, now, CLAIMING)?).await
    }

    /// Writes and returns a feed read's batch, or returns that of an earlier request with the key; `None` if that
    /// request had a different body. The key is free again at `end`.
    pub async fn claim_batch<T>(&self, table: &Table, batch: T, end: Time, now: Time) -> Result<Option<T>, TableError>
    where
        T: Serialize + DeserializeOwned,
    {
        self.claim_with(table, self.put_until(BATCH, batch, end, now, CLAIMING)?).await
    }

    async fn claim_with<T>(&self, table: &Table, put: Put) -> Result<Option<T>, TableError>
    where
        T: Serialize + DeserializeOwned,
    {
        match table.put_and_read(put, CLAIMING).await? {
            Written::Done(item) | Written::Lost(Some(item)) => Ok(self.kept_in(item)),
            Written::Lost(None) => Err(TableError::Missing("the plan in an idempotency key's record")),
        }
    }

    /// Whether a plan with this key is stored, for any body.
    pub async fn is_claimed(&self, table: &Table, now: Time) -> Result<bool, TableError> {
        let item: Option<RecordItem<IgnoredAny>> = table.read(self.key(PUBLICATION), LOOKING).await?;
        Ok(item.is_some_and(|item| item.is_valid(now)))
    }

    /// The batch of an earlier feed read with the key, until the batch ends.
    ///
    /// # Errors
    /// [`IdempotencyError::Conflict`] if that request had a different body.
    pub async fn batch<T: DeserializeOwned>(&self, table: &Table, now: Time) -> Result<Option<T>, IdempotencyError> {
        let item: Option<RecordItem<T>> = table.read(self.key(BATCH), LOOKING).await?;
        let item = item.filter(|item| item.is_valid(now));
        item.map(|item| self.kept_in(item).ok_or(IdempotencyError::Conflict)).transpose()
    }

    fn kept_in<T>(&self, item: RecordItem<T>) -> Option<T> {
        self.is_of(&item).then_some(item.kept)
    }

    pub(super) fn key(&self, sort: &str) -> (String, String) {
        (self.partition.clone(), sort.to_owned())
    }

    /// The write of the record, provided that the key is free. An expired key is free, even if the table has not
    /// removed it yet.
    pub(super) fn put<T: Serialize>(
        &self,
        sort: &str,
        kept: T,
        now: Time,
        doing: &'static str,
    ) -> Result<Put, TableError> {
        self.put_until(sort, kept, now + RETENTION, now, doing)
    }

    fn put_until<T: Serialize>(
        &self,
        sort: &str,
        kept: T,
        end: Time,
        now: Time,
        doing: &'static str,
    ) -> Result<Put, TableError> {
        let (pk, sk) = self.key(sort);
        let request_hash = self.request_hash.clone();
        let item = RecordItem { pk, sk, request_hash, expires_at: end.as_seconds(), kept };
        Ok(Put::item(&item, doing)?.only_if(is_free(now)))
    }
}

fn is_free(now: Time) -> Condition {
    is_new().or(at_most("expiresAt", now.as_seconds()))
}

fn partition(entity: &str, text: &str) -> String {
    format!("IDEMPOTENCY#{entity}#{}", hash(text.as_bytes()))
}

fn hash(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(digest::digest(&digest::SHA256, bytes))
}

/// Why a request with an idempotency key was not carried out, or why its first response was not repeated.
#[derive(Debug, thiserror::Error)]
pub enum IdempotencyError {
    /// The key was used before with a different body.
    #[error("the idempotency key was used for another request")]
    Conflict,
    /// The first response shows a secret, and the time for repeating it is over.
    #[error("the first response shows a secret, and is too old to repeat")]
    SecretOver {
        /// The identifier of the resource that the request created.
        id: String,
    },
    /// A concurrent repeat of the request wrote its record first. [`super::IdempotencyStore::once`] turns this error
    /// into that request's response.
    #[error("a repeated request ran at the same time")]
    Overtaken,
    /// A response could not be serialized or parsed.
    #[error("a response could not be written or read")]
    Answer(#[source] serde_json::Error),
    /// A response could not be sealed or opened.
    #[error("a response could not be sealed or opened")]
    Seal(#[from] SealError),
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl IdempotencyError {
    /// The Problem. `another` describes how a client that lost a secret gets another; its argument is the identifier of
    /// the resource that the request created.
    pub fn into_problem(self, another: impl FnOnce(&str) -> String) -> Problem {
        match self {
            Self::Conflict => {
                let detail = "This Idempotency-Key was already used with a different body; use a new key.";
                Problem::new(ProblemKind::IdempotencyConflict, detail)
            }
            Self::SecretOver { id } => {
                let minutes = SECRET_REPEATED.as_secs() / 60;
                let detail = format!(
                    "This request was already processed with this Idempotency-Key. Its response shows a secret, which \
                     is repeated for {minutes} minutes only. If you do not have the secret: {}.",
                    another(&id)
                );
                Problem::new(ProblemKind::SecretNotRepeated, detail).with_property("id", id)
            }
            Self::Overtaken => Problem::unavailable(self),
            Self::Answer(error) => Problem::internal(error),
            Self::Seal(error) => error.into(),
            Self::Table(error) => error.into(),
        }
    }
}

impl From<IdempotencyError> for Problem {
    fn from(error: IdempotencyError) -> Self {
        error.into_problem(|_| "ask for another one with a new key".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: Sender<'_> = Sender { entity: "hotel", client: "app1", path: "/webhook" };

    fn request(sender: Sender<'_>, key: &str, body: &[u8]) -> IdempotentRequest {
        IdempotentRequest::of_request(sender, IdempotencyKey(key), body)
    }

    #[test]
    fn an_idempotency_key_comes_once_and_in_printable_ascii() {
        let longest = "k".repeat(255);
        for (value, key) in [("a", "a"), (" a b\t", "a b"), (&longest, &longest)] {
            assert_eq!(IdempotencyKey::read([value.as_bytes()]), Ok(Some(IdempotencyKey(key))));
        }
        assert_eq!(IdempotencyKey::read([]), Ok(None));
        let long = "k".repeat(256);
        for values in [
            &["".as_bytes()][..],
            &[b" "],
            &["é".as_bytes()],
            &[b"a\x7f"],
            &[b"a\tb"],
            &[b"\xff"],
            &[b"a", b"a"],
            &[long.as_bytes()],
        ] {
            assert!(IdempotencyKey::read(values.iter().copied()).is_err(), "{values:?}");
        }
    }

    #[test]
    fn a_key_belongs_to_its_entity_application_and_path() {
        let first = request(SENDER, "key", b"{}").partition;
        assert_eq!(first, request(SENDER, "key", b"another body").partition);
        let others = [
            request(Sender { entity: "inn", ..SENDER }, "key", b"{}"),
            request(Sender { client: "app2", ..SENDER }, "key", b"{}"),
            request(Sender { path: "/application", ..SENDER }, "key", b"{}"),
            request(SENDER, "another key", b"{}"),
            request(SENDER, "key", b"{}").with_verb("DELETE"),
            IdempotentRequest::of_bus("hotel", "key", b"{}"),
        ];
        for (number, other) in others.iter().enumerate() {
            assert_ne!(first, other.partition, "{number}");
        }
    }

    #[test]
    fn a_repetition_may_write_its_body_in_another_way() {
        let record = |request_hash: String| RecordItem {
            pk: String::new(),
            sk: String::new(),
            request_hash,
            expires_at: 0,
            kept: (),
        };
        let first = request(SENDER, "key", br#"{"a":1,"b":"x"}"#);
        let stored = record(first.request_hash.clone());
        for again in [r#"{"a":1,"b":"x"}"#, r#"{ "b": "\u0078", "a": 1.0 }"#] {
            assert!(request(SENDER, "key", again.as_bytes()).is_of(&stored), "{again}");
            let more = request(SENDER, "key", again.as_bytes()).meaning("more");
            assert!(more.is_of(&record(first.clone().meaning("more").request_hash)) && !more.is_of(&stored), "{again}");
        }
        for other in [r#"{"a":2,"b":"x"}"#, r#"{"a":1}"#, "", "{"] {
            assert!(!request(SENDER, "key", other.as_bytes()).is_of(&stored), "{other}");
        }
        let of_bytes = record(first.hash_of_bytes.clone());
        assert!(first.is_of(&of_bytes), "a record of release 1.0.0");
    }

    #[test]
    fn a_key_is_forgotten_after_a_day() {
        let start = Time::from_millis(1_795_167_900_000);
        let item = RecordItem {
            pk: String::new(),
            sk: String::new(),
            request_hash: String::new(),
            expires_at: (start + RETENTION).as_seconds(),
            kept: (),
        };
        assert!(item.is_valid(start + Duration::from_secs(24 * 60 * 60 - 1)));
        assert!(!item.is_valid(start + Duration::from_secs(24 * 60 * 60)));
    }
}
