//! Slots: how many attempts one invocation of the dispatcher has under way, and how many of them may be of one entity
//! or one webhook.
//!
//! An invocation that waits for slow endpoints goes on receiving (`round.rs`), so slots are scarce, and invocations
//! are not. One entity alone never fills an invocation; several together can. Slots are counted in memory: they cost no
//! write, and a worker that dies leaves none taken.

use std::{
    collections::HashMap,
    hash::Hash,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use super::{
    notice::DeliveryOwner,
    queue::{Lane, MESSAGES_AT_ONCE},
};
use auth::EntityId;
use base::WebhookId;

/// Attempts under way in one invocation: each has a connection, and an event of 256 KiB several times in memory.
const SLOTS: usize = 50;
/// How many of them one entity may have.
const OF_AN_ENTITY: usize = 40;
/// How many of these one webhook may have: half, so that its entity's other webhooks have the rest.
const OF_A_WEBHOOK: usize = 20;
/// One of so many of its slots is kept for deliveries that found no slot before, so that they come first.
const WAITING_SHARE_DIVISOR: usize = 4;

/// The slots of an invocation.
#[derive(Debug)]
pub struct Slots {
    lane: Lane,
    taken: Mutex<Taken>,
    /// Rings when a slot becomes free.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// The most that were taken at once.
    most: usize,
    entities: HashMap<EntityId, usize>,
    webhooks: HashMap<WebhookId, usize>,
    /// How many deliveries wait for a slot here.
    waiting: usize,
    /// How many deliveries of each entity were sent back to wait on the queue, less its attempts that ended since.
    sent_back: HashMap<EntityId, usize>,
}

/// A slot that is taken, until it is dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    slots: &'a Slots,
    owner: DeliveryOwner,
}

impl Slots {
    /// Slots that are all free.
    pub fn new(lane: Lane) -> Self {
        Self { lane, taken: Mutex::default(), freed: Notify::new() }
    }

    /// How many are free for an entity that has none of them yet.
    pub fn free(&self) -> usize {
        SLOTS.saturating_sub(self.taken().all)
    }

    /// Whether as many deliveries as one call receives would all find slots in the quick lane, whichever entity's or
    /// webhook's they are.
    pub fn have_room(&self) -> bool {
        let taken = self.taken();
        let of_an_entity = taken.entities.values().max().copied().unwrap_or_default();
        let of_a_webhook = taken.webhooks.values().max().copied().unwrap_or_default();
        taken.all + MESSAGES_AT_ONCE <= SLOTS
            && of_an_entity + MESSAGES_AT_ONCE <= OF_AN_ENTITY
            && of_a_webhook + MESSAGES_AT_ONCE <= OF_A_WEBHOOK
    }

    /// The most that were taken at once.
    pub fn most(&self) -> usize {
        self.taken().most
    }

    /// How many deliveries wait for a slot here.
    pub fn waiting(&self) -> usize {
        self.taken().waiting
    }

    /// Takes a slot as soon as one is free for this entity and webhook. An error when none was within this time: the
    /// delivery counts as waiting here until the error is dropped.
    pub async fn take_within(
        &self,
        patience: Duration,
        owner: &DeliveryOwner,
        has_waited: bool,
    ) -> Result<Slot<'_>, Waiting<'_>> {
        if let Some(slot) = self.take(owner, has_waited) {
            return Ok(slot);
        }
        let waiting = Waiting::new(self);
        let taken = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // From here on no ring is missed.
                freed.as_mut().enable();
                match self.take(owner, has_waited) {
                    Some(slot) => return slot,
                    None => freed.await,
                }
            }
        };
        timeout(patience, taken).await.map_err(|_| waiting)
    }

    /// Takes a slot; `None` when none is free for this entity and webhook.
    pub fn take(&self, owner: &DeliveryOwner, has_waited: bool) -> Option<Slot<'_>> {
        let mut taken = self.taken();
        let is_full = taken.all >= SLOTS
            || count(&taken.entities, &owner.entity) >= self.share(OF_AN_ENTITY, has_waited)
            || count(&taken.webhooks, &owner.webhook) >= self.share(OF_A_WEBHOOK, has_waited);
        if is_full {
            return None;
        }
        taken.all += 1;
        taken.most = taken.most.max(taken.all);
        *taken.entities.entry(owner.entity.clone()).or_default() += 1;
        *taken.webhooks.entry(owner.webhook.clone()).or_default() += 1;
        Some(Slot { slots: self, owner: owner.clone() })
    }

    /// Whether a delivery without a slot may wait on the queue for a moment; otherwise it waits for the sweep, which
    /// is much later. As many of each entity may as there are slots, and one more for each of its attempts that ends:
    /// so a burst goes on soon, a webhook that is busy for long is not left to the sweep, and a flood costs no more
    /// messages than attempts.
    pub fn send_back(&self, entity: &EntityId) -> bool {
        let mut taken = self.taken();
        let sent_back = taken.sent_back.entry(entity.clone()).or_default();
        let may = *sent_back < SLOTS;
        *sent_back += usize::from(may);
        may
    }

    /// How many of these slots are for a delivery that has waited, or has not.
    fn share(&self, whole: usize, has_waited: bool) -> usize {
        // In the quick lane a delivery waits for a second at most, and goes to the slow lane then.
        let comes_later = self.lane == Lane::Slow && !has_waited;
        if comes_later { whole - whole / WAITING_SHARE_DIVISOR } else { whole }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.all -= 1;
        give_back(&mut taken.entities, &self.owner.entity);
        give_back(&mut taken.webhooks, &self.owner.webhook);
        give_back(&mut taken.sent_back, &self.owner.entity);
        drop(taken);
        self.slots.freed.notify_waiters();
    }
}

/// A delivery that waits for a slot, until it is dropped.
#[derive(Debug)]
pub struct Waiting<'a>(&'a Slots);

impl<'a> Waiting<'a> {
    fn new(slots: &'a Slots) -> Self {
        slots.taken().waiting += 1;
        Self(slots)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.taken().waiting -= 1;
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
    fn a_webhook_leaves_places_to_its_entity_and_an_entity_to_the_others() {
        let slots = Slots::new(Lane::Quick);
        let hooks = [webhook(), webhook(), webhook()];
        let take =
            |hook: &WebhookId| std::iter::from_fn(|| slots.take(&owner("noisy", hook), false)).collect::<Vec<_>>();
        let taken: Vec<_> = hooks.iter().map(take).collect();
        assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 0]);
        assert_eq!(slots.free(), 10);
        assert!(slots.take(&owner("quiet", &webhook()), false).is_some());
        drop(taken);
        assert_eq!((slots.free(), slots.most()), (SLOTS, 41), "and it is known how many were under way at once");
        assert!(slots.take(&owner("noisy", &hooks[2]), false).is_some());
    }

    #[test]
    fn there_is_room_while_as_many_as_a_call_receives_would_find_slots() {
        let (slots, hook) = (Slots::new(Lane::Quick), webhook());
        let mut taken = Vec::new();
        while slots.have_room() {
            taken.extend(slots.take(&owner("noisy", &hook), false));
        }
        assert_eq!(taken.len(), OF_A_WEBHOOK - MESSAGES_AT_ONCE + 1);
        let more: Vec<_> = std::iter::from_fn(|| slots.take(&owner("noisy", &hook), false)).collect();
        assert_eq!(more.len(), MESSAGES_AT_ONCE - 1);
    }

    #[tokio::test]
    async fn a_delivery_gets_the_slot_that_becomes_free_while_it_waits() {
        let (slots, hook) = (Slots::new(Lane::Quick), webhook());
        let (mine, minute) = (owner("noisy", &hook), Duration::from_secs(60));
        let mut taken: Vec<_> = std::iter::from_fn(|| slots.take(&mine, false)).collect();
        assert!(slots.take_within(Duration::ZERO, &mine, false).await.is_err());
        let frees = async {
            assert_eq!(slots.waiting(), 1);
            taken.pop();
        };
        let (slot, ()) = tokio::join!(slots.take_within(minute, &mine, false), frees);
        assert!(slot.is_ok());
        assert_eq!((slots.waiting(), slots.free()), (0, SLOTS - OF_A_WEBHOOK));
    }

    #[test]
    fn places_are_kept_for_deliveries_that_waited() {
        let slots = Slots::new(Lane::Slow);
        let hook = webhook();
        let mine = owner("slow", &hook);
        let fresh: Vec<_> = std::iter::from_fn(|| slots.take(&mine, false)).collect();
        let waited: Vec<_> = std::iter::from_fn(|| slots.take(&mine, true)).collect();
        assert_eq!((fresh.len(), waited.len()), (15, 5));
    }

    #[test]
    fn each_entity_has_as_many_deliveries_waiting_on_the_queue_as_there_are_places() {
        let slots = Slots::new(Lane::Slow);
        for entity in ["noisy", "slow"] {
            let entity = EntityId::parse(entity).expect("an identifier");
            assert_eq!((0..1_000).filter(|_| slots.send_back(&entity)).count(), SLOTS);
        }
    }

    #[test]
    fn an_entity_whose_attempts_end_may_go_on_waiting_on_the_queue_and_others_may_not_for_it() {
        let (slots, hook) = (Slots::new(Lane::Slow), webhook());
        let (busy, stuck) = (owner("busy", &hook), owner("stuck", &webhook()));
        for round in 0..1_000 {
            let attempt = slots.take(&busy, true).expect("nothing else is under way");
            assert!(slots.send_back(&busy.entity), "after {round} attempts");
            assert_eq!(slots.send_back(&stuck.entity), round < SLOTS);
            drop(attempt);
        }
    }

    proptest! {
        /// With any number of webhooks, one entity leaves room for others, and no slot is lost.
        #[test]
        fn no_entity_ever_has_all_places(steps in proptest::collection::vec((0..60usize, any::<bool>(), any::<bool>()), 0..300)) {
            let slots = Slots::new(Lane::Quick);
            let hooks: Vec<_> = (0..60).map(|_| webhook()).collect();
            let mut taken = Vec::new();
            for (hook, has_waited, leaves) in steps {
                if leaves {
                    taken.pop();
                } else {
                    taken.extend(slots.take(&owner("noisy", &hooks[hook]), has_waited));
                }
                prop_assert!(taken.len() <= OF_AN_ENTITY);
                prop_assert_eq!(slots.free(), SLOTS - taken.len());
                prop_assert!(slots.take(&owner("quiet", &hooks[0]), false).is_some() || taken.iter().filter(|slot| slot.owner.webhook == hooks[0]).count() >= OF_A_WEBHOOK);
            }
            taken.clear();
            prop_assert_eq!(slots.free(), SLOTS);
        }
    }
}
