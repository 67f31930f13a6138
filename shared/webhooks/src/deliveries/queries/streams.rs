//! The sources of a merged list as streams, without the table.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{
    deliveries::{
        queries::{
            page::{Candidate, MAX_ENTRIES_READ},
            range::{KeyRange, ListPosition},
        },
        state::index::IndexGroup,
    },
    events::store::EventItem,
};
use base::{DeliveryId, WebhookId};

/// How many new events, or how many of their deliveries, a page examines before it postpones the others. Each costs up
/// to a read unit.
pub(super) const MAX_NEW_READ: usize = 200;
/// The minimum number of entries in the first read of a source. Reading fewer costs the same.
const MIN_LOOK: usize = 10;

/// An index that lists matching deliveries, in order of creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A webhook's deliveries in one group.
    Group(WebhookId, IndexGroup),
    /// The entity's failed and cancelled deliveries.
    Undelivered,
    /// The deliveries of the entity's new events, which may be in no index yet.
    New(KeyRange),
}

impl Source {
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::New(_))
    }
}

/// A source that is being read.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) source: Source,
    /// The part of the list that has yet to be read.
    pub(super) range: KeyRange,
    /// How many entries are read next.
    pub(super) look: usize,
    /// Whether the stream has to be read before the merge continues.
    pub(super) is_due: bool,
    /// Deliveries that were read but not merged yet, newest first.
    found: VecDeque<Candidate>,
    /// How many entries the last read examined, including those that the filters excluded.
    looked_at: usize,
    /// Everything after this position was read; `None` if there is no more.
    end: Option<ListPosition>,
}

impl Stream {
    fn new(source: Source, range: &KeyRange, look: usize) -> Self {
        let range = range.clone();
        Self { source, range, look, is_due: true, found: VecDeque::new(), looked_at: 0, end: None }
    }

    /// Prepares the next read, which is larger than the last, since a narrow filter lets few entries through.
    fn advance(&mut self, most: usize) {
        let Some(end) = self.end.take() else { return };
        self.range = self.range.clone().before(&end);
        self.look = (self.look * 4).min(most);
        self.is_due = true;
    }

    /// Adds the read deliveries, up to `most`. The others are read again.
    pub(super) fn add(&mut self, Listed { mut found, looked_at, end }: Listed, most: usize) {
        let last = most.checked_sub(1).and_then(|last| found.get(last)).map(|(id, _)| ListPosition::of(id));
        self.end = if found.len() > most { last } else { end };
        found.truncate(most);
        self.found.extend(found);
        self.looked_at = looked_at;
        self.is_due = false;
    }
}

/// The result of one read of a source.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) found: Vec<Candidate>,
    pub(super) looked_at: usize,
    pub(super) end: Option<ListPosition>,
}

/// The streams that a page is merged from.
#[derive(Debug)]
pub(super) struct Merge {
    pub(super) streams: Vec<Stream>,
    /// How many new events, or deliveries of them, may still be read before the others are postponed; `None` if none
    /// are postponed.
    pub(super) new_left: Option<usize>,
    /// The events that this page postpones, and the position before which they begin.
    pub(super) postponed: Option<(KeyRange, ListPosition)>,
    /// How many entries the merge has passed.
    entries: usize,
}

impl Merge {
    pub(super) fn new(sources: Vec<Source>, range: &KeyRange, limit: usize, new_left: Option<usize>) -> Self {
        // Many webhooks have few deliveries each. Reading one more than fits shows whether there is a next page.
        let look = (MAX_ENTRIES_READ / sources.len().max(1)).clamp(MIN_LOOK.min(limit + 1), limit + 1);
        let streams = sources.into_iter().map(|source| Stream::new(source, range, look)).collect();
        Self { streams, new_left, postponed: None, entries: 0 }
    }

    /// The newest position at which a stream has more entries. Beyond it, the merged list has gaps.
    pub(super) fn end(&self) -> Option<ListPosition> {
        self.streams.iter().filter_map(|stream| stream.end.clone()).max()
    }

    /// Takes from all streams the deliveries down to a position, newest first.
    pub(super) fn take_until(&mut self, end: Option<&ListPosition>) -> Vec<Candidate> {
        let mut merged: BTreeMap<DeliveryId, Option<Arc<EventItem>>> = BTreeMap::new();
        for stream in &mut self.streams {
            let is_after = |(id, _): &Candidate| end.is_some_and(|end| ListPosition::of(id) < *end);
            let complete = stream.found.iter().position(is_after).unwrap_or(stream.found.len());
            for (id, event) in stream.found.drain(..complete) {
                let known = merged.entry(id).or_default();
                *known = known.take().or(event);
            }
        }
        merged.into_iter().rev().collect()
    }

    /// Marks the streams that end at this position to be read next, or postpones their events. Returns false if enough
    /// was read for a page.
    pub(super) fn pass(&mut self, end: &ListPosition) -> bool {
        let at_end = |stream: &&mut Stream| stream.end.as_ref() == Some(end);
        self.entries += self.streams.iter_mut().filter(at_end).map(|stream| stream.looked_at).sum::<usize>();
        if self.entries >= MAX_ENTRIES_READ {
            return false;
        }
        for stream in self.streams.iter_mut().filter(at_end) {
            match &stream.source {
                Source::New(new) if self.new_left == Some(0) => {
                    self.postponed = Some((stream.range.clone().within(new.clone()).before(end), end.clone()));
                    stream.end = None;
                }
                _ => stream.advance(MAX_ENTRIES_READ - self.entries),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{EventId, Time, testing::CountingRandom};
    use proptest::prelude::*;

    /// Deliveries of a source, newest first.
    type Contents = Vec<DeliveryId>;

    fn delivery(millis: i64) -> DeliveryId {
        DeliveryId::of(&EventId::new(Time::from_millis(millis), &CountingRandom::default()), 0)
    }

    fn new_events() -> Source {
        Source::New(KeyRange::since(Time::from_millis(0)))
    }

    /// A read of a source, as the table would return it.
    fn listed(contents: &Contents, range: &KeyRange, look: usize) -> Listed {
        let read: Vec<_> = contents.iter().filter(|id| range.holds(id)).take(look).cloned().collect();
        let end = read.last().filter(|_| read.len() == look).map(ListPosition::of);
        Listed { looked_at: read.len(), found: read.into_iter().map(|id| (id, None)).collect(), end }
    }

    /// The result of a merge for one page.
    #[derive(Debug, Default)]
    struct Merged {
        found: Contents,
        reads: usize,
        events_read: usize,
        postponed: Option<(KeyRange, ListPosition)>,
        end: Option<ListPosition>,
    }

    /// Merges sources until a page has `limit` deliveries. New events match only if `wants` accepts them.
    fn merged(
        sources: &[(Source, Contents)],
        limit: usize,
        new_left: Option<usize>,
        wants: impl Fn(&DeliveryId) -> bool,
    ) -> Merged {
        let all = KeyRange::since(Time::from_millis(0));
        let mut merge = Merge::new(sources.iter().map(|(source, _)| source.clone()).collect(), &all, limit, new_left);
        let mut page = Merged::default();
        loop {
            let mut new_read = 0;
            for (stream, (_, contents)) in merge.streams.iter_mut().zip(sources).filter(|(stream, _)| stream.is_due) {
                let most = merge.new_left.filter(|_| stream.source.is_new()).unwrap_or(usize::MAX);
                let mut listed = listed(contents, &stream.range, stream.look.min(most));
                page.reads += 1;
                if stream.source.is_new() {
                    new_read = listed.looked_at;
                    listed.found.retain(|(id, _)| wants(id));
                }
                stream.add(listed, most);
            }
            page.events_read += new_read;
            merge.new_left = merge.new_left.map(|left| left.saturating_sub(new_read));
            page.end = merge.end();
            page.found.extend(merge.take_until(page.end.as_ref()).into_iter().map(|(id, _)| id));
            let is_full = page.found.len() > limit;
            let Some(end) = page.end.clone().filter(|_| !is_full) else { break };
            if !merge.pass(&end) {
                break;
            }
        }
        page.postponed = merge.postponed;
        page
    }

    fn webhook() -> WebhookId {
        WebhookId::new(Time::from_millis(0), &CountingRandom::default())
    }

    fn group(contents: Contents) -> (Source, Contents) {
        (Source::Group(webhook(), IndexGroup::Open), contents)
    }

    #[test]
    fn a_page_behind_any_number_of_new_events_is_full_at_the_same_cost() {
        let of_webhook: Contents = (0..300).rev().map(delivery).collect();
        for events in [22_000, 100_000, 1_000_000] {
            let others: Contents = (0..events).rev().map(|event| delivery(1_000 + event)).collect();
            let sources = [(new_events(), others), group(of_webhook.clone())];
            let page = merged(&sources, 25, Some(MAX_NEW_READ), |_| false);
            assert_eq!(page.found[..25], of_webhook[..25], "{events}");
            assert!(page.events_read <= MAX_NEW_READ && page.reads <= 8, "{events}: {} reads", page.reads);
            let (postponed, before) = page.postponed.expect("the other events follow at the end");
            assert!(postponed.holds(&delivery(1_000)) && !postponed.holds(before.delivery()));
            assert_eq!(before, ListPosition::of(&delivery(1_000 + events - MAX_NEW_READ as i64)));
        }
    }

    #[test]
    fn deliveries_of_the_newest_events_come_first() {
        let new: Contents = (1_000..1_100).rev().map(delivery).collect();
        let sources = [(new_events(), new.clone()), group((0..300).rev().map(delivery).collect())];
        let page = merged(&sources, 25, Some(MAX_NEW_READ), |_| true);
        assert_eq!(page.found[..25], new[..25]);
        assert!(page.postponed.is_none() && page.reads == 2, "{} reads", page.reads);
    }

    #[test]
    fn many_empty_webhooks_are_read_once() {
        let few: Vec<_> = (0..598).map(|_| group(Contents::new())).collect();
        let long = group((0..300).rev().map(delivery).collect());
        let sources: Vec<_> = few.into_iter().chain([long.clone()]).collect();
        let page = merged(&sources, 25, None, |_| true);
        assert_eq!(page.found[..25], long.1[..25]);
        assert!(page.reads <= sources.len() + 2, "{} reads", page.reads);
    }

    #[test]
    fn a_page_of_many_busy_webhooks_reads_each_about_once() {
        let busy = |webhook: i64| group((0..50).rev().map(|number| delivery(number * 600 + webhook)).collect());
        let sources: Vec<_> = (0..600).map(busy).collect();
        let page = merged(&sources, 100, None, |_| true);
        assert!(page.found.len() > 100 && page.found.is_sorted_by(|one, next| one > next));
        assert!(page.reads <= sources.len() + 10, "{} reads", page.reads);
    }

    proptest! {
        #[test]
        fn pages_show_all_deliveries_once_in_order(
            contents in proptest::collection::vec(proptest::collection::btree_set(0i64..400, 0..60), 1..6),
            limit in 1usize..30,
        ) {
            let contents = contents.into_iter().map(|millis| millis.into_iter().rev().map(delivery).collect());
            let sources: Vec<_> = contents.map(group).collect();
            let mut expected: Contents = sources.iter().flat_map(|(_, contents)| contents).cloned().collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            expected.dedup();
            let page = merged(&sources, limit, None, |_| true);
            prop_assert!(page.found.len() > limit || page.end.is_none());
            prop_assert_eq!(&page.found[..], &expected[..page.found.len()]);
        }
    }
}
