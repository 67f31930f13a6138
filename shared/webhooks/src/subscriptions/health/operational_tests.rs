//! Operational events remain few, regardless of the subscriptions, the endpoints' responses and their order. The
//! simulated world handles each attempt like the dispatcher and the table, and does nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use crate::events::{Event, catalogue, outbox::OutboxEvent, publish::targets};
use crate::subscriptions::{
    Webhook,
    health::{
        announcing::{ANNOUNCEMENT_INTERVAL, MAX_TO_ENTITY},
        breaker::{BreakerSettings, Consequence, HealthItem},
        operational::{DeliveryExhausted, FailingEntry, WebhookDisabled, WebhookFailing},
        tally::{AttemptOutcome, Tally},
    },
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId, testing::CountingRandom};

const BEGIN: Time = Time::from_millis(1_795_167_900_000);
const ATTEMPTS: u32 = 3;
/// Types that an `eventList` may have here; an empty list means all.
const KINDS: [&str; 5] =
    ["booking.created", "webhook.test", "webhook.failing", "webhook.disabled", "webhook.delivery.exhausted"];

struct Open {
    webhook: usize,
    event: EventId,
    kind: &'static str,
    attempts: u32,
}

struct World {
    now: Time,
    random: CountingRandom,
    webhooks: Vec<Webhook>,
    healths: BTreeMap<usize, HealthItem>,
    /// By webhook; `None` for the whole entity.
    announced: BTreeMap<(Option<usize>, String), Time>,
    /// By type and clock hour.
    counts: BTreeMap<(String, i64), u32>,
    outbox: VecDeque<OutboxEvent>,
    open: Vec<Open>,
    operational: usize,
    requests: usize,
}

/// The status that an endpoint responds with, if it responds.
type Status = Option<u16>;

impl World {
    fn of(lists: &[Vec<&'static str>]) -> Self {
        let random = CountingRandom::default();
        let webhook = |(number, list): (usize, &Vec<&str>)| Webhook {
            created_date: BEGIN,
            disabled_reason: None,
            enabled: true,
            event_list: list.iter().map(|&kind| kind.to_owned()).collect(),
            id: WebhookId::new(BEGIN + Duration::from_millis(number as u64), &random),
            last_update: BEGIN,
            name: number.to_string(),
            owner_identifier: entity(),
            ..crate::subscriptions::webhook::tests::webhook()
        };
        let webhooks = lists.iter().enumerate().map(webhook).collect();
        Self {
            now: BEGIN,
            random,
            webhooks,
            healths: BTreeMap::new(),
            announced: BTreeMap::new(),
            counts: BTreeMap::new(),
            outbox: VecDeque::new(),
            open: Vec::new(),
            operational: 0,
            requests: 0,
        }
    }

    fn publish(&mut self, event: &Event) {
        for planned in targets(&mut event.clone(), &self.webhooks) {
            let webhook =
                self.webhooks.iter().position(|webhook| webhook.id == planned.webhook).expect("it was planned");
            self.open.push(Open { webhook, event: event.id.clone(), kind: event.kind, attempts: 0 });
        }
    }

    /// Announces like `Announcer`, within the transaction of a change.
    fn announce(&mut self, webhook: Option<usize>, outbox_event: OutboxEvent) {
        let announced = (webhook, outbox_event.kind.clone());
        let hour = (outbox_event.kind.clone(), self.now.as_seconds() / 3600);
        let has_room = webhook.is_none() || self.counts.get(&hour).is_none_or(|count| *count < MAX_TO_ENTITY);
        if has_room
            && self.announced.get(&announced).is_none_or(|announced| *announced + ANNOUNCEMENT_INTERVAL < self.now)
        {
            self.announced.insert(announced, self.now);
            *self.counts.entry(hour).or_default() += 1;
            self.operational += 1;
            self.outbox.push_back(outbox_event);
        }
    }

    fn attempt(&mut self, which: usize, answer: Status) {
        let Open { webhook, event, kind, attempts } = self.open.swap_remove(which);
        if !self.webhooks[webhook].enabled {
            return;
        }
        self.requests += 1;
        let attempts = attempts + 1;
        let outcome = AttemptOutcome {
            http_status: answer,
            confirmed: false,
            of_reader: false,
            interrupted: false,
            error: None,
            duration: Duration::from_millis(7),
        };
        if answer == Some(410) {
            self.disable(webhook, !catalogue::is_operational(kind));
        } else if !outcome.succeeded() && attempts < ATTEMPTS {
            self.open.push(Open { webhook, event: event.clone(), kind, attempts });
        } else if !outcome.succeeded() {
            self.exhausted(webhook, &event, kind);
        }
        if !catalogue::is_operational(kind) {
            self.count(webhook, outcome);
        }
    }

    fn exhausted(&mut self, webhook: usize, event: &EventId, kind: &str) {
        let id = self.webhooks[webhook].id.clone();
        let exhausted = DeliveryExhausted {
            delivery_identifier: &DeliveryId::of(event, 0),
            webhook_identifier: &id,
            event_identifier: event,
            r#type: kind,
            attempt_count: ATTEMPTS,
            last_http_status: None,
        };
        if let Some(outbox_event) = exhausted.outbox_event(&entity(), self.now, &self.random) {
            self.announce(Some(webhook), outbox_event);
        }
    }

    fn disable(&mut self, webhook: usize, announced: bool) {
        let id = self.webhooks[webhook].id.clone();
        let name = self.webhooks[webhook].name.clone();
        if std::mem::take(&mut self.webhooks[webhook].enabled) && announced {
            let disabled = WebhookDisabled { webhook_identifier: &id, name: &name, reason: "Gone." };
            self.announce(Some(webhook), disabled.outbox_event(&entity(), self.now, &self.random));
        }
    }

    fn count(&mut self, webhook: usize, outcome: AttemptOutcome) {
        let tally = Tally::of(&[outcome]);
        if tally.is_clean() {
            self.healths.remove(&webhook);
            return;
        }
        let mut left = self.healths.remove(&webhook).unwrap_or_default();
        left.failures_in_row += 1;
        left.failing_since = left.failing_since.or(Some(self.now));
        left.streak_since = left.streak_since.or(Some(self.now));
        let consequences = left.consequences(None, &tally, &BreakerSettings::default(), self.now);
        for consequence in consequences {
            match consequence {
                Consequence::AnnounceFailing(streak) => {
                    left.failing = true;
                    let id = self.webhooks[webhook].id.clone();
                    let failing = FailingEntry {
                        webhook_identifier: id,
                        name: String::new(),
                        failures_in_row: left.failures_in_row,
                        since: streak.since,
                        last_http_status: None,
                        last_error: None,
                    };
                    let failing = WebhookFailing::new(&failing, &[]);
                    self.announce(None, failing.outbox_event(&entity(), self.now, &self.random));
                }
                Consequence::Disable { .. } => self.disable(webhook, true),
                Consequence::Open { .. } | Consequence::Reopen { .. } | Consequence::EndProbe { .. } => {}
            }
        }
        self.healths.insert(webhook, left);
    }

    /// The sweep: everything in the outbox is published.
    fn sweep(&mut self) {
        while let Some(outbox_event) = self.outbox.pop_front() {
            self.publish(&outbox_event.event().expect("it can be published"));
        }
    }
}

fn entity() -> EntityId {
    EntityId::parse("demo-hotel").expect("an entity")
}

fn lists(most: usize) -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    proptest::collection::vec(proptest::sample::subsequence(KINDS.to_vec(), 0..=KINDS.len()), 1..most)
}

/// Which delivery is attempted, with which response, whether the sweep runs after that, and how many minutes pass.
fn moves() -> impl Strategy<Value = Vec<(usize, Status, bool, u64)>> {
    let answer = prop_oneof![
        8 => proptest::sample::select(vec![Some(200u16), Some(500), None]),
        1 => Just(Some(410)),
    ];
    proptest::collection::vec((any::<usize>(), answer, any::<bool>(), 0u64..3), 1..60)
}

proptest! {
    #[test]
    fn operational_events_are_few_and_end_with_any_responses(
        lists in lists(40),
        published in proptest::collection::vec(any::<bool>(), 1..12),
        moves in moves(),
    ) {
        let mut world = World::of(&lists);
        for test in &published {
            let kind = catalogue::find(if *test { "webhook.test" } else { "booking.created" }).expect("it exists");
            let data = serde_json::value::to_raw_value(&()).expect("JSON");
            let id = EventId::new(world.now, &world.random);
            let event = Event::new(id, kind, world.now, entity(), &data).expect("it is small");
            world.publish(&event);
        }
        let webhooks = lists.len();
        // Repeats the moves until no work is left.
        for (which, answer, sweeps, minutes) in moves.iter().cycle() {
            if world.open.is_empty() {
                world.sweep();
                if world.open.is_empty() {
                    break;
                }
            }
            world.attempt(which % world.open.len(), *answer);
            if *sweeps {
                world.sweep();
            }
            world.now = world.now + Duration::from_secs(minutes * 60);
            // Three types of event: one event of each type about each webhook per hour, and a few to the entity.
            let hours = usize::try_from(world.now.since(BEGIN).as_secs() / ANNOUNCEMENT_INTERVAL.as_secs()).expect("hours") + 1;
            let announced = world.operational;
            prop_assert!(announced <= 3 * webhooks * hours, "{announced} events about {webhooks} webhooks in {hours} hours");
            // An hour of these may overlap two clock hours.
            let to_entity = (2 * MAX_TO_ENTITY as usize) * (hours + 1) + hours;
            prop_assert!(announced <= to_entity, "{announced} events in {hours} hours");
            // At any time, no more than the published events can cause: each of the three types needs an attempt that
            // counts.
            let counting = published.len() * webhooks * ATTEMPTS as usize;
            prop_assert!(announced <= 3 * counting, "{announced} events caused by {counting} attempts");
            let deliveries = published.len() * webhooks + announced * (webhooks - 1);
            prop_assert!(world.requests <= deliveries * ATTEMPTS as usize);
        }
    }
}
