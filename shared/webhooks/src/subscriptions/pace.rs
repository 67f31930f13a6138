//! The pace of webhooks: which of them are slow at present, so that their deliveries go by a lane
//! of their own.
//!
//! A mark stands in the webhook's own item, which publishing and dispatching read anyway: it costs
//! no read, a quick webhook costs no write, and a slow webhook costs one write in every few
//! minutes. It is set as soon as an exchange has lasted long, while the exchange is still under
//! way, and ends by itself some minutes after the last such exchange.

use std::time::Duration;

use super::{
    store::{Webhooks, key},
    webhook::Webhook,
};
use auth::entity::AuthorizedEntity;
use base::{clock::Time, ids::WebhookId};
use storage::table::{Change, TableError, absent, at_most, exists};

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

    /// Whether the mark lasts long enough that a slow exchange under way now need not renew it.
    fn has_fresh_mark(&self, now: Time) -> bool {
        self.slow_until.is_some_and(|end| now + FRESH < end)
    }
}

impl Webhooks {
    /// Marks a webhook as slow, unless it has a fresh mark. A webhook that is gone stays gone.
    pub async fn note_slow(&self, entity: &AuthorizedEntity, webhook: &WebhookId, now: Time) -> Result<(), TableError> {
        // Of many exchanges that turn slow at once, most find here that another has noted it: a
        // read is cheaper than a write that is refused.
        if self.find(entity, webhook).await?.is_none_or(|found| found.webhook.has_fresh_mark(now)) {
            return Ok(());
        }
        let mark = Change::of(key(entity.id(), webhook))
            .set("slowUntil", now + MEMORY)
            .only_if(exists())
            .only_if(absent("slowUntil").or(at_most("slowUntil", now + FRESH)));
        if self.table().write(mark, "noting that a webhook is slow").await?.is_done() {
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
