//! Replays events in a range to a webhook: those that match it and have no delivery to it, because the webhook was
//! created, enabled or changed after their publication. The request counts them up to a limit; a job adds the
//! deliveries.

use std::time::Duration;

use serde::Serialize;

use crate::{
    deliveries::{
        error::DeliveryError,
        jobs::{Jobs, Replay, ReplayScope},
        queries::{range, replayable::Wanted},
        store::Deliveries,
    },
    subscriptions::{Webhook, WebhookError, Webhooks, request_limits::RequestLimits, webhook::members},
};
use auth::{AuthorizedEntity, EntityId};
use base::{Time, WebhookId};
use problem::{JsonBody, Problem};
use storage::{Allowance, Answered, IdempotencyStore, IdempotentRequest};

/// Replays events.
pub struct Replaying {
    /// The deliveries, with their events.
    pub deliveries: Deliveries,
    /// The webhooks that events are replayed to.
    pub webhooks: Webhooks,
    /// The jobs that replay them.
    pub jobs: Jobs,
    /// Limits on entities' requests.
    pub limits: RequestLimits,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// The retention: older events count as removed, though the table may keep them for days.
    pub retention: Duration,
}

/// A request to replay events, or to count them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRequest {
    scope: ReplayScope,
    /// Whether the events are only counted.
    pub dry_run: bool,
}

/// How many events are being replayed, or would be.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    count: usize,
    count_is_exact: bool,
    dry_run: bool,
    /// Why no event is replayed, in a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Replaying {
    /// Replays the events of a scope, once per idempotency key, and counts them.
    pub async fn replay(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        request: ReplayRequest,
        once: Option<&IdempotentRequest>,
        now: Time,
    ) -> Result<Answered<Replayed>, DeliveryError> {
        self.answers.once(once, now, self.begin(entity, webhook, request, once, now)).await
    }

    async fn begin(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        ReplayRequest { scope, dry_run }: ReplayRequest,
        once: Option<&IdempotentRequest>,
        now: Time,
    ) -> Result<Replayed, DeliveryError> {
        self.limits.count(Allowance::Replays, entity, now).await?;
        let found = if dry_run {
            // It sends nothing. So an owner can count what a disabled webhook would get if it were enabled.
            let found = self.webhooks.find(entity, webhook).await?.ok_or(WebhookError::NotFound)?.webhook;
            Webhook { enabled: true, ..found }
        } else {
            self.webhooks.sendable(entity, webhook).await?
        };
        let replay = Replay::new(scope, found.version, self.retention, now);
        let wanted = Wanted { webhook: &found, types: &replay.scope.types };
        let counted = self.deliveries.count_to_replay(entity.id(), replay.left().clone(), wanted, now).await?;
        let is_recent = replay.ends_recently(now);
        let is_empty = counted.count == 0 && counted.count_is_exact;
        let message = is_empty.then(|| nothing_to_replay([replay.scope.since, replay.until], dry_run, is_recent));
        let replayed = Replayed { count: counted.count, count_is_exact: counted.count_is_exact, dry_run, message };
        let record = self.answers.record(once, &replayed, webhook, now).await?;
        if dry_run || (is_empty && !is_recent) {
            self.jobs.nothing_to_recover(record).await?;
        } else {
            self.jobs.replay(entity, webhook, replay, record, now).await?;
        }
        tracing::info!(webhookId = %webhook, count = counted.count, dryRun = dry_run, "replay requested");
        Ok(replayed)
    }
}

/// Why nothing is replayed, in a sentence for people.
fn nothing_to_replay([since, until]: [Time; 2], dry_run: bool, is_recent: bool) -> String {
    if since >= until {
        return "The range is in the future, so it has no events yet.".to_owned();
    }
    let none = format!(
        "Every stored event published from {since} until {until} that matches this webhook already has a delivery to \
         it."
    );
    let recent = "Events published seconds ago may not be counted yet";
    match (is_recent, dry_run) {
        (true, true) => format!("{none} {recent}; count again in a minute."),
        (true, false) => format!("{none} {recent}; they will be replayed in a moment."),
        (false, _) => none,
    }
}

impl ReplayRequest {
    /// Reads a request's body.
    pub fn read(body: &[u8], entity: &EntityId, now: Time) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let since = body.required_time("createdFrom");
        let until = range::take_until(&mut body, since, now);
        let types = body.optional("types", "a list of event types and groups");
        let dry_run = body.optional::<bool>("dryRun", "true or false").unwrap_or_default();
        let violations = &mut body.violations;
        let mut types = types.map(|list| members::known_types("types", list, entity, violations)).unwrap_or_default();
        // The same types in another order are the same request.
        types.sort_unstable();
        let since = body.finish_with(since)?;
        Ok(Self { scope: ReplayScope { since, until, types }, dry_run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn read(body: &str) -> Result<ReplayRequest, Problem> {
        ReplayRequest::read(body.as_bytes(), &EntityId::parse("demo-hotel").expect("an entity"), NOW)
    }

    #[test]
    fn a_request_names_a_range_and_perhaps_types() {
        let since = Time::from_millis(1_795_167_600_000);
        let whole = read(r#"{"createdFrom":"2026-11-20T09:40:00Z"}"#).expect("good");
        let scope = ReplayScope { since, until: None, types: Vec::new() };
        assert_eq!(whole, ReplayRequest { scope: scope.clone(), dry_run: false });
        let body = r#"{"createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2027-01-01T00:00:00Z",
            "types":["booking.*","booking.*"],"dryRun":true}"#;
        let until = Some(Time::from_millis(1_798_761_600_000));
        let scope = ReplayScope { since, until, types: vec!["booking.*".to_owned()] };
        assert_eq!(read(body).expect("good"), ReplayRequest { scope, dry_run: true });
    }

    #[test]
    fn every_violation_is_listed_with_its_field() {
        for (body, expected) in [
            ("{}", &["createdFrom"][..]),
            (r#"{"createdFrom":"2026-11-20T09:45:00Z"}"#, &["createdFrom"]),
            (r#"{"createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2026-11-20T09:40:00Z"}"#, &["createdUntil"]),
            (
                r#"{"createdFrom":"yesterday","createdUntil":5,"types":["nope"],"dryRun":1,"more":1}"#,
                &["createdFrom", "createdUntil", "dryRun", "types[0]", "more"],
            ),
        ] {
            assert_eq!(crate::testing::refused(&read(body).expect_err(body)), expected, "{body}");
        }
    }

    #[test]
    fn a_list_of_types_is_no_longer_than_the_catalogue() {
        let body = |count| {
            let types = vec!["booking.created"; count];
            serde_json::json!({ "createdFrom": "2026-11-20T09:40:00Z", "types": types }).to_string()
        };
        let types = crate::events::catalogue::all().len();
        assert!(read(&body(types)).is_ok());
        let problem = read(&body(types + 1)).expect_err("too long");
        assert_eq!(crate::testing::refused(&problem), ["types"]);
    }

    #[test]
    fn an_empty_replay_says_why() {
        assert!(nothing_to_replay([NOW, NOW], false, false).contains("in the future"));
        let later = NOW + Duration::from_secs(60);
        let none = nothing_to_replay([NOW, later], false, false);
        assert!(none.contains("from 2026-11-20T09:45:00.000Z until 2026-11-20T09:46:00.000Z"), "{none}");
        assert!(nothing_to_replay([NOW, later], false, true).contains("replayed in a moment"));
        assert!(nothing_to_replay([NOW, later], true, true).contains("count again in a minute"));
    }
}
