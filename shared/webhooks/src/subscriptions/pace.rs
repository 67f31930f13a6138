//! The pace of webhooks: which of them are slow at present, so that their deliveries go by a lane of their own.
//!
//! A mark stands in the webhook's own item, which publishing and dispatching read anyway: it costs no read, a quick
//! webhook costs no write, and a slow one costs one in every few minutes. It is set as soon as an exchange has lasted long,
//! while that is still under way, and ends by itself when for some minutes none has.

use std::time::Duration;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;

use super::{
    store::{Webhooks, key},
    webhook::Webhook,
};
use auth::entity::AuthorizedEntity;
use base::{clock::Time, ids::WebhookId};
use storage::table::{TableError, text};

/// An exchange that lasts longer than this is slow.
pub const SLOW: Duration = Duration::from_secs(1);
/// For so long a webhook is slow after an exchange that was.
const MEMORY: Duration = Duration::from_secs(5 * 60);
/// A mark that lasts for at least this much longer is not renewed.
const FRESH: Duration = Duration::from_secs(3 * 60);

impl Webhook {
    /// Whether its recent exchanges were slow.
    pub fn is_slow(&self, now: Time) -> bool {
        self.slow_until.is_some_and(|end| now < end)
    }

    /// Whether a slow exchange that is under way now is news.
    fn has_fresh_mark(&self, now: Time) -> bool {
        self.slow_until.is_some_and(|end| now + FRESH < end)
    }
}

impl Webhooks {
    /// Notes that a webhook is slow, unless that is known. A webhook that is gone stays gone.
    pub async fn note_slow(&self, entity: &AuthorizedEntity, webhook: &WebhookId, now: Time) -> Result<(), TableError> {
        const DOING: &str = "noting that a webhook is slow";
        // Of many exchanges that turn slow at once most find here that another has noted it: a read is cheaper than a write
        // that is refused.
        if self.find(entity, webhook).await?.is_none_or(|found| found.webhook.has_fresh_mark(now)) {
            return Ok(());
        }
        let (pk, sk) = key(entity.id(), webhook);
        let update = self
            .table()
            .client
            .update_item()
            .table_name(&self.table().name)
            .key("pk", text(pk))
            .key("sk", text(sk))
            .update_expression("SET slowUntil = :end")
            .condition_expression("attribute_exists(pk) AND (attribute_not_exists(slowUntil) OR slowUntil <= :fresh)")
            .expression_attribute_values(":end", text(now + MEMORY))
            .expression_attribute_values(":fresh", text(now + FRESH));
        match update.send().await {
            Ok(_) => {
                tracing::info!(webhookId = %webhook, entity = %entity.id(), "the webhook is slow");
                Ok(())
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(TableError::sdk(DOING)(error)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn a_mark_ends_by_itself_and_is_renewed_before() {
        let webhook =
            |slow_until: Option<Time>| Webhook { slow_until, ..crate::subscriptions::webhook::tests::webhook() };
        assert!(!webhook(None).is_slow(NOW) && !webhook(None).has_fresh_mark(NOW));
        let marked = webhook(Some(NOW + MEMORY));
        for (after, is_slow, has_fresh_mark) in
            [(0, true, true), (119, true, true), (121, true, false), (301, false, false)]
        {
            let now = NOW + Duration::from_secs(after);
            assert_eq!((marked.is_slow(now), marked.has_fresh_mark(now)), (is_slow, has_fresh_mark), "after {after} s");
        }
    }
}
