//! `waypost deliveries --follow`: deliveries as they end, until Ctrl-C.
//!
//! The service lists deliveries only by creation time. Each round lists recently created deliveries and open ones. An
//! open delivery that was known before but is in neither list is looked up separately, since it may have ended.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;

use super::{
    pages::{Filter, newest},
    row::{COLUMNS, Listed, Names, row},
};
use crate::{
    commands::patience::Patience,
    failure::Failure,
    machine,
    output::{Output, compact_json, short_time},
    service::Service,
    table::{Cell, rows},
};

/// The shortest pause between two rounds. After a round that takes longer, the pause is as long as the round.
const SHORTEST_PAUSE: Duration = Duration::from_secs(3);
/// How far a list reaches back before the newest known delivery: an index may lag by about a minute.
const OVERLAP: SignedDuration = SignedDuration::from_mins(2);
/// The maximum number of open deliveries that a round lists: one page, since the service's limit for such lists counts
/// each of the entity's webhooks.
const MOST_OPEN: usize = 100;
/// The maximum number of deliveries that a round looks up separately.
const MOST_LOOKED_UP: usize = 20;

/// Follows the deliveries that match the filters.
pub struct Follow<'a> {
    pub service: &'a Service,
    pub filters: Vec<Filter>,
    /// Whether only failed deliveries are shown.
    pub failed: bool,
    pub output: Output,
}

/// A listed delivery, and its exact JSON.
struct Found {
    listed: Listed,
    json: Box<RawValue>,
}

/// The deliveries known so far: the open ones, and recent ones that have ended.
#[derive(Default)]
struct Known {
    deliveries: BTreeMap<String, Seen>,
    /// When the newest delivery was created.
    newest: Option<Timestamp>,
}

/// The state in which a delivery was last seen.
struct Seen {
    event: String,
    created: Timestamp,
    updated: Timestamp,
    is_open: bool,
    attempts: u64,
}

impl Known {
    /// The creation time from which the next list of recent deliveries begins.
    fn recent_from(&self) -> Option<Timestamp> {
        self.newest.and_then(|newest| newest.checked_sub(OVERLAP).ok())
    }

    /// Records a delivery. Returns whether it has ended since it was last seen.
    fn note(&mut self, delivery: &Listed) -> bool {
        self.newest = self.newest.max(Some(delivery.created_date));
        let before = self.deliveries.get(&delivery.id);
        // One index may lag behind another.
        if before.is_some_and(|before| before.updated > delivery.last_update) {
            return false;
        }
        let is_open = delivery.is_open();
        // The delivery was resent in the meantime, and has ended again.
        let is_new = before.is_none_or(|before| before.is_open || before.attempts < delivery.attempt_count);
        let seen = Seen {
            event: delivery.event_identifier.clone(),
            created: delivery.created_date,
            updated: delivery.last_update,
            is_open,
            attempts: delivery.attempt_count,
        };
        self.deliveries.insert(delivery.id.clone(), seen);
        is_new && !is_open
    }

    /// Forgets ended deliveries that can no longer be in any list.
    fn forget_old(&mut self) {
        if let Some(from) = self.recent_from() {
            self.deliveries.retain(|_, seen| seen.is_open || seen.created >= from);
        }
    }

    /// Open deliveries missing from this round's lists, with their events, starting after the one looked up last.
    fn unlisted(&self, listed: &HashSet<String>, last: Option<&String>) -> Vec<(String, String)> {
        let open = self.deliveries.iter().filter(|(id, seen)| seen.is_open && !listed.contains(*id));
        let (later, earlier): (Vec<_>, Vec<_>) = open.partition(|(id, _)| last.is_none_or(|last| *id > last));
        let unlisted = later.into_iter().chain(earlier).take(MOST_LOOKED_UP);
        unlisted.map(|(id, seen)| (id.clone(), seen.event.clone())).collect()
    }
}

impl Follow<'_> {
    /// Shows deliveries as they end, until a signal or a permanent failure.
    pub async fn run(self, names: Names) -> Result<(), Failure> {
        let stop = machine::stop_signal().map_err(Failure::Output)?;
        tokio::select! {
            ended = self.follow(names) => ended,
            () = stop => Ok(()),
        }
    }

    async fn follow(&self, mut names: Names) -> Result<(), Failure> {
        let patience = Patience::new(self.output, &self.service.login.address);
        let mut known = Known::default();
        for Found { listed, .. } in patience.repeat(async || self.found(&[], 1).await).await? {
            known.newest = Some(listed.created_date);
        }
        let mut last_looked_up = None;
        let mut is_first = true;
        loop {
            let begun = Instant::now();
            let from = known.recent_from();
            let recent = patience.repeat(async || self.recent(from).await).await?;
            let open = patience.repeat(async || self.open().await).await?;
            if is_first {
                self.begin(&open);
            }
            let found: Vec<_> = recent.into_iter().chain(open).collect();
            let listed = found.iter().map(|found| found.listed.id.clone()).collect();
            let mut alone = Vec::new();
            for (id, event) in known.unlisted(&listed, last_looked_up.as_ref()) {
                match patience.repeat(async || self.looked_up(&id, &event).await).await? {
                    Some(found) => alone.push(found),
                    // The delivery is no longer stored.
                    None => drop(known.deliveries.remove(&id)),
                }
                last_looked_up = Some(id);
            }
            let mut ended: Vec<_> = found.into_iter().chain(alone).filter(|found| known.note(&found.listed)).collect();
            known.forget_old();
            ended.retain(|found| !is_first && (!self.failed || found.listed.status == "failed"));
            self.show(ended, &mut names).await?;
            is_first = false;
            machine::pause(begun.elapsed().max(SHORTEST_PAUSE)).await;
        }
    }

    /// Reports the start, and which deliveries cannot be followed.
    fn begin(&self, open: &[Found]) {
        let entity = &self.service.login.entity;
        self.output.remark(format!("Printing deliveries for {entity} as they end. Press Ctrl-C to stop."));
        if open.len() >= MOST_OPEN {
            let many = format!("At least {MOST_OPEN} deliveries are open; only the newest {MOST_OPEN} are followed.");
            self.output.remark(many);
        }
    }

    async fn recent(&self, from: Option<Timestamp>) -> Result<Vec<Found>, Failure> {
        let from = from.map(|from| ("createdFrom", from.to_string()));
        self.found(from.as_slice(), usize::MAX).await
    }

    async fn open(&self) -> Result<Vec<Found>, Failure> {
        self.found(&[("status", "pending,retrying".to_owned())], MOST_OPEN).await
    }

    /// A delivery, found through its event, whose deliveries the service lists without delay.
    async fn looked_up(&self, id: &str, event: &str) -> Result<Option<Found>, Failure> {
        let found = self.found(&[("eventIdentifier", event.to_owned())], usize::MAX).await?;
        Ok(found.into_iter().find(|found| found.listed.id == id))
    }

    async fn found(&self, filters: &[Filter], limit: usize) -> Result<Vec<Found>, Failure> {
        let filters: Vec<_> = self.filters.iter().chain(filters).cloned().collect();
        let found = newest(self.service, &filters, limit).await?;
        let read = |json: Box<RawValue>| Ok::<_, Failure>(Found { listed: self.service.read(json.get())?, json });
        found.into_iter().map(read).collect()
    }

    /// Prints deliveries in the order in which they ended.
    async fn show(&self, mut ended: Vec<Found>, names: &mut Names) -> Result<(), Failure> {
        ended.sort_by_key(|found| found.listed.last_update);
        if self.output.json {
            return Ok(ended.iter().try_for_each(|found| self.output.raw(compact_json(found.json.get())))?);
        }
        names.complete(self.service, ended.iter().map(|found| &found.listed)).await;
        for Found { listed, .. } in &ended {
            let mut row = row(listed, names);
            row[0] = Cell::dim(&short_time(&listed.last_update.to_string()));
            self.output.text(rows(COLUMNS, &[row], machine::columns()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: &str, status: &str, attempts: u64, created: &str, updated: &str) -> Listed {
        let listed = format!(
            r#"{{"id":"{id}","eventIdentifier":"evt_{id}","type":"booking.created","status":"{status}",
            "attemptCount":{attempts},"webhookIdentifier":"whk_1","createdDate":"{created}","lastUpdate":"{updated}"}}"#
        );
        serde_json::from_str(&listed).expect("a delivery")
    }

    const EARLY: &str = "2026-11-20T09:45:00.123Z";
    const LATE: &str = "2026-11-20T10:45:00.123Z";

    #[test]
    fn each_end_of_a_delivery_is_noted_once() {
        let mut known = Known::default();
        for (status, attempts, second, has_ended) in [
            ("pending", 0, 0, false),
            ("retrying", 1, 1, false),
            ("delivered", 2, 3, true),
            ("delivered", 2, 3, false),
            // An index that lags behind.
            ("retrying", 1, 1, false),
            ("delivered", 2, 3, false),
            // The content is erased.
            ("delivered", 2, 4, false),
            // The delivery was resent.
            ("pending", 2, 5, false),
            ("failed", 3, 6, true),
            // The delivery was resent and ended between two rounds.
            ("delivered", 4, 8, true),
        ] {
            let updated = format!("2026-11-20T09:45:0{second}.123Z");
            let noted = known.note(&delivery("dlv_1", status, attempts, EARLY, &updated));
            assert_eq!(noted, has_ended, "{status} {attempts}");
        }
    }

    #[test]
    fn an_old_end_is_forgotten_but_an_old_open_delivery_is_not() {
        let mut known = Known::default();
        known.note(&delivery("dlv_1", "delivered", 1, EARLY, EARLY));
        known.note(&delivery("dlv_2", "retrying", 1, EARLY, EARLY));
        known.note(&delivery("dlv_3", "delivered", 1, LATE, LATE));
        known.forget_old();
        assert_eq!(known.deliveries.keys().collect::<Vec<_>>(), ["dlv_2", "dlv_3"]);
        assert_eq!(known.recent_from().expect("a time").to_string(), "2026-11-20T10:43:00.123Z");
    }

    #[test]
    fn unlisted_deliveries_are_looked_up_in_turn() {
        let mut known = Known::default();
        for number in 10..40 {
            known.note(&delivery(&format!("dlv_{number}"), "retrying", 1, EARLY, EARLY));
        }
        let listed = HashSet::from(["dlv_11".to_owned()]);
        let first: Vec<_> = known.unlisted(&listed, None).into_iter().map(|(id, _)| id).collect();
        assert_eq!((first.len(), first[0].as_str(), first[1].as_str()), (MOST_LOOKED_UP, "dlv_10", "dlv_12"));
        let second: Vec<_> = known.unlisted(&listed, first.last()).into_iter().map(|(id, _)| id).collect();
        assert_eq!((second[0].as_str(), second[9].as_str()), ("dlv_31", "dlv_10"));
    }
}
