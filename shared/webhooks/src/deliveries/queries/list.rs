//! Listing an entity's deliveries, the newest first, a page at a time.
//!
//! A list by webhook or by a state other than `delivered` is merged from the index partitions that hold these
//! deliveries, and from the new events, whose deliveries may be in no index yet. Any other list reads the entity's
//! events, or those about a subject. So the cost of a page follows its content; a page that reaches a limit ends with a
//! cursor.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::try_join_all;
use serde::Serialize;

use crate::{
    deliveries::{
        delivery::{Delivery, Status},
        error::DeliveryError,
        queries::{
            by_webhook::{self, Entry, position_of_end},
            cursor::{self, Cursor, EXPECTED, List},
            filters::Filters,
            range::{KeyRange, ListPosition},
        },
        store::{
            Deliveries,
            index_group::{self, IndexGroup},
            item::HeadItem,
        },
    },
    events::store::{self, EventItem, Target},
    subscriptions::Webhook,
};
use auth::{AuthorizedEntity, EntityId};
use base::{DeliveryId, SharedClock, SharedRandom, Time, WebhookId};
use problem::{Problem, Query as QueryParameters};
use storage::table::{Condition, Query, is};
use storage::{KeyRings, TableError};

const LOOKING: &str = "looking through deliveries";

/// How many deliveries a page has unless the query says otherwise.
const DEFAULT_LIMIT: usize = 25;
/// The most deliveries that a page may have.
const MAX_LIMIT: usize = 100;
/// The number of index entries after which a page ends. A page that finds few deliveries ends early and gives a cursor,
/// so that the cost of a request does not grow with the entity's deliveries.
pub(super) const MAX_ENTRIES_READ: usize = 1_000;
/// The number of deliveries after which a page ends, at half a read unit each.
pub(super) const MAX_HEADS_READ: usize = 400;

/// Lists deliveries, and the events that they belong to (`list_events`).
pub struct Listing {
    /// The deliveries.
    pub deliveries: Deliveries,
    /// The retention: older deliveries are not shown, though the table may keep them for days.
    pub retention: Duration,
    /// Seals the cursors.
    pub rings: KeyRings,
    /// The clock that decides which deliveries are past their retention.
    pub clock: SharedClock,
    /// Random source of the nonces of sealed cursors.
    pub random: SharedRandom,
}

/// A request for a page of a list.
#[derive(Debug)]
pub struct ListRequest {
    filters: Filters,
    limit: usize,
    cursor: Option<Cursor>,
}

/// A page of a list, as a client sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryPage {
    items: Vec<Delivery>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl ListRequest {
    /// Reads the parameters of a query for this entity's deliveries.
    pub fn read(mut query: QueryParameters<'_>, entity: &AuthorizedEntity) -> Result<Self, Problem> {
        let filters = Filters::take(&mut query, entity.id());
        let limit = query.optional("limit", "a number from 1 to 100", limit::<MAX_LIMIT>).unwrap_or(DEFAULT_LIMIT);
        let cursor = query.optional("cursor", EXPECTED, Cursor::parse);
        query.finish()?;
        Ok(Self { filters, limit, cursor })
    }
}

impl Listing {
    /// A page of an entity's deliveries, the newest first.
    pub async fn list(&self, entity: &AuthorizedEntity, request: &ListRequest) -> Result<DeliveryPage, DeliveryError> {
        let ListRequest { filters, limit, cursor } = request;
        let behind = match cursor {
            Some(cursor) => Some(self.position(List::Deliveries, cursor, entity, filters).await?),
            None => None,
        };
        let range = range(filters, self.clock.now() - self.retention, behind.as_ref());
        let (heads, end) = self.deliveries.page(entity, filters, range, *limit, self.clock.now()).await?;
        let now = self.clock.now();
        let items = heads.into_iter().map(|head| head.shown(now)).collect();
        let next_cursor = match end {
            Some(end) => Some(cursor::write(
                List::Deliveries,
                &end,
                &*self.rings.get().await?,
                &*self.random,
                entity.id(),
                filters,
            )),
            None => None,
        };
        Ok(DeliveryPage { items, next_cursor })
    }

    pub(super) async fn position(
        &self,
        list: List,
        cursor: &Cursor,
        entity: &AuthorizedEntity,
        filters: &Filters,
    ) -> Result<ListPosition, DeliveryError> {
        let ring = self.rings.for_text(cursor.sealed()).await?;
        Ok(cursor.open(list, &ring, entity.id(), filters)?)
    }
}

/// Reads the number of items of a page, in digits only.
pub(super) fn limit<const MAX: usize>(text: &str) -> Option<usize> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = digits.then(|| text.parse().ok())??;
    (1..=MAX).contains(&limit).then_some(limit)
}

/// The range of the list that is still to be shown.
pub(super) fn range(filters: &Filters, oldest: Time, behind: Option<&ListPosition>) -> KeyRange {
    let from = filters.created_from.map_or(oldest, |from| from.max(oldest));
    let range = filters.created_to.map_or_else(|| KeyRange::since(from), |to| KeyRange::between(from, to));
    match behind {
        Some(position) => range.before(position),
        None => range,
    }
}

/// An index that lists wanted deliveries, in the order of creation.
#[derive(Debug, Clone)]
enum Source {
    /// A webhook's deliveries of a group.
    Group(WebhookId, IndexGroup),
    /// The entity's failed and cancelled deliveries.
    Undelivered,
    /// The deliveries of the entity's new events, which may be in no index yet.
    New(KeyRange),
}

/// A delivery that may be wanted. A delivery of a new event may have no head yet.
type Candidate = (DeliveryId, Option<Arc<EventItem>>);

#[derive(Debug, Default)]
struct Listed {
    found: Vec<Candidate>,
    /// How many entries were read, including those that the filters exclude.
    looked_at: usize,
    /// Everything after this position was read; `None` when there is no more.
    end: Option<ListPosition>,
}

impl Filters {
    /// Whether the list is part of an index by state or by webhook, so that not all events need to be read.
    fn are_indexed(&self) -> bool {
        let undelivered = !self.statuses.is_empty() && !self.statuses.contains(&Status::Delivered);
        self.subject.is_none() && (self.webhook.is_some() || undelivered)
    }

    /// The deliveries of these events that may be wanted, the newest first.
    fn candidates(&self, events: Vec<EventItem>, range: &KeyRange) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for event in events.into_iter().map(Arc::new) {
            let wanted = |target: &Target| self.webhook.as_ref().is_none_or(|webhook| target.webhook == *webhook);
            let targets: Vec<_> = event.deliveries().filter(|(id, target)| range.holds(id) && wanted(target)).collect();
            candidates.extend(targets.into_iter().rev().map(|(id, _)| (id, Some(Arc::clone(&event)))));
        }
        candidates
    }

    /// Whether a delivery in one of these states is wanted.
    fn any_of(&self, statuses: &[Status]) -> bool {
        self.statuses.is_empty() || statuses.iter().any(|status| self.statuses.contains(status))
    }
}

impl Deliveries {
    /// The newest deliveries of a range that pass the filters: up to `limit`, or fewer when too few are found among the
    /// entries read for a page. Also returns the position after which the next page begins, if there may be one.
    pub(crate) async fn page(
        &self,
        entity: &AuthorizedEntity,
        filters: &Filters,
        range: KeyRange,
        limit: usize,
        now: Time,
    ) -> Result<(Vec<HeadItem>, Option<ListPosition>), TableError> {
        let mut filling = Filling { entity: entity.id(), filters, heads: Vec::new(), limit, read: 0, now };
        let end = if let Some(event) = &filters.event {
            let event = self.events.item_eventual(event).await?;
            let candidates = filters.candidates(event.into_iter().collect(), &range);
            self.fill(&mut filling, candidates, false).await?
        } else if filters.are_indexed() {
            self.fill_from_indexes(&mut filling, entity, range).await?
        } else {
            self.fill_from_events(&mut filling, range).await?
        };
        Ok((filling.heads, end))
    }

    /// Fills a page with candidates, the newest first. Returns the position after which the next page begins if this
    /// one is full, or if enough was read; `has_more` says whether more candidates follow.
    async fn fill(
        &self,
        filling: &mut Filling<'_>,
        candidates: Vec<Candidate>,
        has_more: bool,
    ) -> Result<Option<ListPosition>, TableError> {
        let mut candidates = candidates.into_iter();
        loop {
            // One more than fits shows whether there is a next page.
            let missing = filling.limit + 1 - filling.heads.len();
            let chunk: Vec<_> = candidates.by_ref().take(missing.max(DEFAULT_LIMIT)).collect();
            let Some((last, _)) = chunk.last() else { return Ok(None) };
            let last = ListPosition::of(last);
            filling.read += chunk.len();
            let stored = self.heads(chunk.iter().map(|(id, _)| id)).await?;
            let heads = stored.into_iter().zip(&chunk).filter_map(|(stored, (id, event))| match event {
                Some(event) => stored.or_new(event, id),
                // An index may list a delivery that the table has removed.
                None => stored.head(),
            });
            if let Some(end) = filling.add(heads) {
                return Ok(Some(end));
            }
            if filling.read >= MAX_HEADS_READ && (candidates.len() > 0 || has_more) {
                return Ok(Some(last));
            }
        }
    }

    /// Fills a page from the entity's events, or from those about a subject.
    async fn fill_from_events(
        &self,
        filling: &mut Filling<'_>,
        mut range: KeyRange,
    ) -> Result<Option<ListPosition>, TableError> {
        let mut entries = 0;
        let mut look = filling.limit + 1;
        loop {
            let most = i32::try_from(look).unwrap_or(i32::MAX);
            let page = self.events_of(filling.entity, &range, filling.filters, most).await?;
            entries += page.looked_at;
            let candidates = filling.filters.candidates(page.found, &range);
            if let Some(end) = self.fill(filling, candidates, page.end.is_some()).await? {
                return Ok(Some(end));
            }
            let Some(end) = page.end else { return Ok(None) };
            if entries >= MAX_ENTRIES_READ {
                return Ok(Some(end));
            }
            range = range.before(&end);
            // A narrow filter lets few events pass, so the calls grow.
            look = (look * 4).min(MAX_ENTRIES_READ - entries);
        }
    }

    /// Fills a page from the indexes by webhook and by state.
    async fn fill_from_indexes(
        &self,
        filling: &mut Filling<'_>,
        entity: &AuthorizedEntity,
        mut range: KeyRange,
    ) -> Result<Option<ListPosition>, TableError> {
        let sources = self.sources(entity, filling.filters).await?;
        let mut entries = 0;
        let mut look = filling.limit + 1;
        loop {
            let listed = sources.iter().map(|source| self.listed(filling, source, &range, look));
            let listed = try_join_all(listed).await?;
            // Behind the newest of the sources' ends, the merged order has gaps.
            let end = listed.iter().filter_map(|listed| listed.end.clone()).max();
            entries += listed.iter().map(|listed| listed.looked_at).sum::<usize>();
            let whole = listed.into_iter().flat_map(|listed| listed.found);
            let whole = whole.filter(|(id, _)| end.as_ref().is_none_or(|end| ListPosition::of(id) >= *end));
            let mut found: BTreeMap<DeliveryId, Option<Arc<EventItem>>> = BTreeMap::new();
            for (id, event) in whole {
                let known = found.entry(id).or_default();
                *known = known.take().or(event);
            }
            if let Some(end) = self.fill(filling, found.into_iter().rev().collect(), end.is_some()).await? {
                return Ok(Some(end));
            }
            let Some(end) = end else { return Ok(None) };
            if entries >= MAX_ENTRIES_READ {
                return Ok(Some(end));
            }
            range = range.before(&end);
            look = (look * 4).min(MAX_ENTRIES_READ - entries);
        }
    }

    /// The indexes that together list every wanted delivery.
    async fn sources(&self, entity: &AuthorizedEntity, filters: &Filters) -> Result<Vec<Source>, TableError> {
        let open = filters.any_of(&[Status::Pending, Status::Retrying]);
        let undelivered = filters.any_of(&[Status::Failed, Status::Cancelled]);
        let mut sources = Vec::new();
        // Only an open delivery may be in no index.
        if open {
            sources.push(Source::New(self.opened_eventual().await?.new_events()));
        }
        match &filters.webhook {
            Some(webhook) => {
                let group = |group| Source::Group(webhook.clone(), group);
                if open {
                    sources.extend(IndexGroup::OPEN.map(group));
                }
                if undelivered {
                    sources.extend([group(IndexGroup::Recoverable), group(IndexGroup::Unrecoverable)]);
                }
                sources.extend(filters.any_of(&[Status::Delivered]).then(|| group(IndexGroup::Delivered)));
            }
            None => {
                // The open deliveries of a removed webhook are cancelled.
                if open {
                    let webhooks = self.webhooks.of(entity).await?;
                    let of = |webhook: Webhook| IndexGroup::OPEN.map(|group| Source::Group(webhook.id.clone(), group));
                    sources.extend(webhooks.into_iter().flat_map(of));
                }
                sources.extend(undelivered.then_some(Source::Undelivered));
            }
        }
        Ok(sources)
    }

    /// The newest deliveries of a range that a source lists, among `look` entries.
    async fn listed(
        &self,
        filling: &Filling<'_>,
        source: &Source,
        range: &KeyRange,
        look: usize,
    ) -> Result<Listed, TableError> {
        let Filling { entity, filters, .. } = filling;
        let limit = i32::try_from(look).unwrap_or(i32::MAX);
        let query = match source {
            Source::Group(webhook, group) => by_webhook::query(webhook, *group, range),
            Source::Undelivered => {
                let query = Query::index(store::BY_ENTITY, "entityKey", index_group::undelivered_key(entity));
                range.narrow(query, DeliveryId::PREFIX)
            }
            Source::New(new) => {
                let new = range.clone().within(new.clone());
                let all = Filters { kind: filters.kind, ..Filters::default() };
                let page = self.events_of(entity, &new, &all, limit).await?;
                let found = filters.candidates(page.found, range);
                return Ok(Listed { found, looked_at: page.looked_at, end: page.end });
            }
        };
        if range.is_empty() {
            return Ok(Listed::default());
        }
        let statuses = filters.statuses.iter().map(|status| is("status", status.as_str())).reduce(Condition::or);
        let kind = filters.kind.map(|kind| is("type", kind));
        let query = statuses.into_iter().chain(kind).fold(query, Query::only);
        let query = query.newest_first().limit(limit).skipping_unreadable();
        let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
        let found = page.entries.into_iter().map(|entry| (entry.id, None)).collect();
        Ok(Listed { found, looked_at, end: position_of_end(page.next)? })
    }
}

/// A page that is being filled, the newest delivery first.
struct Filling<'a> {
    entity: &'a EntityId,
    filters: &'a Filters,
    heads: Vec<HeadItem>,
    limit: usize,
    /// How many deliveries were read.
    read: usize,
    now: Time,
}

impl Filling<'_> {
    /// Adds the wanted deliveries of these, the newest first. Returns the position after which the next page begins if
    /// this one is full.
    fn add(&mut self, deliveries: impl Iterator<Item = HeadItem>) -> Option<ListPosition> {
        // The identifier of a webhook in the query, or of an event, may be that of another entity.
        let is_own = |head: &HeadItem| head.delivery.owner_identifier == *self.entity;
        // The range begins at the deployment's retention, and an event may be kept for less.
        let is_listed = |head: &HeadItem| is_own(head) && head.is_kept(self.now) && self.filters.wants(&head.delivery);
        self.heads.extend(deliveries.filter(is_listed));
        if self.heads.len() <= self.limit {
            return None;
        }
        self.heads.truncate(self.limit);
        self.heads.last().map(|head| ListPosition::of(&head.delivery.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_from_1_to_100() {
        for (text, number) in [("1", 1), ("25", 25), ("100", 100), ("007", 7)] {
            assert_eq!(limit::<MAX_LIMIT>(text), Some(number));
        }
        for text in ["", "0", "101", "-1", "+1", "1.0", "1e1", " 1", "١", "99999999999999999999", "ten"] {
            assert_eq!(limit::<MAX_LIMIT>(text), None, "{text}");
        }
    }

    #[test]
    fn deliveries_past_their_retention_are_not_read() {
        let early = Time::from_millis(1_000);
        let late = Time::from_millis(2_000);
        let from = |time| Filters { created_from: Some(time), ..Filters::default() };
        assert_eq!(range(&from(early), late, None), KeyRange::since(late));
        assert_eq!(range(&from(late), early, None), KeyRange::since(late));
        let to = Filters { created_to: Some(early), ..Filters::default() };
        assert!(range(&to, late, None).is_empty());
    }
}
