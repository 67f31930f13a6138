//! Webhooks' pace: deliveries to a slow webhook use the slow lane.
//!
//! A slow webhook's mark is stored in the webhook's item, which publishing and dispatching read anyway. It is set
//! during a slow exchange, and expires a few minutes after the last one. It costs one read for each slow exchange, and
//! one write every few minutes.

use std::time::Duration;

use crate::subscriptions::{
    Webhooks,
    webhook::{Webhook, key},
};
use auth::AuthorizedEntity;
use base::{Time, WebhookId};
use storage::table::{Change, TableError, absent, at_most, exists};

/// The duration at which an exchange counts as slow.
pub const SLOW_EXCHANGE: Duration = Duration::from_secs(1);
/// How long a webhook counts as slow after a slow exchange.
const SLOW_FOR: Duration = Duration::from_secs(5 * 60);
/// A mark with more time left than this is not renewed.
const FRESH: Duration = Duration::from_secs(3 * 60);

impl Webhook {
    /// Whether its recent exchanges were slow.
    pub fn is_slow(&self, now: Time) -> bool {
        self.slow_until.is_some_and(|end| now < end)
    }

    /// Whether a slow exchange at this time need not renew the mark.
    fn has_fresh_mark(&self, now: Time) -> bool {
        self.slow_until.is_some_and(|end| now + FRESH < end)
    }
}

impl Webhooks {
    /// Marks a webhook as slow, unless it has a fresh mark or was removed.
    pub async fn note_slow(&self, entity: &AuthorizedEntity, webhook: &WebhookId, now: Time) -> Result<(), TableError> {
        // Many exchanges become slow at once, and most find that another one has set the mark: a read is cheaper than a
        // lost write.
        if self.find(entity, webhook).await?.is_none_or(|found| found.webhook.has_fresh_mark(now)) {
            return Ok(());
        }
        let mark = Change::of(key(entity.id(), webhook))
            .set("slowUntil", now + SLOW_FOR)
            .only_if(exists())
            .only_if(absent("slowUntil").or(at_most("slowUntil", now + FRESH)));
        if self.table().write(mark, "recording that a webhook is slow").await?.is_done() {
            tracing::info!(webhookId = %webhook, entity = %entity.id(), "the webhook is slow");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn a_mark_expires_and_is_renewed_before() {
        let webhook =
            |slow_until: Option<Time>| Webhook { slow_until, ..crate::subscriptions::webhook::tests::webhook() };
        assert!(!webhook(None).is_slow(NOW) && !webhook(None).has_fresh_mark(NOW));
        let marked = webhook(Some(NOW + SLOW_FOR));
        for (after, is_slow, has_fresh_mark) in
            [(0, true, true), (119, true, true), (121, true, false), (301, false, false)]
        {
            let now = NOW + Duration::from_secs(after);
            assert_eq!((marked.is_slow(now), marked.has_fresh_mark(now)), (is_slow, has_fresh_mark), "after {after} s");
        }
    }
}
