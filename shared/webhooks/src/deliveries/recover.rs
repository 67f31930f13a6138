//! Recovering a range of a webhook's deliveries that failed, or were cancelled while it was disabled. The request
//! counts them, up to a limit; a job makes them due again.

use std::time::Duration;

use serde::Serialize;

use super::{by_entity::Stretch, error::DeliveryError, index_group::IndexGroup, jobs::Jobs, store::Deliveries};
use crate::subscriptions::Webhooks;
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use problem::{JsonBody, Problem};
use storage::{Answered, Answers, Once, TableError};

/// The most deliveries that are counted, which takes a few calls of the table. Deliveries beyond it are recovered, too.
const MAX_COUNT: usize = 10_000;

const TIME: &str = "must be a time in RFC 3339, in UTC or with an offset, such as 2026-11-20T09:45:00.123Z";

/// Recovers deliveries.
pub struct Recovery {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Their webhooks.
    pub webhooks: Webhooks,
    /// The jobs that recover them.
    pub jobs: Jobs,
    /// Repeats the answer for an idempotency key.
    pub answers: Answers,
    /// Older deliveries count as gone, though the table may still have them for days.
    pub retention: Duration,
}

/// The range of creation times whose deliveries are to be recovered. `until` is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryRange {
    since: Time,
    until: Time,
}

/// How many deliveries are being recovered.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    count: usize,
    count_is_exact: bool,
}

impl Recovery {
    /// Has the failed and cancelled deliveries of a range attempted again, once for an idempotency key, and counts them.
    pub async fn recover(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        range: RecoveryRange,
        once: Option<&Once>,
        now: Time,
    ) -> Result<Answered<Recovered>, DeliveryError> {
        self.answers.once(once, now, self.begin(entity, webhook, range, once, now)).await
    }

    async fn begin(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        RecoveryRange { since, until }: RecoveryRange,
        once: Option<&Once>,
        now: Time,
    ) -> Result<Recovered, DeliveryError> {
        let since = since.max(now - self.retention);
        self.webhooks.sendable(entity, webhook).await?;
        let mut ranges = self.jobs.ranges(webhook).await?;
        ranges.ask(since, until)?;
        let recovered = self.count(webhook, ranges.left_between(since, until)).await?;
        let record = self.answers.record(once, &recovered, webhook, now).await?;
        if recovered.count > 0 {
            self.jobs.recover(entity, webhook, (since, until), record, now).await?;
        } else {
            self.jobs.nothing_to_recover(record).await?;
        }
        tracing::info!(webhookId = %webhook, count = recovered.count, "asked to recover");
        Ok(recovered)
    }

    /// How many deliveries of the webhook there are to recover in these stretches, as far as they are counted.
    async fn count(&self, webhook: &WebhookId, stretches: Vec<Stretch>) -> Result<Recovered, TableError> {
        let mut count = 0;
        for mut stretch in stretches {
            loop {
                // One more than the answer says shows whether there are more.
                let most = i32::try_from(MAX_COUNT + 1 - count).unwrap_or(i32::MAX);
                let page = self.deliveries.count_group(webhook, IndexGroup::Recoverable, &stretch, most).await?;
                count += page.found;
                if count > MAX_COUNT {
                    return Ok(Recovered { count: MAX_COUNT, count_is_exact: false });
                }
                let Some(end) = page.end else { break };
                stretch = stretch.after(&end);
            }
        }
        Ok(Recovered { count, count_is_exact: true })
    }
}

impl RecoveryRange {
    /// Reads the range in a request's body. It ends now at the latest, since only deliveries that exist are recovered.
    pub fn read(body: &[u8], now: Time) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let since = body.required::<String>("since", "a time");
        let until = body.optional::<String>("until", "a time");
        let given = until.is_some();
        let violations = &mut body.violations;
        let since = since.and_then(|text| violations.note("since", Time::of_client(&text).ok_or(TIME)));
        let until = until.and_then(|text| violations.note("until", Time::of_client(&text).ok_or(TIME)));
        match (since, until) {
            (Some(since), Some(until)) if since >= until => violations.add("until", "must be after since"),
            (Some(since), None) if !given && since >= now => violations.add("since", "must be in the past"),
            _ => {}
        }
        let since = body.finish_with(since)?;
        Ok(Self { since, until: until.map_or(now, |until| until.min(now)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn fields(body: &str) -> Vec<String> {
        crate::testing::fields(&RecoveryRange::read(body.as_bytes(), NOW).expect_err(body))
    }

    #[test]
    fn a_range_ends_now_at_the_latest() {
        let since = Time::from_millis(1_795_167_600_000);
        for (body, until) in [
            (r#"{"since":"2026-11-20T09:40:00Z"}"#, NOW),
            (r#"{"since":"2026-11-20T09:40:00Z","until":"2026-11-20T09:45:00.000Z"}"#, NOW),
            (r#"{"since":"2026-11-20T09:40:00Z","until":"2027-01-01T00:00:00Z"}"#, NOW),
            (
                r#"{"since":"2026-11-20T09:40:00Z","until":"2026-11-20T09:40:00.001Z"}"#,
                since + Duration::from_millis(1),
            ),
        ] {
            assert_eq!(
                RecoveryRange::read(body.as_bytes(), NOW).expect(body),
                RecoveryRange { since, until },
                "{body}"
            );
        }
    }

    #[test]
    fn every_violation_is_listed_with_its_field() {
        for (body, expected) in [
            ("{}", vec!["since"]),
            (r#"{"since":"yesterday","until":5,"more":1}"#, vec!["until", "since", "more"]),
            (r#"{"since":null}"#, vec!["since"]),
            (r#"{"since":"2026-11-20T09:45:00Z"}"#, vec!["since"]),
            (r#"{"since":"2026-11-20T09:40:00Z","until":"2026-11-20T09:40:00Z"}"#, vec!["until"]),
            (r#"{"since":"2026-11-20T09:41:00Z","until":"2026-11-20T09:40:00Z"}"#, vec!["until"]),
            (r#"{"since":"2026-11-20T09:41:00Z","until":"soon"}"#, vec!["until"]),
        ] {
            assert_eq!(fields(body), expected, "{body}");
        }
    }
}
