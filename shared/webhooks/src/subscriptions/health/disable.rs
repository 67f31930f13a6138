//! Disabling webhooks by the service, and announcing it.

use crate::subscriptions::{
    endpoint::KeptEndpoint,
    health::{self, announcing::Announcer, operational::WebhookDisabled},
    webhook::{key, store::Webhooks},
};
use auth::AuthorizedEntity;
use base::{SharedRandom, Time, WebhookId};
use storage::table::{Change, Table, TableError, Transaction, Written, absent, is};

/// Why the service disables a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason<'a> {
    /// Its endpoint answered 410.
    Gone {
        /// The endpoint that answered. A webhook whose URL changed since is not disabled.
        endpoint: &'a KeptEndpoint,
        /// Whether the attempt carried an operational event, which causes no further event.
        operational: bool,
    },
    /// No attempt has succeeded for too long.
    Failing {
        /// When the first attempt after the last success failed.
        since: Time,
    },
}

impl Reason<'_> {
    /// The reason as the webhook's owner reads it.
    fn in_words(self) -> String {
        match self {
            Self::Gone { .. } => "The endpoint answered 410 Gone.".to_owned(),
            Self::Failing { since } => format!("Every attempt has failed since {since}."),
        }
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
    /// Disables the webhooks of this table.
    pub fn new(table: Table, random: SharedRandom) -> Self {
        Self { announcer: Announcer::new(table.clone()), webhooks: Webhooks::new(table), random }
    }

    /// Disables a webhook, and puts an event about it into the outbox unless its limits are reached. Lost when the
    /// webhook was disabled already, has another URL or is gone, or when the streak of failures that is the reason has
    /// ended.
    pub(crate) async fn disable(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        reason: Reason<'_>,
        now: Time,
    ) -> Result<Written<()>, TableError> {
        let found = self.webhooks.find(entity, webhook).await?.map(|found| found.webhook);
        let Some(found) = found.filter(|found| found.enabled) else { return Ok(Written::Lost(None)) };
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
        let changes = Transaction::new().with(change);
        let changes = match reason {
            Reason::Gone { .. } => changes,
            Reason::Failing { since } => changes.with(health::still_failing(health::change(entity, webhook), since)),
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

    #[test]
    fn a_reason_is_a_sentence_for_its_owner() {
        let endpoint: KeptEndpoint = serde_json::from_str(r#"{"eventUrl":"https://x","headers":{}}"#).expect("JSON");
        let gone = Reason::Gone { endpoint: &endpoint, operational: false };
        assert_eq!(gone.in_words(), "The endpoint answered 410 Gone.");
        let since = Time::from_millis(1_795_167_900_123);
        assert_eq!(Reason::Failing { since }.in_words(), "Every attempt has failed since 2026-11-20T09:45:00.123Z.");
    }
}
