//! Disables webhooks on behalf of the service, and announces this.

use std::time::Duration;

use crate::subscriptions::{
    endpoint::KeptEndpoint,
    health::{self, announcing::Announcer, operational::WebhookDisabled},
    webhook::{Webhook, key, revision, store::Webhooks},
};
use auth::AuthorizedEntity;
use base::{SharedRandom, Time, WebhookId};
use storage::table::{Change, Table, TableError, Transaction, Written, absent, is};

/// Why the service disables a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason<'a> {
    /// Its endpoint responded with 410.
    Gone {
        /// The endpoint that responded. If the webhook's URL has changed since, the webhook is not disabled.
        endpoint: &'a KeptEndpoint,
        /// Whether the attempt carried an operational event, which causes no further event.
        operational: bool,
    },
    /// No attempt has succeeded for too long.
    Failing {
        /// When the first attempt after the last success failed.
        since: Time,
        /// How long is too long. A pause by the owner does not count, nor does the time before it.
        after: Duration,
    },
}

impl Reason<'_> {
    /// The reason as the webhook's owner reads it.
    fn in_words(self) -> String {
        match self {
            Self::Gone { .. } => "The endpoint answered 410 Gone.".to_owned(),
            Self::Failing { since, .. } => format!("Every attempt has failed since {since}."),
        }
    }

    /// Whether the owner's last pause is too recent: `after` has not yet passed since its end.
    fn is_of_a_pause(self, webhook: &Webhook, now: Time) -> bool {
        let Self::Failing { after, .. } = self else { return false };
        webhook.pause.is_some_and(|pause| now.since(pause.last_moment(now)) < after)
    }

    /// Whether an event announces it.
    const fn is_announced(self) -> bool {
        !matches!(self, Self::Gone { operational: true, .. })
    }
}

/// Disables webhooks.
#[derive(Clone)]
pub struct Disabler {
    webhooks: Webhooks,
    announcer: Announcer,
    random: SharedRandom,
}

impl Disabler {
    /// Disables webhooks in this table.
    pub fn new(table: Table, random: SharedRandom) -> Self {
        Self { announcer: Announcer::new(table.clone()), webhooks: Webhooks::new(table), random }
    }

    /// Disables a webhook, and puts an event about it into the outbox unless the limits are reached. Returns `Lost` if
    /// the webhook is already disabled, has another URL or is gone, or if the streak of failures has ended.
    pub(crate) async fn disable(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        reason: Reason<'_>,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let found = self.webhooks.find(entity, webhook).await?.map(|found| found.webhook);
        let Some(found) = found.filter(|found| found.enabled) else { return Ok(Written::Lost(None)) };
        if reason.is_of_a_pause(&found, now) {
            return Ok(Written::Lost(None));
        }
        let url = match reason {
            Reason::Gone { endpoint, .. } => endpoint.url(),
            Reason::Failing { .. } => found.endpoint.url(),
        };
        let words = reason.in_words();
        let change = Change::of(key(entity.id(), webhook))
            .set("enabled", false)
            .set("disabledReason", words.as_str())
            .set("disabledDate", now)
            .set("lastUpdate", now)
            .add("version", 1_u32)
            .only_if(is("enabled", true))
            .only_if(is("eventUrl", url.shown))
            .only_if(match url.sealed {
                Some(sealed) => is("sealedEventUrl", sealed),
                None => absent("sealedEventUrl"),
            });
        // The owner may pause the webhook in the meantime.
        let [since, until] = revision::of_pause(found.pause);
        let changes = Transaction::new().with(change.only_if(since).only_if(until));
        let changes = match reason {
            Reason::Gone { .. } => changes,
            Reason::Failing { since, .. } => {
                changes.with(health::still_failing(health::change(entity, webhook), since))
            }
        };
        let disabled = if reason.is_announced() {
            let data = WebhookDisabled { webhook_identifier: webhook, name: &found.name, reason: &words };
            let outbox_event = data.outbox_event(entity.id(), now, &*self.random);
            self.announcer.change(changes, webhook, &outbox_event, now).await?
        } else {
            self.webhooks.table().write_all(changes, "disabling a webhook").await?
        };
        if disabled.is_done() {
            tracing::warn!(webhookId = %webhook, entity = %entity.id(), reason = words, "disabled a webhook");
        }
        Ok(disabled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::webhook::{pause::Pause, tests::webhook};

    #[test]
    fn a_reason_is_a_sentence_for_its_owner() {
        let endpoint: KeptEndpoint = serde_json::from_str(r#"{"eventUrl":"https://x","headers":{}}"#).expect("JSON");
        let gone = Reason::Gone { endpoint: &endpoint, operational: false };
        assert_eq!(gone.in_words(), "The endpoint answered 410 Gone.");
        let since = Time::from_millis(1_795_167_900_123);
        let failing = Reason::Failing { since, after: Duration::ZERO };
        assert_eq!(failing.in_words(), "Every attempt has failed since 2026-11-20T09:45:00.123Z.");
    }

    #[test]
    fn the_time_of_a_pause_disables_no_webhook() {
        let now = Time::from_millis(1_795_167_900_123);
        let day = Duration::from_secs(24 * 60 * 60);
        let reason = Reason::Failing { since: now - 9 * day, after: 5 * day };
        let of_a_pause = |since: Time, until: Option<Time>| {
            let webhook = Webhook { pause: Some(Pause { since, until }), ..webhook() };
            reason.is_of_a_pause(&webhook, now)
        };
        assert!(!reason.is_of_a_pause(&webhook(), now));
        assert!(of_a_pause(now - 8 * day, None), "the pause lasts");
        assert!(of_a_pause(now - 8 * day, Some(now - 4 * day)), "it ended four days ago");
        assert!(!of_a_pause(now - 8 * day, Some(now - 5 * day)));
    }
}
