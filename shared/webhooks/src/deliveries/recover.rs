//! Recovering a range of a webhook's deliveries that failed, or were cancelled while it was disabled: how many there are is
//! counted at once, up to a limit, and making them due again is left to a job.

use std::time::Duration;

use http::StatusCode;
use serde::Serialize;

use super::{
    Deliveries,
    by_entity::Stretch,
    by_webhook::Group,
    jobs::{Jobs, MAX_RANGES, TooManyRanges},
    reopen::sendable,
};
use crate::subscriptions::{Webhooks, problems::webhook_not_found};
use base::{
    clock::{SharedClock, Time},
    ids::WebhookId,
};
use gate::{EntityCall, Reply};
use problem::{JsonBody, Problem};
use storage::table::TableError;

/// How many are counted: what there is beyond is recovered, but not in the count. So many take a few calls of the table.
const MAX_COUNT: usize = 10_000;

const TIME: &str = "must be a time in RFC 3339 with no more than milliseconds, such as 2026-11-20T09:45:00.123Z";

/// Everything that recovering needs.
pub struct Recovery {
    /// What is to be recovered.
    pub deliveries: Deliveries,
    /// Whose it is.
    pub webhooks: Webhooks,
    /// What does it.
    pub jobs: Jobs,
    /// How long deliveries are kept: what is older is gone, though the table may still have it for days.
    pub retention: Duration,
    /// The clock.
    pub clock: SharedClock,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Recovered {
    count: usize,
    /// Whether there are no more than that.
    count_is_exact: bool,
}

impl Recovery {
    /// Answers a request to recover a range.
    pub async fn recover(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let now = self.clock.now();
        let (since, until) = range(&call.body, now)?;
        let since = since.max(now - self.retention);
        let (entity, webhook) =
            (&call.entity, WebhookId::parse(call.path("webhookIdentifier")).ok_or_else(webhook_not_found)?);
        sendable(&self.webhooks, entity, &webhook, webhook_not_found).await?;
        let mut ranges = self.jobs.ranges(&webhook).await?;
        ranges.ask(since, until).map_err(too_many)?;
        let recovered = self.count(&webhook, ranges.left_between(since, until)).await?;
        if recovered.count > 0 {
            self.jobs.recover(entity, &webhook, (since, until), now).await?.map_err(too_many)?;
        }
        tracing::info!(webhookId = %webhook, count = recovered.count, "asked to recover");
        Reply::json(StatusCode::ACCEPTED, &recovered)
    }

    /// How many deliveries of the webhook there are to recover in these stretches, as far as they are counted.
    async fn count(&self, webhook: &WebhookId, stretches: Vec<Stretch>) -> Result<Recovered, TableError> {
        let mut count = 0;
        for mut stretch in stretches {
            loop {
                // One more than is told shows whether there are more.
                let most = i32::try_from(MAX_COUNT + 1 - count).unwrap_or(i32::MAX);
                let page = self.deliveries.count_group(webhook, Group::Recoverable, &stretch, most).await?;
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

fn too_many(_: TooManyRanges) -> Problem {
    Problem::too_many_recoveries(MAX_RANGES)
}

/// The range in a body. What is not made yet is not to be recovered, so it ends now at the latest.
fn range(body: &[u8], now: Time) -> Result<(Time, Time), Problem> {
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
    body.finish()?;
    let since = since.ok_or_else(|| Problem::internal("a value is missing without a violation"))?;
    Ok((since, until.map_or(now, |until| until.min(now))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn fields(body: &str) -> Vec<String> {
        let problem = range(body.as_bytes(), NOW).expect_err(body);
        let violations = problem.properties["violations"].as_array().expect("a list").clone();
        violations.iter().map(|violation| violation["field"].as_str().expect("a field").to_owned()).collect()
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
            assert_eq!(range(body.as_bytes(), NOW).expect(body), (since, until), "{body}");
        }
    }

    #[test]
    fn every_violation_is_told_with_its_field() {
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
