//! An attempt to deliver, as it stands in the history.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::subscriptions::tally::AttemptOutcome;
use base::Time;
use outbound::{AttemptError, HttpResponse};

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Its beginning.
    pub attempt_date: Time,
    /// From 1.
    pub attempt_number: u32,
    pub duration_ms: u64,
    /// A stable code and a sentence, if the attempt never completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The status of the answer; none if the attempt never completed.
    #[serde(default)]
    pub http_status: Option<u16>,
    /// The first 4 096 bytes of the answer's body, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_body: Option<String>,
}

impl Attempt {
    /// The outcome of the attempt, as far as its webhook's health and statistics go.
    pub fn outcome(&self) -> AttemptOutcome {
        AttemptOutcome {
            http_status: self.http_status,
            error: self.error.clone(),
            duration: Duration::from_millis(self.duration_ms),
        }
    }

    /// About how many bytes it takes in the table.
    pub fn size(&self) -> usize {
        const NAMES_AND_NUMBERS: usize = 100;
        let texts = [&self.error, &self.response_body].into_iter().flatten();
        NAMES_AND_NUMBERS + texts.map(String::len).sum::<usize>()
    }

    /// The attempt of an exchange that ended like this.
    pub fn of(number: u32, began: Time, ended: Time, outcome: &Result<HttpResponse, AttemptError>) -> Self {
        let duration_ms = u64::try_from(ended.since(began).as_millis()).unwrap_or(u64::MAX);
        let attempt = Self {
            attempt_date: began,
            attempt_number: number,
            duration_ms,
            error: None,
            http_status: None,
            response_body: None,
        };
        match outcome {
            Ok(answer) => Self {
                http_status: Some(answer.status.as_u16()),
                response_body: Some(answer.text()).filter(|body| !body.is_empty()),
                ..attempt
            },
            Err(error) => Self { error: Some(error.to_string()), ..attempt },
        }
    }
}
