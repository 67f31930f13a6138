//! Readers' answers: each one confirms a delivery, or reports why it failed.
//!
//! A request has a few seconds to record its answers, so that its function has time left to count them and to wake the
//! deliveries behind them. If the table throttles for longer, the reader gets an error and repeats the request. Answers
//! that were already recorded get the same result.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::{join, time::Instant};

use crate::{
    deliveries::{
        dispatch::counting::{self, RecordedAttempt},
        error::DeliveryError,
        feed::{Feeds, MAX_AT_ONCE, PARALLEL, receipt::Receipt},
        outcome::Outcome,
        state::{
            attempt::ErrorCode,
            delivery::{Delivery, Status},
            head::Head,
        },
        store::claim::Claimed,
    },
    subscriptions::{Webhook, WebhookError, health::tally::AttemptOutcome},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId, logging};
use problem::{JsonBody, Pointer, Problem, Rule, Violations};
use storage::TableError;

/// The maximum length of a failure's reason, in characters.
const MAX_REASON: usize = 500;
/// Time limit for recording a request's answers. Counting and waking take a few more seconds, and the function has 15
/// s.
const LIMIT: Duration = Duration::from_secs(4);

/// A request's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement(Vec<(Receipt, Outcome)>);

/// A failure in a request's body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    receipt: String,
    reason: String,
}

/// The outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Recorded {
    /// The delivery is delivered.
    Confirmed,
    /// The attempt failed.
    Failed,
    /// The receipt is no longer valid: the answer came after the visibility timeout, and the delivery is final or with
    /// another reader.
    Expired,
}

/// The result of an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerResult {
    delivery_identifier: DeliveryId,
    receipt: String,
    outcome: Recorded,
    /// When the feed offers the delivery again; absent if it is final or the receipt has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_date: Option<Time>,
}

/// A request's results, in the order of its answers.
#[derive(Debug, Serialize)]
pub struct Acknowledged {
    items: Vec<AnswerResult>,
}

impl Acknowledgement {
    /// Reads and checks a request's body.
    ///
    /// # Errors
    ///
    /// 400 with the location of each violation.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let given = ["confirmed", "failed"].map(|name| body.has(name));
        let confirmed: Option<Vec<String>> = body.optional("confirmed", "a list of receipts");
        let failed: Option<Vec<Failure>> = body.optional_objects("failed", "an object with receipt and reason");
        let is_readable = given == [confirmed.is_some(), failed.is_some()];
        let (confirmed, failed) = (confirmed.unwrap_or_default(), failed.unwrap_or_default());
        let violations = &mut body.violations;
        let count = confirmed.len() + failed.len();
        if !(1..=MAX_AT_ONCE).contains(&count) && is_readable {
            let rule = if count == 0 { Rule::Required } else { Rule::TooLong };
            violations.add("confirmed", rule, "must have 1 to 100 receipts, including those in failed");
        }
        let mut answers = Vec::new();
        if count <= MAX_AT_ONCE {
            for (position, text) in confirmed.iter().enumerate() {
                add(&mut answers, Pointer::from("confirmed").at(position), text, Outcome::Confirmed, violations);
            }
            for (position, Failure { receipt, reason }) in failed.into_iter().enumerate() {
                let reason = reason.trim();
                let failure = Pointer::from("failed").at(position);
                if !(1..=MAX_REASON).contains(&reason.chars().count()) {
                    let rule = if reason.is_empty() { Rule::Required } else { Rule::TooLong };
                    violations.add(failure.member("reason"), rule, "must have 1 to 500 characters");
                }
                let outcome = Outcome::Reported(reason.to_owned());
                add(&mut answers, failure.member("receipt"), &receipt, outcome, violations);
            }
        }
        body.finish()?;
        Ok(Self(answers))
    }
}

/// Adds an answer, unless its receipt is malformed or already has one.
fn add(
    answers: &mut Vec<(Receipt, Outcome)>,
    pointer: Pointer,
    text: &str,
    outcome: Outcome,
    violations: &mut Violations,
) {
    match Receipt::parse(text) {
        None => violations.add(pointer, Rule::InvalidFormat, "is not a receipt from this feed"),
        Some(receipt) if answers.iter().any(|(known, _)| *known == receipt) => {
            violations.add(pointer, Rule::Duplicate, "must not be given twice");
        }
        Some(receipt) => answers.push((receipt, outcome)),
    }
}

/// The effect of an answer.
struct Answered {
    result: AnswerResult,
    /// The delivery before the answer, and its attempt, if this request recorded it.
    recorded: Option<(Delivery, AttemptOutcome)>,
    /// The delivery, if this answer or an earlier one made it final: a repeated request completes one that died after
    /// recording the answer.
    ended: Option<Head>,
}

impl Feeds {
    /// Records a reader's answers. Repeating an answer changes nothing and has the same result.
    pub async fn acknowledge(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        Acknowledgement(answers): Acknowledgement,
    ) -> Result<Acknowledged, DeliveryError> {
        let found = self.webhooks.find(entity, webhook).await?.ok_or(WebhookError::NotFound)?.webhook;
        let read = &found;
        let until = Instant::now() + LIMIT;
        let answered = answers
            .into_iter()
            .map(|(receipt, outcome)| async move { self.answer(entity, read, &receipt, &outcome, until).await });
        // All of them are awaited: a recorded attempt must be counted, even if another answer fails.
        let answered: Vec<_> = stream::iter(answered).buffered(PARALLEL).collect().await;
        let (mut items, mut recorded, mut finals, mut failed) = (Vec::new(), Vec::new(), Vec::new(), None);
        for answered in answered {
            match answered {
                Ok(Answered { result, recorded: attempt, ended }) => {
                    items.push(result);
                    recorded.extend(attempt);
                    finals.extend(ended);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let wakes = finals.into_iter().map(|last| async move { self.wake_next(&last, read, self.clock.now()).await });
        join!(self.count(recorded), stream::iter(wakes).buffer_unordered(PARALLEL).collect::<()>());
        failed.map_or(Ok(Acknowledged { items }), |error| Err(error.into()))
    }

    /// Records one answer before this deadline.
    async fn answer(
        &self,
        entity: &AuthorizedEntity,
        webhook: &Webhook,
        receipt: &Receipt,
        outcome: &Outcome,
        until: Instant,
    ) -> Result<Answered, TableError> {
        let result = |outcome, next_attempt_date| AnswerResult {
            delivery_identifier: receipt.delivery.clone(),
            receipt: receipt.to_string(),
            outcome,
            next_attempt_date,
        };
        let is_own = |delivery: &Delivery| {
            delivery.owner_identifier == *entity.id() && delivery.webhook_identifier == webhook.id
        };
        if Instant::now() >= until {
            return Err(TableError::code("recording a reader's answers", "ThrottlingException"));
        }
        let head = self.deliveries.head(&receipt.delivery).await?.filter(|head| is_own(head.delivery()));
        let expired = || Answered { result: result(Recorded::Expired, None), recorded: None, ended: None };
        let Some(head) = head else { return Ok(expired()) };
        let delivery = head.delivery().clone();
        let now = self.clock.now();
        if head.is_leased_by(&receipt.lease) && head.next_attempt() == receipt.attempt {
            let claimed = Claimed::by_reader(head, receipt.lease.clone()).until(until);
            if let Some((counted, next)) = self.recorder(webhook).record(&claimed, outcome, now).await? {
                let recorded = if *outcome == Outcome::Confirmed { Recorded::Confirmed } else { Recorded::Failed };
                return Ok(Answered {
                    result: result(recorded, next.retry_at()),
                    ended: next.retry_at().is_none().then(|| claimed.head().clone()),
                    recorded: Some((delivery, counted)),
                });
            }
            return Ok(expired());
        }
        // The response to an earlier request may have been lost.
        let is_last = delivery.attempt_count == receipt.attempt;
        let was_reported = delivery.last_error == Some(ErrorCode::Reported);
        let recorded = match outcome {
            Outcome::Confirmed if is_last && head.status() == Status::Delivered => Recorded::Confirmed,
            Outcome::Reported(_) if is_last && was_reported => Recorded::Failed,
            _ => Recorded::Expired,
        };
        if recorded == Recorded::Expired {
            return Ok(expired());
        }
        let next = head.next_time();
        Ok(Answered { result: result(recorded, next), recorded: None, ended: next.is_none().then_some(head) })
    }

    /// Counts attempts by a webhook's readers, with their deliveries, for the webhook's health and statistics.
    pub(super) async fn count(&self, recorded: Vec<(Delivery, AttemptOutcome)>) {
        let Some((delivery, _)) = recorded.first() else { return };
        let entity = AuthorizedEntity::owning_delivery(delivery.owner_identifier.clone());
        let webhook = &delivery.webhook_identifier;
        let health = match self.health_tracker.healths.find(&entity, webhook).await {
            Ok(health) => health,
            Err(error) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    webhookId = %webhook,
                    "a reader's attempts were not counted and are missing from the webhook's health and statistics"
                );
                return;
            }
        };
        let recorded = recorded.iter().map(|(delivery, outcome)| RecordedAttempt {
            entity: entity.clone(),
            webhook: webhook.clone(),
            outcome: outcome.clone(),
            health_before: health.clone(),
            operational: delivery.is_operational(),
        });
        counting::count(recorded.collect(), &self.health_tracker, &self.stats, self.clock.now()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refused;

    const RECEIPT: &str = "dlv_01m7w5gmev32p3wwt3y0b8j32h.1.0b0a6a0e-1f4e-4c8e-9d53-0d6a3c0e2c11";

    fn violations(body: &str) -> Vec<String> {
        refused(&Acknowledgement::read(body.as_bytes()).expect_err(body))
    }

    #[test]
    fn an_answer_confirms_or_gives_a_reason() {
        let receipt = Receipt::parse(RECEIPT).expect("a receipt");
        let confirmed = Acknowledgement::read(format!(r#"{{"confirmed":["{RECEIPT}"]}}"#).as_bytes()).expect("good");
        assert_eq!(confirmed, Acknowledgement(vec![(receipt.clone(), Outcome::Confirmed)]));
        let failed = format!(r#"{{"failed":[{{"receipt":"{RECEIPT}","reason":" HTTP 500 "}}]}}"#);
        let failed = Acknowledgement::read(failed.as_bytes()).expect("good");
        assert_eq!(failed, Acknowledgement(vec![(receipt, Outcome::Reported("HTTP 500".into()))]));
    }

    #[test]
    fn every_violation_of_an_answer_is_listed_with_its_place() {
        assert_eq!(violations("{}"), ["confirmed"]);
        assert_eq!(violations(r#"{"confirmed":["x"]}"#), ["confirmed[0]"]);
        let twice = format!(r#"{{"confirmed":["{RECEIPT}"],"failed":[{{"receipt":"{RECEIPT}","reason":""}}]}}"#);
        assert_eq!(violations(&twice), ["failed[0].reason", "failed[0].receipt"]);
        assert_eq!(violations(r#"{"failed":[{"receipt":"x"}]}"#), ["failed[0]"]);
        assert_eq!(violations(&format!(r#"{{"failed":[["{RECEIPT}","a reason"]]}}"#)), ["failed[0]"]);
        assert_eq!(violations(r#"{"failed":{}}"#), ["failed"]);
        let unpaired = format!(r#"{{"failed":[{{"receipt":"{RECEIPT}","reason":"\ud800"}}]}}"#);
        assert_eq!(violations(&unpaired), ["failed[0].reason"]);
        let many = format!(r#"{{"confirmed":[{}]}}"#, vec!["\"x\""; 101].join(","));
        assert_eq!(violations(&many), ["confirmed"]);
    }
}
