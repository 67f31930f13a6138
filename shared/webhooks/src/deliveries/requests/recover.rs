//! Recovers a range of a webhook's deliveries: those that failed, that were cancelled while the webhook was disabled,
//! or that are waiting. The request counts them up to a limit and closes the breaker; a job makes them due.

use std::time::Duration;

use serde::Serialize;

use crate::{
    deliveries::{
        error::DeliveryError,
        jobs::{Include, Jobs, RecoveryScope},
        queries::{
            by_webhook::INDEX_LAG,
            range::{self, KeyRange},
        },
        state::index::IndexGroup,
        store::Deliveries,
    },
    subscriptions::{Webhooks, health::resume::Pauses, request_limits::RequestLimits},
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use problem::{JsonBody, Problem, Rule};
use storage::{Allowance, Answered, IdempotencyStore, IdempotentRequest, TableError};

/// The maximum number of deliveries counted per kind, in a few calls to the table. Deliveries beyond that are
/// recovered, too.
const MAX_COUNT: usize = 10_000;

/// How long a recovery's job waits for the index if no deliveries were counted.
const INDEX_WAIT: Duration = Duration::from_secs(5);

const KINDS: &str = "must be failed, waiting or both";

/// Recovers deliveries.
pub struct Recovery {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// Their webhooks.
    pub webhooks: Webhooks,
    /// The webhooks' pauses, which a recovery ends.
    pub pauses: Pauses,
    /// The jobs that recover them.
    pub jobs: Jobs,
    /// Limits on entities' requests.
    pub limits: RequestLimits,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// The retention: older deliveries count as removed, though the table may keep them for days.
    pub retention: Duration,
}

/// How many deliveries are being recovered.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    /// The count of both kinds.
    count: usize,
    count_is_exact: bool,
    failed: usize,
    waiting: usize,
    /// Why no delivery is recovered, in a sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Recovery {
    /// Recovers the deliveries of a scope, once per idempotency key, and counts them.
    pub async fn recover(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        scope: RecoveryScope,
        once: Option<&IdempotentRequest>,
        now: Time,
    ) -> Result<Answered<Recovered>, DeliveryError> {
        self.answers.once(once, now, self.begin(entity, webhook, scope, once, now)).await
    }

    async fn begin(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        scope: RecoveryScope,
        once: Option<&IdempotentRequest>,
        now: Time,
    ) -> Result<Recovered, DeliveryError> {
        self.limits.count(Allowance::Recoveries, entity, now).await?;
        let asked = scope;
        let scope = RecoveryScope { since: scope.since.max(now - self.retention).min(scope.until), ..scope };
        self.webhooks.sendable(entity, webhook).await?;
        let left = self.jobs.left(entity, webhook, scope, now).await?;
        let (failed, waiting) = tokio::try_join!(
            self.deliveries.count_up_to(MAX_COUNT, webhook, IndexGroup::Recoverable, left.failed),
            self.deliveries.count_up_to(MAX_COUNT, webhook, IndexGroup::Waiting, left.waiting)
        )?;
        let count = failed.count + waiting.count;
        let is_future = asked.since >= asked.until;
        // The index may lag: a job is written for the range even if no delivery is counted.
        let is_recent = !is_future && now.since(scope.until) < INDEX_LAG;
        let message = if count > 0 {
            None
        } else if is_future {
            Some("The range is in the future, so it has no deliveries yet.".to_owned())
        } else {
            Some(nothing_to_recover(asked, self.any_other(webhook, scope).await?, is_recent))
        };
        let recovered = Recovered {
            count,
            count_is_exact: failed.count_is_exact && waiting.count_is_exact,
            failed: failed.count,
            waiting: waiting.count,
            message,
        };
        let record = self.answers.record(once, &recovered, webhook, now).await?;
        if count > 0 || is_recent {
            // A client that polls for the remaining number must not close an unresponsive endpoint's breaker each time.
            if count > 0 && !left.is_begun {
                // The breaker closes before the job begins, so that deliveries that become due are not postponed again.
                // After a crash in between, the client repeats the request.
                self.pauses.end(entity, webhook, now).await?;
            }
            // By then, the index shows recent failures.
            let from = if count > 0 { now } else { now + INDEX_WAIT };
            self.jobs.recover(entity, webhook, scope, record, from).await?;
        } else {
            self.jobs.nothing_to_recover(record).await?;
        }
        tracing::info!(webhookId = %webhook, failed = failed.count, waiting = waiting.count, "recovery requested");
        Ok(recovered)
    }

    /// Whether there are deliveries of the kind that the scope excludes.
    async fn any_other(&self, webhook: &WebhookId, scope: RecoveryScope) -> Result<bool, TableError> {
        let other = match scope.include {
            Include::Both => return Ok(false),
            Include::Failed => IndexGroup::Waiting,
            Include::Waiting => IndexGroup::Recoverable,
        };
        let range = KeyRange::between(scope.since, scope.until);
        Ok(self.deliveries.count_group(webhook, other, &range, 1).await?.found > 0)
    }
}

/// Why nothing is recovered, in a sentence for people.
fn nothing_to_recover(
    RecoveryScope { since, until, include }: RecoveryScope,
    any_other: bool,
    is_recent: bool,
) -> String {
    const FAILED: &str = "none has failed or been cancelled (except on request or by erasure)";
    const WAITS: &str = "none has more than a minute to wait";
    let (none, other) = match include {
        Include::Both => (format!("{FAILED}, and {WAITS}"), ""),
        Include::Failed => {
            (FAILED.to_owned(), "Some wait for their next attempt; to send them now, use `\"include\": \"waiting\"`.")
        }
        Include::Waiting => {
            (WAITS.to_owned(), "Some have failed or been cancelled; to send them again, use `\"include\": \"failed\"`.")
        }
    };
    let none = format!("Of the deliveries to this webhook created from {since} until {until}, {none}.");
    let mut sentences = vec![none.as_str()];
    if any_other {
        sentences.push(other);
    }
    if is_recent {
        sentences
            .push("Deliveries that failed seconds ago may not be counted yet; they will be recovered in a moment.");
    }
    sentences.join(" ")
}

impl RecoveryScope {
    /// Reads the scope in a request's body. The scope ends now at the latest, since only existing deliveries are
    /// recovered.
    pub fn read(body: &[u8], now: Time) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let since = body.required_time("createdFrom");
        let until = range::take_until(&mut body, since, now);
        let include = body.optional::<String>("include", "failed, waiting or both");
        let violations = &mut body.violations;
        let include =
            include.and_then(|name| violations.note("include", Rule::UnknownValue, Include::parse(&name).ok_or(KINDS)));
        let since = body.finish_with(since)?;
        Ok(Self { since, until: until.map_or(now, |until| until.min(now)), include: include.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    fn fields(body: &str) -> Vec<String> {
        crate::testing::refused(&RecoveryScope::read(body.as_bytes(), NOW).expect_err(body))
    }

    #[test]
    fn a_range_ends_now_at_the_latest() {
        let since = Time::from_millis(1_795_167_600_000);
        for (body, until) in [
            (r#"{"createdFrom":"2026-11-20T09:40:00Z"}"#, NOW),
            (r#"{"createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2026-11-20T09:45:00.000Z"}"#, NOW),
            (r#"{"createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2027-01-01T00:00:00Z"}"#, NOW),
            (
                r#"{"createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2026-11-20T09:40:00.001Z"}"#,
                since + Duration::from_millis(1),
            ),
        ] {
            let scope = RecoveryScope { since, until, include: Include::Both };
            assert_eq!(RecoveryScope::read(body.as_bytes(), NOW).expect(body), scope, "{body}");
        }
    }

    #[test]
    fn every_violation_is_listed_with_its_field() {
        for (body, expected) in [
            ("{}", vec!["createdFrom"]),
            (r#"{"createdFrom":"yesterday","createdUntil":5,"more":1}"#, vec!["createdFrom", "createdUntil", "more"]),
            (r#"{"createdFrom":null}"#, vec!["createdFrom"]),
            (r#"{"createdFrom":"2026-11-20T09:45:00Z"}"#, vec!["createdFrom"]),
            (r#"{"createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2026-11-20T09:40:00Z"}"#, vec!["createdUntil"]),
            (r#"{"createdFrom":"2026-11-20T09:41:00Z","createdUntil":"2026-11-20T09:40:00Z"}"#, vec!["createdUntil"]),
            (r#"{"createdFrom":"2026-11-20T09:41:00Z","createdUntil":"soon"}"#, vec!["createdUntil"]),
            (r#"{"createdFrom":"2026-11-20T09:40:00Z","include":"all"}"#, vec!["include"]),
            (r#"{"createdFrom":"2026-11-20T09:40:00Z","include":["failed"]}"#, vec!["include"]),
        ] {
            assert_eq!(fields(body), expected, "{body}");
        }
    }

    #[test]
    fn a_scope_includes_both_kinds_unless_it_says_which() {
        for (include, expected) in [("failed", Include::Failed), ("waiting", Include::Waiting), ("both", Include::Both)]
        {
            let body = format!(r#"{{"createdFrom":"2026-11-20T09:40:00Z","include":"{include}"}}"#);
            assert_eq!(RecoveryScope::read(body.as_bytes(), NOW).expect("good").include, expected);
        }
    }

    #[test]
    fn an_empty_recovery_says_why_and_names_the_other_kind() {
        let said = |include, any_other| {
            let scope = RecoveryScope { since: NOW, until: NOW + Duration::from_secs(60), include };
            nothing_to_recover(scope, any_other, false)
        };
        let range = "created from 2026-11-20T09:45:00.000Z until 2026-11-20T09:46:00.000Z";
        for include in [Include::Failed, Include::Waiting, Include::Both] {
            assert!(said(include, false).contains(range), "{}", said(include, false));
        }
        assert!(said(Include::Failed, true).contains("`\"include\": \"waiting\"`"));
        assert!(!said(Include::Failed, false).contains("`\"include\": \"waiting\"`"));
        assert!(said(Include::Waiting, true).contains("`\"include\": \"failed\"`"));
    }
}
