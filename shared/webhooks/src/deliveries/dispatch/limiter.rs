//! Limits on the concurrent attempts of one dispatcher invocation: in total, per entity and per webhook.
//!
//! An invocation waiting for slow endpoints continues to receive (`run.rs`), so permits, not invocations, are the
//! scarce resource. One entity alone can never take all permits of an invocation; several together can. Permits are
//! counted in memory: they cost no writes, and none is lost when a worker dies.

use std::{
    collections::HashMap,
    hash::Hash,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::deliveries::queue::{
    Lane, MESSAGES_AT_ONCE,
    message::{ATTEMPTS_AT_ONCE, DeliveryOwner},
};
use auth::EntityId;
use base::WebhookId;

/// Maximum number of concurrent attempts in an invocation. Each needs a connection, and memory for up to several copies
/// of a 256 KiB event.
const MAX_PERMITS: usize = 50;
/// Maximum number of concurrent attempts for one entity.
const MAX_OF_ENTITY: usize = 40;
// A batch must not announce more attempts than this: the other attempts of a burst would have to wait for a permit, and
// would move to the slow lane.
const _: () = assert!(MESSAGES_AT_ONCE * ATTEMPTS_AT_ONCE <= MAX_OF_ENTITY);
/// Maximum number of concurrent attempts for one webhook: half, so that the entity's other webhooks have the rest.
const MAX_OF_WEBHOOK: usize = 20;
/// A webhook counts as quick if its last attempt held its permit for less than this.
const QUICK: Duration = Duration::from_millis(250);
/// In the slow lane, one permit in four is reserved for deliveries that have waited before, so that they come first.
const WAITING_SHARE_DIVISOR: usize = 4;

/// The permits of an invocation.
#[derive(Debug)]
pub struct ConcurrencyLimiter {
    lane: Lane,
    in_use: Mutex<PermitCounts>,
    /// Notified when a permit is released.
    freed: Notify,
}

#[derive(Debug, Default)]
struct PermitCounts {
    all: usize,
    /// The maximum of `all` so far.
    most: usize,
    entities: HashMap<EntityId, usize>,
    webhooks: HashMap<WebhookId, usize>,
    /// How long the last attempt of each webhook held its permit.
    kept_for: HashMap<WebhookId, Duration>,
    waiting: usize,
}

/// The right to one attempt, held until it is dropped.
#[derive(Debug)]
pub struct Permit<'a> {
    limiter: &'a ConcurrencyLimiter,
    owner: DeliveryOwner,
    since: Instant,
    attempted: bool,
}

impl Permit<'_> {
    /// Notes that an attempt was made. Without this, the permit's time shows nothing about the webhook.
    pub fn note_attempt(&mut self) {
        self.attempted = true;
    }
}

impl ConcurrencyLimiter {
    /// A limiter with no attempts.
    pub fn new(lane: Lane) -> Self {
        Self { lane, in_use: Mutex::default(), freed: Notify::new() }
    }

    /// The number of free permits, regardless of the limits of entities and webhooks.
    pub fn free(&self) -> usize {
        MAX_PERMITS.saturating_sub(self.counts().all)
    }

    /// Whether the quick lane has a permit for one attempt per message in a receive call, regardless of entity and
    /// webhook.
    pub fn have_room(&self) -> bool {
        let counts = self.counts();
        let of_an_entity = counts.entities.values().max().copied().unwrap_or_default();
        let of_a_webhook = counts.webhooks.values().max().copied().unwrap_or_default();
        counts.all + MESSAGES_AT_ONCE <= MAX_PERMITS
            && of_an_entity + MESSAGES_AT_ONCE <= MAX_OF_ENTITY
            && of_a_webhook + MESSAGES_AT_ONCE <= MAX_OF_WEBHOOK
    }

    /// The maximum number of concurrent attempts so far.
    pub fn most(&self) -> usize {
        self.counts().most
    }

    /// How many deliveries are waiting for a permit here.
    pub fn waiting(&self) -> usize {
        self.counts().waiting
    }

    /// Whether attempts of this webhook are so short that a permit will be free in a moment. False until an attempt of
    /// the webhook has ended here.
    pub fn is_quick(&self, webhook: &WebhookId) -> bool {
        self.counts().kept_for.get(webhook).is_some_and(|kept_for| *kept_for < QUICK)
    }

    /// Takes a permit as soon as one is free for this entity and webhook. Fails if none becomes free within the limit;
    /// the delivery counts as waiting until the error is dropped.
    pub async fn take_within(
        &self,
        limit: Duration,
        owner: &DeliveryOwner,
        has_waited: bool,
    ) -> Result<Permit<'_>, Waiting<'_>> {
        if let Some(permit) = self.take(owner, has_waited) {
            return Ok(permit);
        }
        let waiting = Waiting::new(self);
        if limit.is_zero() {
            return Err(waiting);
        }
        let permit = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // No notification is missed from here on.
                freed.as_mut().enable();
                match self.take(owner, has_waited) {
                    Some(permit) => return permit,
                    None => freed.await,
                }
            }
        };
        timeout(limit, permit).await.map_err(|_| waiting)
    }

    /// Takes a permit; `None` when none is free for this entity and webhook.
    pub fn take(&self, owner: &DeliveryOwner, has_waited: bool) -> Option<Permit<'_>> {
        let mut counts = self.counts();
        let is_full = counts.all >= MAX_PERMITS
            || count(&counts.entities, &owner.entity) >= self.share(MAX_OF_ENTITY, has_waited)
            || count(&counts.webhooks, &owner.webhook) >= self.share(MAX_OF_WEBHOOK, has_waited);
        if is_full {
            return None;
        }
        counts.all += 1;
        counts.most = counts.most.max(counts.all);
        *counts.entities.entry(owner.entity.clone()).or_default() += 1;
        *counts.webhooks.entry(owner.webhook.clone()).or_default() += 1;
        Some(Permit { limiter: self, owner: owner.clone(), since: Instant::now(), attempted: false })
    }

    /// How many of these permits a delivery may use, depending on whether it has waited before.
    fn share(&self, whole: usize, has_waited: bool) -> usize {
        // In the quick lane, a delivery waits for at most a second, and then moves to the slow lane.
        let comes_later = self.lane == Lane::Slow && !has_waited;
        if comes_later { whole - whole / WAITING_SHARE_DIVISOR } else { whole }
    }

    fn counts(&self) -> MutexGuard<'_, PermitCounts> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut counts = self.limiter.counts();
        counts.all -= 1;
        give_back(&mut counts.entities, &self.owner.entity);
        give_back(&mut counts.webhooks, &self.owner.webhook);
        if self.attempted {
            counts.kept_for.insert(self.owner.webhook.clone(), self.since.elapsed());
        }
        drop(counts);
        self.limiter.freed.notify_waiters();
    }
}

/// A delivery that counts as waiting for a permit until this is dropped.
#[derive(Debug)]
pub struct Waiting<'a>(&'a ConcurrencyLimiter);

impl<'a> Waiting<'a> {
    fn new(limiter: &'a ConcurrencyLimiter) -> Self {
        limiter.counts().waiting += 1;
        Self(limiter)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.counts().waiting -= 1;
    }
}

fn count<K: Eq + Hash>(counts: &HashMap<K, usize>, key: &K) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

fn give_back<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{SystemRandom, Time};
    use proptest::prelude::*;

    fn webhook() -> WebhookId {
        WebhookId::new(Time::from_millis(1_795_167_900_000), &SystemRandom)
    }

    fn owner(entity: &str, webhook: &WebhookId) -> DeliveryOwner {
        DeliveryOwner { entity: EntityId::parse(entity).expect("an identifier"), webhook: webhook.clone() }
    }

    #[test]
    fn a_webhook_leaves_permits_to_its_entity_and_an_entity_to_others() {
        let limiter = ConcurrencyLimiter::new(Lane::Quick);
        let hooks = [webhook(), webhook(), webhook()];
        let take =
            |hook: &WebhookId| std::iter::from_fn(|| limiter.take(&owner("noisy", hook), false)).collect::<Vec<_>>();
        let taken: Vec<_> = hooks.iter().map(take).collect();
        assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 0]);
        assert_eq!(limiter.free(), 10);
        assert!(limiter.take(&owner("quiet", &webhook()), false).is_some());
        drop(taken);
        assert_eq!(
            (limiter.free(), limiter.most()),
            (MAX_PERMITS, 41),
            "the limiter knows the greatest number at once"
        );
        assert!(limiter.take(&owner("noisy", &hooks[2]), false).is_some());
    }

    #[test]
    fn there_is_room_while_all_of_one_receive_call_would_find_permits() {
        let limiter = ConcurrencyLimiter::new(Lane::Quick);
        let hook = webhook();
        let mut taken = Vec::new();
        while limiter.have_room() {
            taken.extend(limiter.take(&owner("noisy", &hook), false));
        }
        assert_eq!(taken.len(), MAX_OF_WEBHOOK - MESSAGES_AT_ONCE + 1);
        let more: Vec<_> = std::iter::from_fn(|| limiter.take(&owner("noisy", &hook), false)).collect();
        assert_eq!(more.len(), MESSAGES_AT_ONCE - 1);
    }

    #[tokio::test]
    async fn a_waiting_delivery_gets_the_permit_that_becomes_free() {
        let limiter = ConcurrencyLimiter::new(Lane::Quick);
        let hook = webhook();
        let mine = owner("noisy", &hook);
        let minute = Duration::from_secs(60);
        let mut taken: Vec<_> = std::iter::from_fn(|| limiter.take(&mine, false)).collect();
        assert!(limiter.take_within(Duration::ZERO, &mine, false).await.is_err());
        let frees = async {
            assert_eq!(limiter.waiting(), 1);
            taken.pop();
        };
        let (permit, ()) = tokio::join!(limiter.take_within(minute, &mine, false), frees);
        assert!(permit.is_ok());
        assert_eq!((limiter.waiting(), limiter.free()), (0, MAX_PERMITS - MAX_OF_WEBHOOK));
    }

    #[test]
    fn a_webhook_is_quick_once_an_attempt_ended_soon() {
        let limiter = ConcurrencyLimiter::new(Lane::Slow);
        let hook = webhook();
        let mut permit = limiter.take(&owner("busy", &hook), true).expect("nothing is under way");
        assert!(!limiter.is_quick(&hook), "nothing is known yet");
        // A time in the future, so that a paused machine cannot make this attempt look slow.
        permit.since = Instant::now() + Duration::from_secs(60);
        permit.note_attempt();
        drop(permit);
        assert!(limiter.is_quick(&hook));
        let mut permit = limiter.take(&owner("busy", &hook), true).expect("nothing is under way");
        permit.since = Instant::now() - QUICK;
        permit.note_attempt();
        drop(permit);
        assert!(!limiter.is_quick(&hook));
        drop(limiter.take(&owner("busy", &hook), true));
        assert!(!limiter.is_quick(&hook), "a repeated message made no attempt");
    }

    #[test]
    fn permits_are_kept_for_deliveries_that_waited() {
        let limiter = ConcurrencyLimiter::new(Lane::Slow);
        let hook = webhook();
        let mine = owner("slow", &hook);
        let fresh: Vec<_> = std::iter::from_fn(|| limiter.take(&mine, false)).collect();
        let waited: Vec<_> = std::iter::from_fn(|| limiter.take(&mine, true)).collect();
        assert_eq!((fresh.len(), waited.len()), (15, 5));
    }

    proptest! {
        /// However many webhooks an entity has, it leaves room for others, and no permit is lost.
        #[test]
        fn no_entity_ever_has_all_permits(steps in proptest::collection::vec((0..60usize, any::<bool>(), any::<bool>()), 0..300)) {
            let limiter = ConcurrencyLimiter::new(Lane::Quick);
            let hooks: Vec<_> = (0..60).map(|_| webhook()).collect();
            let mut taken = Vec::new();
            for (hook, has_waited, leaves) in steps {
                if leaves {
                    taken.pop();
                } else {
                    taken.extend(limiter.take(&owner("noisy", &hooks[hook]), has_waited));
                }
                prop_assert!(taken.len() <= MAX_OF_ENTITY);
                prop_assert_eq!(limiter.free(), MAX_PERMITS - taken.len());
                prop_assert!(limiter.take(&owner("quiet", &hooks[0]), false).is_some() || taken.iter().filter(|permit| permit.owner.webhook == hooks[0]).count() >= MAX_OF_WEBHOOK);
            }
            taken.clear();
            prop_assert_eq!(limiter.free(), MAX_PERMITS);
        }
    }
}
