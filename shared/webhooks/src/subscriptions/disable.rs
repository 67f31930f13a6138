//! Disabling a webhook for a reason of the service's own, and telling of it where it is to be told.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use serde::Deserialize;

use super::{
    endpoint::KeptEndpoint,
    operational::WebhookDisabled,
    store::key,
    telling::{Changed, Telling},
};
use auth::entity::AuthorizedEntity;
use base::{clock::Time, ids::WebhookId, random::SharedRandom};
use storage::table::{Table, TableError, Transacted, number, text};

/// Why the service disables a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason<'a> {
    /// Its endpoint has answered 410.
    Gone {
        /// Where it has: a webhook that has moved since is not gone.
        endpoint: &'a KeptEndpoint,
        /// Whether to an operational event, of which nothing is told further.
        operational: bool,
    },
    /// Nothing has succeeded for too long.
    Failing {
        /// When the first attempt after the last success failed.
        since: Time,
    },
}

impl Reason<'_> {
    /// The reason in the words that the webhook's owner reads.
    pub fn in_words(self) -> String {
        match self {
            Self::Gone { .. } => "The endpoint answered 410 Gone.".to_owned(),
            Self::Failing { since } => format!("Every attempt has failed since {since}."),
        }
    }

    /// Whether an event says it.
    const fn is_told(self) -> bool {
        !matches!(self, Self::Gone { operational: true, .. })
    }
}

/// Disables webhooks.
#[derive(Clone)]
pub struct Disabler {
    table: Table,
    telling: Telling,
    random: SharedRandom,
}

/// What is told of a webhook beside its identifier.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub(super) name: String,
    enabled: bool,
    #[serde(flatten)]
    endpoint: KeptEndpoint,
}

impl Named {
    /// The webhook's name; `None` when there is no such webhook.
    pub(super) async fn find(
        table: &Table,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
    ) -> Result<Option<Self>, TableError> {
        table.read(key(entity.id(), webhook), "reading a webhook's name").await
    }
}

impl Disabler {
    /// Disables the webhooks of this table.
    pub fn new(table: Table, random: SharedRandom) -> Self {
        Self { telling: Telling::new(table.clone()), table, random }
    }

    /// Disables a webhook, and puts the event that says so into the outbox unless the like was told within the hour. False when
    /// the webhook was disabled already, and keeps its reason, or has moved, or is gone.
    pub async fn disable(
        &self,
        entity: &AuthorizedEntity,
        webhook: &WebhookId,
        reason: Reason<'_>,
        now: Time,
    ) -> Result<bool, TableError> {
        const DOING: &str = "disabling a webhook";
        let Some(named) = Named::find(&self.table, entity, webhook).await?.filter(|named| named.enabled) else {
            return Ok(false);
        };
        let url = match reason {
            Reason::Gone { endpoint, .. } => endpoint.url(),
            Reason::Failing { .. } => named.endpoint.url(),
        };
        let (is_told, reason) = (reason.is_told(), reason.in_words());
        let (pk, sk) = key(entity.id(), webhook);
        let update = Update::builder()
            .table_name(&self.table.name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .update_expression(
                "SET enabled = :no, disabledReason = :reason, lastUpdate = :now, version = version + :one",
            )
            .condition_expression(match url.sealed {
                Some(_) => "enabled = :yes AND eventUrl = :url AND sealedEventUrl = :sealed",
                None => "enabled = :yes AND eventUrl = :url AND attribute_not_exists(sealedEventUrl)",
            })
            .expression_attribute_values(":url", text(&url.shown))
            .expression_attribute_values(":no", AttributeValue::Bool(false))
            .expression_attribute_values(":yes", AttributeValue::Bool(true))
            .expression_attribute_values(":reason", text(&reason))
            .expression_attribute_values(":now", text(now))
            .expression_attribute_values(":one", number(1));
        let update = url.sealed.iter().fold(update, |update, sealed| {
            update.expression_attribute_values(":sealed", text(sealed)) // a value that no expression names is an error
        });
        let update = update.build().map_err(TableError::unbuilt(DOING))?;
        let update = TransactWriteItem::builder().update(update).build();
        let disabled = if is_told {
            let data = WebhookDisabled { webhook_identifier: webhook, name: &named.name, reason: &reason };
            let announcement = data.announcement(entity.id(), now, &*self.random);
            self.telling.change(|_| Ok(update.clone()), webhook, &announcement, now).await? != Changed::No
        } else {
            self.table.transact(vec![update], DOING).await? == Transacted::Yes
        };
        if disabled {
            tracing::warn!(webhookId = %webhook, entity = %entity.id(), reason, "disabled a webhook");
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
