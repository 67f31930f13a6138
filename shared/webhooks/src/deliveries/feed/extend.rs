//! Extends the leases of a reader that needs more time for its deliveries.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    deliveries::{
        error::DeliveryError,
        feed::{Feeds, MAX_AT_ONCE, PARALLEL, VISIBILITIES, integer, receipt::Receipt},
        store::claim::ReaderLease,
    },
    subscriptions::{Webhook, WebhookError},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId};
use problem::{JsonBody, Pointer, Problem, Rule};
use storage::TableError;

/// Time limit for the writes of a request, which has 12 s in total.
const LIMIT: Duration = Duration::from_secs(8);

/// A request to extend the leases of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    receipts: Vec<Receipt>,
    visibility: Duration,
}

/// The outcome for a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Extended {
    /// The reader holds the delivery until the new time.
    Extended,
    /// The receipt is no longer valid: the delivery was answered, is final, or is with another reader.
    Expired,
}

/// The result for a receipt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionResult {
    delivery_identifier: DeliveryId,
    receipt: String,
    outcome: Extended,
    /// When the feed offers the delivery again, unless the reader answers first; absent if the receipt has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    visible_from: Option<Time>,
}

/// A request's results, in the order of its receipts.
#[derive(Debug, Serialize)]
pub struct Extensions {
    items: Vec<ExtensionResult>,
}

impl Extension {
    /// Reads and checks a request's body.
    ///
    /// # Errors
    /// 400 with the location of each violation.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let texts: Option<Vec<String>> = body.required("receipts", "a list of receipts");
        let what = "a number of seconds from 10 to 3600";
        let visibility = if body.has("visibility") {
            integer(&mut body, "visibility", VISIBILITIES, what)
        } else {
            body.required("visibility", what)
        };
        let violations = &mut body.violations;
        let mut receipts = Vec::new();
        match texts {
            Some(texts) if (1..=MAX_AT_ONCE).contains(&texts.len()) => {
                for (position, text) in texts.iter().enumerate() {
                    let pointer = Pointer::from("receipts").at(position);
                    match Receipt::parse(text) {
                        None => violations.add(pointer, Rule::InvalidFormat, "is not a receipt from this feed"),
                        Some(receipt) if receipts.contains(&receipt) => {
                            violations.add(pointer, Rule::Duplicate, "must not be given twice");
                        }
                        Some(receipt) => receipts.push(receipt),
                    }
                }
            }
            Some(texts) => {
                let rule = if texts.is_empty() { Rule::Required } else { Rule::TooLong };
                violations.add("receipts", rule, "must have 1 to 100 receipts");
            }
            None => {}
        }
        let visibility = Duration::from_secs(body.finish_with(visibility)?);
        Ok(Self { receipts, visibility })
    }
}

impl Feeds {
    /// Extends a reader's leases to `visibility` from now. Repeating the request extends them again.
    pub async fn extend(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        Extension { receipts, visibility }: Extension,
    ) -> Result<Extensions, DeliveryError> {
        let found = self.webhooks.find(entity, webhook).await?.ok_or(WebhookError::NotFound)?.webhook;
        let read = &found;
        let deadline = Instant::now() + LIMIT;
        let extended = receipts
            .into_iter()
            .map(|receipt| async move { self.extend_one(entity, read, &receipt, visibility, deadline).await });
        let extended: Vec<_> = stream::iter(extended).buffered(PARALLEL).collect().await;
        Ok(Extensions { items: extended.into_iter().collect::<Result<_, _>>()? })
    }

    async fn extend_one(
        &self,
        entity: &AuthorizedEntity,
        webhook: &Webhook,
        receipt: &Receipt,
        visibility: Duration,
        deadline: Instant,
    ) -> Result<ExtensionResult, TableError> {
        let end = self.clock.now() + visibility;
        let held = ReaderLease {
            owner: entity.id(),
            webhook: &webhook.id,
            delivery: &receipt.delivery,
            attempt: receipt.attempt,
            lease: &receipt.lease,
        };
        let is_extended = self.deliveries.extend_lease(&held, end, deadline).await?;
        Ok(ExtensionResult {
            delivery_identifier: receipt.delivery.clone(),
            receipt: receipt.to_string(),
            outcome: if is_extended { Extended::Extended } else { Extended::Expired },
            visible_from: is_extended.then_some(end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refused;

    const RECEIPT: &str = "dlv_01m7w5gmev32p3wwt3y0b8j32h.1.0b0a6a0e-1f4e-4c8e-9d53-0d6a3c0e2c11";

    #[test]
    fn an_extension_names_its_receipts_and_the_new_time() {
        let body = format!(r#"{{"receipts":["{RECEIPT}"],"visibility":3600}}"#);
        let receipts = vec![Receipt::parse(RECEIPT).expect("a receipt")];
        let expected = Extension { receipts, visibility: Duration::from_secs(3_600) };
        assert_eq!(Extension::read(body.as_bytes()).expect("good"), expected);
    }

    #[test]
    fn every_violation_of_an_extension_is_listed_with_its_place() {
        let violations = |body: &str| refused(&Extension::read(body.as_bytes()).expect_err(body));
        assert_eq!(violations("{}"), ["receipts", "visibility"]);
        assert_eq!(violations(r#"{"receipts":[],"visibility":9}"#), ["visibility", "receipts"]);
        let twice = format!(r#"{{"receipts":["{RECEIPT}","x","{RECEIPT}"],"visibility":3601,"more":1}}"#);
        assert_eq!(violations(&twice), ["visibility", "receipts[1]", "receipts[2]", "more"]);
        let many = format!(r#"{{"receipts":[{}],"visibility":60}}"#, vec!["\"x\""; 101].join(","));
        assert_eq!(violations(&many), ["receipts"]);
    }
}
