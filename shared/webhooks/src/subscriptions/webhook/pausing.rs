//! How an owner pauses and resumes a webhook. During a pause, its deliveries are on hold, and none is lost. A breaker's
//! pause, which the service begins, is in `subscriptions::health`.
//!
//! A job makes the waiting deliveries due. One transaction ends the pause and writes the job. A pause with an end has
//! the job from the beginning, due at that end.

use crate::subscriptions::{
    error::WebhookError,
    health::resume::{Pauses, Reset},
    request_limits::RequestLimits,
    webhook::{WebhookView, pause::Pause, revision, show::Showing},
};
use auth::AuthorizedEntity;
use base::{SharedClock, Time, WebhookId};
use problem::{JsonBody, Problem, Rule};
use storage::Allowance;

/// How many times a change is tried. It is lost only to a concurrent change.
const TRIES: usize = 10;

/// A request to pause a webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PauseRequest {
    until: Option<Time>,
}

impl PauseRequest {
    /// Reads the request from a body. An empty body means a pause without an end.
    ///
    /// # Errors
    /// A `Problem` if the body has unknown members or invalid values, or a time in the past.
    pub fn read(body: &[u8], now: Time) -> Result<Self, Problem> {
        let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
        let mut body = JsonBody::read(body)?;
        let until = body.optional_time("until");
        if until.is_some_and(|until| until <= now) {
            body.violations.add("until", Rule::OutOfRange, "must be later than now");
        }
        body.finish()?;
        Ok(Self { until })
    }
}

/// Pauses and resumes webhooks.
pub struct Pausing {
    /// Reads and shows webhooks.
    pub showing: Showing,
    /// Webhooks' breakers, and the jobs that attempt waiting deliveries.
    pub pauses: Pauses,
    /// Limits on entities' requests.
    pub limits: RequestLimits,
    /// The clock for pauses and jobs.
    pub clock: SharedClock,
}

impl Pausing {
    /// Pauses a webhook, or changes the end of its pause. Returns the owner's view of the webhook.
    pub async fn pause(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        PauseRequest { until }: PauseRequest,
    ) -> Result<WebhookView, WebhookError> {
        for _ in 0..TRIES {
            let now = self.clock.now();
            let webhook = self.showing.webhooks.sendable(entity, id).await?;
            if webhook.is_pulled() {
                return Err(WebhookError::Pulled);
            }
            let since = webhook.pause(now).map_or(now, |pause| pause.since);
            let change = revision::pause(&webhook, Pause { since, until }, now);
            let job = until.map(|until| self.pauses.jobs.resumption(entity, id, until, now)).transpose()?;
            let reset = Reset { job, ..Reset::default() };
            let is_done = match self.pauses.change_and_reset(entity, id, &change, reset, now).await? {
                Some(written) => written.is_done(),
                None => self.showing.webhooks.change(entity, id, change).await?.is_done(),
            };
            if is_done {
                tracing::info!(webhookId = %id, entity = %entity.id(), "the owner paused a webhook");
                return self.showing.one(entity, id, now).await;
            }
        }
        Err(WebhookError::NeverStill)
    }

    /// Ends a webhook's pause, whether by its owner or its breaker, and attempts the waiting deliveries. Returns the
    /// owner's view of the webhook.
    pub async fn resume(&self, entity: &AuthorizedEntity, id: &WebhookId) -> Result<WebhookView, WebhookError> {
        self.limits.count(Allowance::Recoveries, entity, self.clock.now()).await?;
        for _ in 0..TRIES {
            let now = self.clock.now();
            let webhook = self.showing.webhooks.sendable(entity, id).await?;
            let Some(pause) = webhook.pause(now) else {
                self.pauses.end(entity, id, now).await?;
                return Ok(self.showing.read(entity, &webhook, now).await?);
            };
            let job = Some(self.pauses.jobs.resumption(entity, id, now, now)?);
            // The time spent paused must not count as failing, which would disable the webhook.
            let reset = Reset { failures: true, job, ..Reset::default() };
            let change = revision::resume(&webhook, pause, now);
            let written = self.pauses.change_and_reset(entity, id, &change, reset, now).await?;
            if written.is_some_and(|written| written.is_done()) {
                tracing::info!(webhookId = %id, entity = %entity.id(), "the owner resumed a webhook");
                return self.showing.one(entity, id, now).await;
            }
        }
        Err(WebhookError::NeverStill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    #[test]
    fn a_pause_has_an_end_in_the_future_or_none() {
        let read = |body: &str| PauseRequest::read(body.as_bytes(), NOW);
        assert_eq!([read(""), read("{}")].map(|read| read.expect("good")), [PauseRequest::default(); 2]);
        let until = NOW + Duration::from_secs(1);
        assert_eq!(read(&format!(r#"{{"until":"{until}"}}"#)).expect("good"), PauseRequest { until: Some(until) });
        for bad in [format!(r#"{{"until":"{NOW}"}}"#), r#"{"until":null}"#.into(), r#"{"until":"tomorrow"}"#.into()] {
            let problem = read(&bad).expect_err("bad");
            assert_eq!(problem.violations()[0].name(), "until", "{bad}");
        }
        assert_eq!(read(r#"{"from":1}"#).expect_err("bad").violations()[0].name(), "from");
    }
}
