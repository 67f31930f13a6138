//! Batches: checks on a whole batch, and the results for its entries.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>

use std::collections::HashSet;

use serde::Serialize;

use super::{Entry, Nothing, SentAnswer};
use crate::refusal::{Kind, Refusal};

/// The maximum number of entries.
const MAX_ENTRIES: usize = 10;
/// The maximum length of an entry's identifier.
const MAX_ID: usize = 80;

/// The response to a batch.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Batch {
    successful: Vec<Successful>,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Successful {
    id: String,
    #[serde(flatten)]
    done: Done,
}

/// The result of a successful entry.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Done {
    Sent(SentAnswer),
    Nothing(Nothing),
}

impl From<SentAnswer> for Done {
    fn from(sent: SentAnswer) -> Self {
        Self::Sent(sent)
    }
}

impl From<Nothing> for Done {
    fn from(nothing: Nothing) -> Self {
        Self::Nothing(nothing)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Failed {
    id: String,
    code: &'static str,
    message: String,
    sender_fault: bool,
}

impl Batch {
    /// Performs the entries in order.
    pub fn of<T>(entries: impl IntoIterator<Item = (String, T)>, perform: impl Fn(T) -> Result<Done, Refusal>) -> Self {
        let mut batch = Self::default();
        for (id, entry) in entries {
            match perform(entry) {
                Ok(done) => batch.successful.push(Successful { id, done }),
                Err(Refusal { kind, message }) => {
                    batch.failed.push(Failed { id, code: kind.code(), message, sender_fault: true });
                }
            }
        }
        batch
    }
}

/// Checks the number of entries, and their identifiers.
pub fn check<E: Entry>(entries: &[E]) -> Result<(), Refusal> {
    if entries.is_empty() {
        let message = "There should be at least one entry in the request.";
        return Err(Refusal::new(Kind::EmptyBatchRequest, message));
    }
    if entries.len() > MAX_ENTRIES {
        let message =
            format!("Maximum number of entries per request are {MAX_ENTRIES}. You have sent {}.", entries.len());
        return Err(Refusal::new(Kind::TooManyEntries, message));
    }
    let mut seen = HashSet::new();
    for id in entries.iter().map(E::id) {
        let is_id = (1..=MAX_ID).contains(&id.len())
            && id.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_".contains(&letter));
        if !is_id {
            let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                           It can be at most 80 letters long.";
            return Err(Refusal::new(Kind::InvalidBatchEntryId, message));
        }
        if !seen.insert(id) {
            return Err(Refusal::new(Kind::EntryIdsNotDistinct, format!("Id {id} repeated.")));
        }
    }
    Ok(())
}
