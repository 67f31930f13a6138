//! Fills a page with deliveries, and limits what it costs.

use std::{ops::ControlFlow, sync::Arc};

use crate::{
    deliveries::{
        queries::{
            filters::Filters,
            range::{KeyRange, ListPosition},
        },
        state::{head::Head, index::IndexGroup},
        store::Deliveries,
    },
    events::store::{EventItem, Target},
};
use auth::EntityId;
use base::{DeliveryId, Time};
use storage::TableError;

/// The number of index entries after which a page ends. A page that finds few deliveries ends early with a cursor, so
/// that the cost of a request does not grow with the number of the entity's deliveries.
pub(super) const MAX_ENTRIES_READ: usize = 1_000;
/// The number of deliveries after which a page ends. Each costs half a read unit.
pub(super) const MAX_HEADS_READ: usize = 400;
/// How many deliveries are read concurrently, unless the page has room for more.
const HEADS_AT_ONCE: usize = 25;

/// A delivery that may match. A new event's delivery may have no head yet.
pub(super) type Candidate = (DeliveryId, Option<Arc<EventItem>>);

/// A page that is being filled, newest delivery first.
pub(super) struct Filling<'a> {
    pub(super) entity: &'a EntityId,
    pub(super) filters: &'a Filters,
    pub(super) heads: Vec<Head>,
    pub(super) limit: usize,
    /// How many deliveries were read.
    read: usize,
    now: Time,
    /// Whether the filters' webhook may belong to another entity. The first delivery that is read settles it.
    pub(super) may_be_foreign: bool,
    /// The time up to which earlier pages have listed deliveries from the indexes; `None` if they have listed none of
    /// this range.
    pub(super) indexed_until: Option<Time>,
}

impl<'a> Filling<'a> {
    /// An empty page.
    pub(super) fn new(entity: &'a EntityId, filters: &'a Filters, limit: usize, now: Time) -> Self {
        Self { entity, filters, heads: Vec::new(), limit, read: 0, now, may_be_foreign: false, indexed_until: None }
    }

    /// How many deliveries are read next. Reading one more than fits shows whether there is a next page.
    fn next_chunk(&self) -> usize {
        if self.may_be_foreign { 1 } else { (self.limit + 1 - self.heads.len()).max(HEADS_AT_ONCE) }
    }

    /// Whether these candidates show that the webhook belongs to another entity. All of a webhook's deliveries have the
    /// same owner.
    fn is_foreign(&mut self, candidates: &[Candidate], heads: &[Option<Head>]) -> bool {
        for ((_, event), head) in candidates.iter().zip(heads) {
            match (event, head) {
                _ if !self.may_be_foreign => return false,
                (None, Some(head)) if head.delivery.owner_identifier != *self.entity => return true,
                // An index may list a delivery that the table has removed.
                (None, None) => {}
                // Events are read from the entity's part of the index.
                (Some(_), _) | (None, Some(_)) => self.may_be_foreign = false,
            }
        }
        false
    }

    /// Adds the matching deliveries among these, newest first. Returns the position after which the next page begins if
    /// this one is full.
    fn add(&mut self, deliveries: impl Iterator<Item = Head>) -> Option<ListPosition> {
        let is_own = |head: &Head| head.delivery.owner_identifier == *self.entity;
        let is_repeated = |head: &Head| self.indexed_until.is_some_and(|until| was_indexed(head, until));
        // The range goes back as far as the deployment's retention, but a single event may expire earlier.
        let is_listed =
            |head: &Head| is_own(head) && head.is_kept(self.now) && self.filters.wants(head) && !is_repeated(head);
        self.heads.extend(deliveries.filter(is_listed));
        if self.heads.len() <= self.limit {
            return None;
        }
        self.heads.truncate(self.limit);
        self.heads.last().map(|head| ListPosition::of(&head.delivery.id))
    }
}

/// Whether a delivery was certainly in the index `byWebhook` at this time, in its present state. The sweep puts a
/// delivery into the group `Open` without changing `lastUpdate`, so for that group the time is unknown.
fn was_indexed(head: &Head, at: Time) -> bool {
    let waits_for_retry = head.index.group == Some(IndexGroup::Waiting) && head.delivery.attempt_count > 0;
    head.delivery.last_update < at && (head.is_final() || waits_for_retry)
}

impl Filters {
    /// The deliveries of these events that may match, newest first.
    pub(super) fn candidates(&self, events: Vec<EventItem>, range: &KeyRange) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for event in events.into_iter().map(Arc::new) {
            let wanted = |target: &Target| self.webhook.as_ref().is_none_or(|webhook| target.webhook == *webhook);
            let targets: Vec<_> = event.deliveries().filter(|(id, target)| range.holds(id) && wanted(target)).collect();
            candidates.extend(targets.into_iter().rev().map(|(id, _)| (id, Some(Arc::clone(&event)))));
        }
        candidates
    }
}

impl Deliveries {
    /// Fills a page with candidates, newest first. Breaks with the position after which the next page begins if this
    /// one is full, or if enough was read; `has_more` says whether more candidates follow. Breaks without a position if
    /// the filters' webhook belongs to another entity.
    pub(super) async fn fill(
        &self,
        filling: &mut Filling<'_>,
        candidates: Vec<Candidate>,
        has_more: bool,
    ) -> Result<ControlFlow<Option<ListPosition>>, TableError> {
        let mut candidates = candidates.into_iter();
        loop {
            let chunk: Vec<_> = candidates.by_ref().take(filling.next_chunk()).collect();
            let Some((last, _)) = chunk.last() else { return Ok(ControlFlow::Continue(())) };
            let last = ListPosition::of(last);
            filling.read += chunk.len();
            let heads = self.heads(chunk.iter().map(|(id, event)| (id, event.as_deref())).collect()).await?;
            if filling.is_foreign(&chunk, &heads) {
                return Ok(ControlFlow::Break(None));
            }
            if let Some(end) = filling.add(heads.into_iter().flatten()) {
                return Ok(ControlFlow::Break(Some(end)));
            }
            if filling.read >= MAX_HEADS_READ && (candidates.len() > 0 || has_more) {
                return Ok(ControlFlow::Break(Some(last)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::{
        State,
        head::tests::{LATER, NOW, event_and_head, head},
        index::Index,
    };

    fn foreign() -> Head {
        let mut head = head();
        head.delivery.owner_identifier = EntityId::parse("other").expect("an entity");
        head
    }

    fn stored(head: Head) -> (Candidate, Option<Head>) {
        ((head.delivery.id.clone(), None), Some(head))
    }

    #[test]
    fn one_delivery_shows_that_a_webhook_belongs_to_another_entity() {
        let entity = head().delivery.owner_identifier;
        let filters = Filters::default();
        let mut filling = Filling { may_be_foreign: true, ..Filling::new(&entity, &filters, 100, NOW) };
        assert_eq!(filling.next_chunk(), 1);
        let (candidate, _) = stored(head());
        assert!(!filling.is_foreign(&[candidate], &[None]) && filling.may_be_foreign, "it is gone and says nothing");
        let (candidate, head_of_other) = stored(foreign());
        assert!(filling.is_foreign(&[candidate], &[head_of_other]));
        let (candidate, own) = stored(head());
        assert!(!filling.is_foreign(&[candidate], &[own]) && !filling.may_be_foreign, "a removed webhook is listed");
        assert!(filling.next_chunk() > 100);
    }

    #[test]
    fn an_event_of_the_entity_shows_that_a_webhook_is_its_own() {
        let entity = head().delivery.owner_identifier;
        let filters = Filters::default();
        let mut filling = Filling { may_be_foreign: true, ..Filling::new(&entity, &filters, 100, NOW) };
        let (event, head) = event_and_head("{}");
        let target = Target::of(head.delivery.webhook_identifier.clone(), String::new());
        let event = EventItem::new(&event, vec![target], NOW, std::time::Duration::from_secs(60));
        let candidate = (head.delivery.id, Some(Arc::new(event)));
        assert!(!filling.is_foreign(&[candidate], &[None]) && !filling.may_be_foreign);
    }

    #[test]
    fn a_postponed_delivery_is_left_out_only_if_an_index_surely_showed_it() {
        let in_group = |head: Head, group| {
            let index = Index { group, ..head.index };
            Head { index, ..head }
        };
        let retried = |count| {
            let mut head = in_group(head().opened(|open| open.is_retry = true), Some(IndexGroup::Waiting));
            head.delivery.attempt_count = count;
            head
        };
        let delivered = in_group(head().with(State::Delivered), Some(IndexGroup::Delivered));
        for shown in [delivered, retried(1)] {
            assert!(was_indexed(&shown, LATER), "{shown:?}");
            assert!(!was_indexed(&shown, shown.delivery.last_update), "it may have entered since");
        }
        // The sweep puts an opened delivery there without changing `lastUpdate`.
        let opened = in_group(retried(1), Some(IndexGroup::Open));
        let unopened = in_group(retried(1), None);
        for unknown in [opened, unopened, retried(0)] {
            assert!(!was_indexed(&unknown, LATER), "{unknown:?}");
        }
    }
}
