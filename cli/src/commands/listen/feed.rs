//! A webhook's feed: reading deliveries and acknowledging them.

use std::{cell::Cell, collections::BTreeMap, time::Duration};

use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::Failure,
    service::{Call, Service, WITHIN},
};

/// The maximum number of deliveries per read.
const LIMIT: u64 = 10;
/// How long the service waits for a delivery, in seconds.
const WAIT: u64 = 10;
/// The time after which an unconfirmed delivery is returned again, in seconds. It allows 15 s for the response, as much
/// again for responses to earlier deliveries, and acknowledgements delayed by one of the service's limits.
const VISIBILITY: u64 = 120;

/// The feed of a webhook that only this process reads.
pub struct Feed<'a> {
    service: &'a Service,
    webhook: &'a str,
    /// The number of answered reads. It is the next read's idempotency key, so a repetition gets a lost response's
    /// deliveries.
    reads: Cell<u64>,
}

/// A delivery as a webhook's endpoint would receive it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedDelivery {
    pub delivery_identifier: String,
    pub attempt_number: u64,
    pub receipt: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// An acknowledgement's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AckOutcome {
    Confirmed,
    Failed,
    /// The receipt has expired: the delivery will be returned again.
    Expired,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct AckResult {
    outcome: AckOutcome,
}

impl<'a> Feed<'a> {
    pub fn new(service: &'a Service, webhook: &'a str) -> Self {
        Self { service, webhook, reads: Cell::new(0) }
    }

    /// The next deliveries, if any arrived in time. After a failure, the next call repeats the request.
    pub async fn next(&self) -> Result<Vec<FeedDelivery>, Failure> {
        let body = json!({ "limit": LIMIT, "wait": WAIT, "visibility": VISIBILITY });
        let within = WITHIN + Duration::from_secs(WAIT);
        let path = ["webhook", self.webhook, "feed", "read"];
        let key = Some(format!("read-{}", self.reads.get()));
        let page: Page<FeedDelivery> = self.service.call(Call { key, within, ..Call::post(&path, body) }).await?;
        self.reads.set(self.reads.get() + 1);
        Ok(page.items)
    }

    /// Confirms a delivery, or reports why it failed.
    pub async fn acknowledge(&self, receipt: &str, failure: Option<&str>) -> Result<AckOutcome, Failure> {
        let body = match failure {
            None => json!({ "confirmed": [receipt] }),
            Some(reason) => json!({ "failed": [{ "receipt": receipt, "reason": reason }] }),
        };
        let path = ["webhook", self.webhook, "feed", "ack"];
        let results: Page<AckResult> = self.service.call(Call::post(&path, body)).await?;
        Ok(results.items.first().map_or(AckOutcome::Other, |result| result.outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_of_a_later_version_is_accepted() {
        let parsed = |text: &str| serde_json::from_str::<AckOutcome>(text).expect("an outcome");
        assert_eq!(parsed("\"expired\""), AckOutcome::Expired);
        assert_eq!(parsed("\"postponed\""), AckOutcome::Other);
    }
}
