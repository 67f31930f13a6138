//! Lists that are merged from several indexes: by webhook, or by a state other than `delivered`.
//!
//! Each source is read in order of creation, newest first. The merged list is complete down to the newest position at
//! which a source has more entries; only the sources at that position are read further.
//!
//! The new events are a source as well, since their deliveries may be in no index yet (`store::sweep_positions`). They
//! cannot be searched by webhook or state. So a page examines only the newest of them, and *postpones* the others: the
//! list continues with the indexes, and the postponed events follow at its end. Otherwise, the first pages would be
//! empty after many events for other webhooks. A delivery that the sweep opens in the meantime may be listed twice.

use std::ops::ControlFlow;

use futures::future::try_join_all;

use crate::{
    deliveries::{
        error::DeliveryError,
        queries::{
            by_webhook::{self, Entry, INDEX_LAG, position_of_end},
            filters::Filters,
            next_page::{NextPage, Postponed},
            of_events::Included,
            page::Filling,
            range::{KeyRange, ListPosition},
            streams::{Listed, MAX_NEW_READ, Merge, Source, Stream},
        },
        state::{delivery::Status, index::IndexGroup},
        store::{Deliveries, attributes},
    },
    subscriptions::{Webhook, request_limits::RequestLimits},
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId};
use storage::{Allowance, TableError};

const LOOKING: &str = "looking through deliveries";

/// The maximum number of webhooks whose open deliveries are listed without a limit: a page then makes up to nine
/// queries. An index by entity would cost two write units for each waiting delivery, to serve a list that few clients
/// request.
const UNLIMITED_WEBHOOKS: usize = 2;

impl Filters {
    /// Whether an index by state or by webhook covers the list, so that not all events need to be read.
    pub(super) fn are_indexed(&self) -> bool {
        let undelivered = !self.statuses.is_empty() && !self.statuses.contains(&Status::Delivered);
        self.subject.is_none() && (self.webhook.is_some() || undelivered)
    }

    /// Whether the list includes deliveries in one of these states.
    fn any_of(&self, statuses: &[Status]) -> bool {
        self.statuses.is_empty() || statuses.iter().any(|status| self.statuses.contains(status))
    }
}

impl Deliveries {
    /// Fills a page from the indexes by webhook and by state. Returns the start of the next page, if there may be one.
    pub(super) async fn fill_from_indexes(
        &self,
        filling: &mut Filling<'_>,
        entity: &AuthorizedEntity,
        range: KeyRange,
        start: Option<&NextPage>,
        now: Time,
    ) -> Result<Option<NextPage>, DeliveryError> {
        let sources = self.sources(filling, entity, now).await?;
        let mut postponed = start.and_then(|start| start.postponed.clone());
        if postponed.as_ref().is_none_or(|postponed| !postponed.is_reached) {
            let before = start.map(|start| &start.before);
            let range = before.map_or_else(|| range.clone(), |before| range.clone().before(before));
            // The first page to postpone events postpones all that remain.
            let (sources, new_left) = match postponed {
                None => (sources.clone(), Some(MAX_NEW_READ)),
                Some(_) => (sources.iter().filter(|source| !source.is_new()).cloned().collect(), None),
            };
            let mut merge = Merge::new(sources, &range, filling.limit, new_left);
            let end = self.fill_merged(filling, &mut merge).await?;
            let first = merge.postponed.map(|(events, before)| Postponed::new(events, before, now - INDEX_LAG));
            postponed = postponed.or(first);
            if let Some(before) = end {
                return Ok(Some(NextPage { before, postponed }));
            }
            // No group has a delivery of this entity: the webhook is unknown, or belongs to another entity.
            if filling.may_be_foreign {
                return Ok(None);
            }
        }
        let Some(postponed) = postponed else { return Ok(None) };
        let start = start.filter(|start| start.is_in_postponed()).map_or(&postponed.before, |start| &start.before);
        let reached = |before| NextPage { before, postponed: Some(postponed.reached()) };
        // The postponed events are newer than this page's deliveries.
        if !filling.heads.is_empty() {
            return Ok(Some(reached(start.clone())));
        }
        filling.indexed_until = Some(postponed.indexed_until);
        let range = postponed.events.clone().within(range).before(start);
        let mut merge = Merge::new(sources, &range, filling.limit, None);
        Ok(self.fill_merged(filling, &mut merge).await?.map(reached))
    }

    /// Fills a page from streams. Returns the position after which the next page begins, if there may be one.
    async fn fill_merged(
        &self,
        filling: &mut Filling<'_>,
        merge: &mut Merge,
    ) -> Result<Option<ListPosition>, TableError> {
        loop {
            let new_left = merge.new_left;
            let filled: &Filling<'_> = filling;
            let due = merge.streams.iter_mut().filter(|stream| stream.is_due);
            let new_read = try_join_all(due.map(|stream| self.read_stream(filled, stream, new_left))).await?;
            merge.new_left = new_left.map(|left| left.saturating_sub(new_read.into_iter().sum()));
            let end = merge.end();
            let candidates = merge.take_until(end.as_ref());
            if let ControlFlow::Break(end) = self.fill(filling, candidates, end.is_some()).await? {
                return Ok(end);
            }
            let Some(end) = end else { return Ok(None) };
            if !merge.pass(&end) {
                return Ok(Some(end));
            }
        }
    }

    /// The indexes that together list every requested delivery.
    async fn sources(
        &self,
        filling: &mut Filling<'_>,
        entity: &AuthorizedEntity,
        now: Time,
    ) -> Result<Vec<Source>, DeliveryError> {
        let filters = filling.filters;
        let open = filters.any_of(&[Status::Pending, Status::Retrying]);
        let undelivered = filters.any_of(&[Status::Failed, Status::Cancelled]);
        // Only open deliveries may be missing from every index.
        let new = async || match open {
            true => Ok(Some(Source::New(self.opened_eventual().await?.new_events()))),
            false => Ok(None),
        };
        let mut sources = Vec::new();
        match &filters.webhook {
            Some(webhook) => {
                let group = |group| Source::Group(webhook.clone(), group);
                let (new, is_own) = tokio::try_join!(new(), self.is_webhook_of(entity, webhook))?;
                filling.may_be_foreign = !is_own;
                sources.extend(new);
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
                    if webhooks.len() > UNLIMITED_WEBHOOKS {
                        let limits = RequestLimits::new(self.table.clone());
                        limits.count_many(Allowance::OpenLists, webhooks.len(), entity, now).await?;
                    }
                    sources.extend(new().await?);
                    let of = |webhook: Webhook| IndexGroup::OPEN.map(|group| Source::Group(webhook.id.clone(), group));
                    sources.extend(webhooks.into_iter().flat_map(of));
                }
                sources.extend(undelivered.then_some(Source::Undelivered));
            }
        }
        Ok(sources)
    }

    /// Whether the entity has this webhook. A removed webhook is not found, nor is one whose item cannot be read.
    async fn is_webhook_of(&self, entity: &AuthorizedEntity, webhook: &WebhookId) -> Result<bool, TableError> {
        match self.webhooks.read_eventual(entity, webhook).await {
            Err(TableError::Item { .. }) => Ok(false),
            found => Ok(found?.is_some()),
        }
    }

    /// Reads the next part of a stream. Returns how many new events, or deliveries of them, were read.
    async fn read_stream(
        &self,
        filling: &Filling<'_>,
        stream: &mut Stream,
        new_left: Option<usize>,
    ) -> Result<usize, TableError> {
        let most = new_left.filter(|_| stream.source.is_new()).unwrap_or(usize::MAX);
        let look = i32::try_from(stream.look.min(most)).unwrap_or(i32::MAX);
        let listed = self.listed(filling, &stream.source, &stream.range, look).await?;
        let read = if stream.source.is_new() { listed.looked_at.max(listed.found.len()) } else { 0 };
        stream.add(listed, most);
        Ok(read)
    }

    /// The newest deliveries of a range among a source's `limit` newest entries.
    async fn listed(
        &self,
        filling: &Filling<'_>,
        source: &Source,
        range: &KeyRange,
        limit: i32,
    ) -> Result<Listed, TableError> {
        let Filling { entity, filters, .. } = filling;
        let query = match source {
            Source::Group(webhook, group) => by_webhook::query(webhook, *group, range),
            Source::Undelivered => range.narrow(attributes::undelivered(entity), DeliveryId::PREFIX),
            Source::New(new) => {
                let new = range.clone().within(new.clone());
                let all = Filters { kind: filters.kind, ..Filters::default() };
                let page = self.events_of(entity, &new, &all, Included::WithDeliveries, limit).await?;
                let found = filters.candidates(page.found, range);
                return Ok(Listed { found, looked_at: page.looked_at, end: page.end });
            }
        };
        if range.is_empty() {
            return Ok(Listed::default());
        }
        let query = attributes::filtered(query, &filters.statuses, filters.kind);
        let query = query.newest_first().limit(limit).skipping_unreadable();
        let (page, looked_at) = self.table.page_looked_at::<Entry>(query, LOOKING).await?;
        let found = page.entries.into_iter().map(|entry| (entry.id, None)).collect();
        Ok(Listed { found, looked_at, end: position_of_end(page.next)? })
    }
}
