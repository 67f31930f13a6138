//! The decision on a delivery, as a table of facts and results.

use super::*;
use crate::{
    deliveries::state::{
        State, Unknown,
        attempt::ErrorCode,
        head::tests::{LATER, NOW, erased_event_and_head, event_and_head, head},
        transition::tests::heads,
    },
    events::store::Target,
    subscriptions::{
        rate_limit::{RateLimit, tests::per_second},
        webhook::{self, Delivering, DeliveryOrder, pause::Pause},
    },
};
use proptest::prelude::*;

/// An event whose delivery follows another one in its line.
fn event() -> EventItem {
    let (event, head) = event_and_head("{}");
    let target = Target { after: Some(before()), ..Target::of(head.delivery.webhook_identifier, head.delivery.url) };
    EventItem::new(&event, vec![target], NOW, Duration::from_secs(60))
}

fn webhook() -> Webhook {
    Webhook { enabled: true, ..webhook::tests::webhook() }
}

fn before() -> DeliveryId {
    DeliveryId::of(&head().event(), 7)
}

fn open_breaker(until: Time) -> HealthItem {
    HealthItem { open_until: Some(until), opens: 1, ..HealthItem::default() }
}

/// The decision on a delivery, after this change to its head, webhook and health.
fn decided(change: impl FnOnce(&mut Head, &mut Webhook, &mut Option<HealthItem>)) -> Decision {
    let (mut head, mut webhook, mut health, event) = (head(), webhook(), None, event());
    change(&mut head, &mut webhook, &mut health);
    let facts = Facts {
        head: &head,
        webhook: Some(&webhook),
        lane: Lane::Quick,
        event: Some(&event),
        health: health.as_ref(),
        now: NOW,
    };
    decide(&facts, None)
}

fn without(webhook: Option<&Webhook>, event: Option<&EventItem>, now: Time) -> Decision {
    decide(&Facts { head: &head(), webhook, lane: Lane::Quick, event, health: None, now }, None)
}

#[test]
fn a_delivery_without_an_obstacle_is_sent() {
    assert_eq!(decided(|_, _, _| {}), Decision::Send);
}

#[test]
fn what_ends_a_delivery_comes_first() {
    let (webhook, event, erased) = (webhook(), event(), erased_event_and_head().0);
    let cancel = Decision::Cancel;
    assert_eq!(decided(|head, _, _| head.state = State::Delivered), Decision::Drop);
    for unknown in [Unknown::Reader(NOW), Unknown::Worker(NOW)] {
        let decision = decided(|head, webhook, _| {
            *head = head.clone().opened(|open| open.claim.unknown = Some(unknown));
            webhook.enabled = false;
        });
        assert_eq!(decision, Decision::RecordUnknownOutcome, "the history has it before the delivery is cancelled");
    }
    assert_eq!(decided(|head, _, _| head.delivery.erased_date = Some(NOW)), cancel(CancelReason::Erased));
    assert_eq!(without(Some(&webhook), Some(&erased), NOW), cancel(CancelReason::Erased));
    assert_eq!(without(None, Some(&event), NOW), cancel(CancelReason::WebhookRemoved));
    assert_eq!(without(Some(&webhook), Some(&event), head().expires()), cancel(CancelReason::Expired));
    assert_eq!(decided(|_, webhook, _| webhook.enabled = false), cancel(CancelReason::WebhookDisabled));
}

#[test]
fn a_delivery_whose_event_is_not_written_waits_longer_each_time_and_not_for_ever() {
    let webhook = webhook();
    let mut head = head();
    head.expires_at = i64::MAX;
    let after = |age: Duration| {
        let now = NOW + age;
        decide(&Facts { head: &head, webhook: Some(&webhook), lane: Lane::Quick, event: None, health: None, now }, None)
    };
    assert_eq!(after(Duration::ZERO), Decision::Wait(Wait::Content, NOW + GRACE));
    let minute = Duration::from_secs(60);
    assert_eq!(after(minute), Decision::Wait(Wait::Content, NOW + 2 * minute));
    assert_eq!(after(100 * minute), Decision::Wait(Wait::Content, NOW + 100 * minute + LONGEST_PAUSE));
    let forgotten = idempotency::RETENTION + Duration::from_millis(1);
    assert_eq!(after(forgotten), Decision::Cancel(CancelReason::Expired), "its publisher can no longer repeat it");
}

#[test]
fn only_a_first_attempt_without_a_request_waits_in_its_line() {
    let event = event();
    let ordered = Webhook { order: DeliveryOrder::Subject, ..webhook() };
    let asks = |head: &Head, webhook: &Webhook, event: &EventItem| {
        let facts =
            Facts { head, webhook: Some(webhook), lane: Lane::Quick, event: Some(event), health: None, now: NOW };
        facts.before().cloned()
    };
    assert_eq!(asks(&head(), &ordered, &event), Some(before()));
    let mut interrupted = head();
    (interrupted.delivery.attempt_count, interrupted.delivery.last_error) = (1, Some(ErrorCode::Interrupted));
    assert_eq!(asks(&interrupted, &ordered, &event), Some(before()), "its request may not have been sent");
    let mut retried = head();
    retried.delivery.attempt_count = 1;
    let requested = head().opened(|open| open.asked_at = Some(NOW));
    let in_feed = head().waiting(NOW, Wait::Reader);
    for goes in [retried, requested, in_feed, head().with(State::Failed)] {
        assert_eq!(asks(&goes, &ordered, &event), None, "{goes:?}");
    }
    assert_eq!(asks(&head(), &webhook(), &event), None, "it is not ordered");
    assert_eq!(asks(&head(), &Webhook { enabled: false, ..ordered }, &event), None, "it is cancelled");
}

#[test]
fn a_delivery_waits_for_the_one_before_it_then_for_its_reader_then_for_its_lane() {
    let event = event();
    let now = NOW;
    let slow = Webhook { slow_until: Some(LATER), ..webhook() };
    let pulled = Webhook { delivery: Delivering::Pull, ..slow.clone() };
    let head = head();
    let decided = |webhook: &Webhook, lane: Lane, before: Option<DeliveryId>| {
        decide(&Facts { head: &head, webhook: Some(webhook), lane, event: Some(&event), health: None, now }, before)
    };
    assert_eq!(decided(&pulled, Lane::Quick, Some(before())), Decision::Hold(before()));
    assert_eq!(decided(&pulled, Lane::Quick, None), Decision::PutIntoFeed);
    assert_eq!(decided(&slow, Lane::Quick, None), Decision::PassToSlowLane);
    assert_eq!(decided(&slow, Lane::Slow, None), Decision::Send);
}

#[test]
fn an_open_breaker_puts_a_delivery_off_until_one_is_its_probe() {
    let limit = Some(RateLimit { per_second: per_second(1), since: NOW });
    assert_eq!(decided(|_, _, health| *health = Some(open_breaker(LATER))), Decision::Wait(Wait::Breaker, LATER));
    let probe = decided(|_, webhook, health| (webhook.rate_limit, *health) = (limit, Some(open_breaker(NOW))));
    assert_eq!(probe, Decision::Probe, "it does not wait for its turn");
    assert_eq!(decided(|_, webhook, _| webhook.rate_limit = limit), Decision::SendInTurn);
    let operational = |kind: &str| {
        decided(|head, _, health| {
            head.delivery.r#type = kind.to_owned();
            *health = Some(open_breaker(NOW));
        })
    };
    assert_eq!(operational("webhook.failing"), Decision::Send, "its outcome is not counted");
}

#[test]
fn a_requested_attempt_passes_the_breaker_for_two_minutes() {
    let requested = |ago: Duration| {
        decided(|head, _, health| {
            let asked = NOW - ago;
            *head = head.clone().opened(|open| open.asked_at = Some(asked));
            *health = Some(open_breaker(LATER));
        })
    };
    assert_eq!(requested(Duration::ZERO), Decision::Probe);
    assert_eq!(requested(REQUESTED_RECENTLY), Decision::Wait(Wait::Breaker, LATER));
}

#[test]
fn a_paused_webhook_keeps_its_deliveries_unless_a_person_asks() {
    let paused = |until| Some(Pause { since: NOW - Duration::from_secs(60), until });
    let at = |age: Duration, left: Duration| {
        decided(|head, webhook, health| {
            head.delivery.created_date = NOW - age;
            head.expires_at = (NOW + left).as_seconds();
            webhook.pause = paused(None);
            *health = Some(open_breaker(LATER));
        })
    };
    let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(60 * 60));
    for (age, left, look) in [
        (Duration::ZERO, 99 * hour, minute),
        (2 * hour, 99 * hour, 2 * hour),
        (48 * hour, 99 * hour, 24 * hour),
        (48 * hour, hour, hour),
    ] {
        assert_eq!(at(age, left), Decision::Wait(Wait::Pause, NOW + look), "{age:?}");
    }
    assert_eq!(decided(|_, webhook, _| webhook.pause = paused(Some(NOW))), Decision::Send, "the pause is over");
    let requested = decided(|head, webhook, _| {
        *head = head.clone().opened(|open| open.asked_at = Some(NOW));
        webhook.pause = paused(None);
    });
    assert_eq!(requested, Decision::Send);
    let disabled = decided(|_, webhook, _| (webhook.pause, webhook.enabled) = (paused(None), false));
    assert_eq!(disabled, Decision::Cancel(CancelReason::WebhookDisabled));
}

#[test]
fn a_delivery_of_a_paused_webhook_does_not_look_at_the_one_before_it() {
    let event = event();
    let pause = Some(Pause { since: NOW, until: None });
    let webhook = Webhook { order: DeliveryOrder::Subject, pause, ..webhook() };
    let head = head();
    let lane = Lane::Quick;
    let facts = Facts { head: &head, webhook: Some(&webhook), lane, event: Some(&event), health: None, now: NOW };
    assert_eq!(facts.before(), None);
}

proptest! {
    #[test]
    fn a_decision_follows_from_every_state(
        head in heads(),
        enabled: bool,
        ordered: bool,
        pulled: bool,
        paused: bool,
        knows_webhook: bool,
        knows_event: bool,
        breaker in proptest::option::of(0_u64..120),
        seconds in 0_u64..200_000,
    ) {
        let pause = paused.then_some(Pause { since: NOW, until: None });
        let mut webhook = Webhook { enabled, pause, ..webhook() };
        webhook.order = if ordered { DeliveryOrder::Subject } else { DeliveryOrder::None };
        webhook.delivery = if pulled { Delivering::Pull } else { Delivering::Push };
        let health = breaker.map(|seconds| open_breaker(NOW + Duration::from_secs(seconds)));
        let event = event();
        let facts = Facts {
            head: &head,
            webhook: knows_webhook.then_some(&webhook),
            lane: Lane::Quick,
            event: knows_event.then_some(&event),
            health: health.as_ref(),
            now: NOW + Duration::from_secs(seconds),
        };
        let open_before = facts.before().cloned();
        let decision = decide(&facts, open_before.clone());
        prop_assert_eq!(decision == Decision::Drop, head.is_final());
        if let Some(before) = open_before {
            prop_assert_eq!(&decision, &Decision::Hold(before), "its order is kept before anything is sent");
        }
        let needs_webhook = !matches!(
            decision,
            Decision::Drop | Decision::RecordUnknownOutcome | Decision::Cancel(_) | Decision::Wait(Wait::Content, _)
        );
        prop_assert!(!needs_webhook || (knows_webhook && knows_event && enabled), "{:?}", decision);
    }
}
