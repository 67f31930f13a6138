//! Attempts that a process has counted for webhooks' statistics but not yet written, so that not every attempt of a
//! busy webhook costs a write.
//!
//! Between two writes, a process holds at most a twentieth as many of a webhook's attempts as it has written in the
//! hour, and never more than a hundred. A process that dies loses only these. So an hour's statistics lack at most a
//! twentieth of its attempts, and none from a process that made fewer than forty.

use std::collections::HashMap;

use crate::subscriptions::stats::attempt_count::Count;
use auth::AuthorizedEntity;
use base::WebhookId;

/// The share of the written attempts that may be held, as a divisor.
const SHARE: u64 = 20;
/// The maximum number of held attempts per webhook.
const MAX_HELD: u64 = 100;
/// The number of webhooks at which those without held attempts are dropped.
const MAX_WEBHOOKS: usize = 1_000;

/// A webhook and its entity.
#[derive(Debug, Clone)]
pub(super) struct WebhookKey {
    pub(super) entity: AuthorizedEntity,
    pub(super) webhook: WebhookId,
}

/// The held counts of a process.
#[derive(Debug, Default)]
pub(super) struct Held(HashMap<WebhookId, OfWebhook>);

/// A webhook's counts in an hour.
#[derive(Debug)]
struct OfWebhook {
    key: WebhookKey,
    hour: String,
    /// Attempts of this hour that this process has written.
    written: u64,
    count: Count,
}

/// A count to write now.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) key: WebhookKey,
    pub(super) hour: String,
    pub(super) count: Count,
}

impl OfWebhook {
    fn new(key: WebhookKey, hour: String) -> Self {
        Self { key, hour, written: 0, count: Count::default() }
    }

    fn is_due(&self) -> bool {
        self.count.attempts >= (self.written / SHARE).clamp(1, MAX_HELD)
    }

    fn take(&mut self) -> Option<Ready> {
        let count = std::mem::take(&mut self.count);
        self.written += count.attempts;
        (count.attempts > 0).then(|| Ready { key: self.key.clone(), hour: self.hour.clone(), count })
    }
}

impl Held {
    /// Adds attempts of an hour. Returns the counts to write now, and whether the webhook now has held attempts but had
    /// none before.
    pub(super) fn add(&mut self, key: WebhookKey, hour: String, count: &Count) -> (Vec<Ready>, bool) {
        if self.0.len() >= MAX_WEBHOOKS {
            self.0.retain(|_, held| held.count.attempts > 0);
        }
        let mut ready = Vec::new();
        let new = || OfWebhook::new(key.clone(), hour.clone());
        let held = self.0.entry(key.webhook.clone()).or_insert_with(new);
        if held.hour != hour {
            ready.extend(held.take());
            *held = new();
        }
        let was_empty = held.count.attempts == 0;
        held.count.merge(count);
        if held.is_due() {
            ready.extend(held.take());
        }
        (ready, was_empty && held.count.attempts > 0)
    }

    /// Takes the held counts of a webhook.
    pub(super) fn take(&mut self, key: &WebhookKey) -> Option<Ready> {
        self.0.get_mut(&key.webhook)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::health::tally::AttemptOutcome;
    use auth::EntityId;
    use base::{Time, testing::CountingRandom};
    use std::time::Duration;

    fn key() -> WebhookKey {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let webhook = WebhookId::new(Time::from_millis(0), &CountingRandom::default());
        WebhookKey { entity: AuthorizedEntity::owning_delivery(entity), webhook }
    }

    fn one() -> Count {
        Count::of(&[AttemptOutcome {
            http_status: Some(200),
            confirmed: false,
            of_reader: false,
            interrupted: false,
            error: None,
            duration: Duration::from_millis(5),
        }])
    }

    fn attempts(ready: &[Ready]) -> u64 {
        ready.iter().map(|ready| ready.count.attempts).sum()
    }

    #[test]
    fn a_process_holds_at_most_a_twentieth_and_writes_all_in_the_end() {
        let mut held = Held::default();
        let mut written = 0;
        let mut writes = 0;
        for made in 1..=5_000 {
            let (ready, _) = held.add(key(), "2026-11-20T09".to_owned(), &one());
            writes += ready.len();
            written += attempts(&ready);
            assert!(made - written <= (written / SHARE).min(MAX_HELD), "{made} made, {written} written");
            assert!(made >= 40 || made == written, "few attempts are written one by one");
        }
        assert!(writes < 200, "{writes}");
        let rest = held.take(&key()).map_or(0, |ready| ready.count.attempts);
        assert_eq!(written + rest, 5_000);
        assert!(held.take(&key()).is_none());
    }

    #[test]
    fn held_attempts_are_written_for_their_hour_when_the_next_begins() {
        let mut held = Held::default();
        for _ in 0..60 {
            held.add(key(), "2026-11-20T09".to_owned(), &one());
        }
        let (now, begins) = held.add(key(), "2026-11-20T09".to_owned(), &one());
        assert!(begins || !now.is_empty());
        let (ready, begins) = held.add(key(), "2026-11-20T10".to_owned(), &one());
        assert!(!begins, "the first of an hour is written at once");
        assert_eq!(ready.last().map(|ready| ready.hour.as_str()), Some("2026-11-20T10"));
        assert!(ready.iter().rev().skip(1).all(|ready| ready.hour == "2026-11-20T09"));
    }
}
