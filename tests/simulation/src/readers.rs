//! Feed readers: clients that get pull webhooks' deliveries, then report the outcomes or die.

use std::{collections::BTreeMap, time::Duration};

use base::{WebhookId, pause};
use fastrand::Rng;
use problem::Problem;
use serde_json::{Value, json};
use webhooks::deliveries::feed::{acknowledge::Acknowledgement, read::FeedRequest};

use crate::{
    bundle::entity,
    endpoints::Slot,
    plan::{Action, Step},
    promises::facts::{millis, slot_of, text},
    records::Answer,
    sandbox::Function,
    tenants::{Tenants, done},
};

/// A reader's request for deliveries, and its reaction to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reading {
    /// The maximum number of deliveries that the reader takes.
    pub limit: u8,
    /// The visibility timeout that the reader requests, in seconds.
    pub visibility: u8,
    /// How long the reader waits for the first delivery, in seconds.
    pub wait: u8,
    /// How long the reader works on the deliveries, in milliseconds.
    pub works: u64,
    /// How the reader reacts to the deliveries.
    pub reaction: Reaction,
}

/// How a reader reacts to the deliveries that it received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reaction {
    /// Confirms all deliveries.
    Confirms,
    /// Reports some deliveries as failed, and confirms the others.
    Reports,
    /// Confirms all deliveries, and later confirms them again.
    Repeats,
    /// Dies without answering for any delivery.
    Dies,
}

/// The facts that all readers remember.
#[derive(Debug, Default)]
pub struct Readers {
    /// The deliveries that readers received, in order of arrival.
    pub handed_out: Vec<HandedOut>,
    /// The answers that readers sent.
    pub answers: Vec<ReaderAnswer>,
}

/// A delivery that a reader received.
#[derive(Debug, Clone)]
pub struct HandedOut {
    /// The delivery's identifier.
    pub delivery: String,
    /// The number of the attempt.
    pub attempt: u64,
    /// The receipt.
    pub receipt: String,
    /// When the function returned the delivery, by the function's clock, in milliseconds.
    pub claimed: u64,
    /// When the reader received the delivery, in milliseconds.
    pub received: u64,
    /// Until when the reader holds the delivery, by the function's clock, in milliseconds.
    pub visible_from: u64,
}

/// A reader's answer for one delivery.
#[derive(Debug, Clone)]
pub struct ReaderAnswer {
    /// The receipt.
    pub receipt: String,
    /// Whether the answer confirms the delivery; otherwise, it reports a failure.
    pub confirms: bool,
    /// When the answer was first sent, in milliseconds.
    pub sent: u64,
    /// How often the answer was sent.
    pub tries: u32,
    /// The outcome, and when the response with it arrived, in milliseconds; `None` if no try got a response.
    pub outcome: Option<(String, u64)>,
}

impl Readers {
    /// The number of answers for each outcome.
    pub fn outcomes(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (outcome, _) in self.answers.iter().filter_map(|answer| answer.outcome.as_ref()) {
            *counts.entry(outcome.clone()).or_default() += 1;
        }
        counts
    }

    /// Whether a reader sent a confirmation for this attempt at a delivery.
    pub fn confirmed(&self, delivery: &str, attempt: u64) -> bool {
        let is_of = |held: &&HandedOut| held.delivery == delivery && held.attempt == attempt;
        let receipts: Vec<_> = self.handed_out.iter().filter(is_of).map(|held| &held.receipt).collect();
        self.answers.iter().any(|answer| answer.confirms && receipts.contains(&&answer.receipt))
    }
}

impl Reading {
    /// A random reader.
    pub fn draw(rng: &mut Rng) -> Self {
        let visibility = if rng.bool() { 10 } else { rng.u8(10..=60) };
        // Most readers are fast; some take longer than their visibility timeout.
        let works = match rng.u8(0..4) {
            0 => (f64::from(visibility) * 1_500.0 * rng.f64()) as u64,
            _ => (2_000.0 * rng.f64().powi(2)) as u64,
        };
        let reaction = match rng.u8(0..10) {
            0..=4 => Reaction::Confirms,
            5..=6 => Reaction::Reports,
            7 => Reaction::Repeats,
            _ => Reaction::Dies,
        };
        let limit = if rng.bool() { 10 } else { rng.u8(1..=3) };
        Self { limit, visibility, wait: rng.u8(0..=5), works, reaction }
    }

    /// A random reader that answers after its visibility timeout.
    pub fn late(rng: &mut Rng) -> Self {
        let works = rng.u64(10_000..25_000);
        let reaction = if rng.bool() { Reaction::Confirms } else { Reaction::Reports };
        Self { limit: 10, visibility: 10, wait: 5, works, reaction }
    }

    /// A reader that takes as much as it can get and confirms everything immediately.
    const fn diligent() -> Self {
        Self { limit: 100, visibility: 60, wait: 0, works: 0, reaction: Reaction::Confirms }
    }
}

impl Tenants {
    /// Makes a reader get deliveries and react to them. Returns the number of deliveries.
    pub(crate) async fn read(&self, step: Step, slot: Slot, webhook: WebhookId, reading: Reading) -> usize {
        let page = self.ask(step, slot, webhook.clone(), reading).await;
        let got = page.len();
        self.records().readers.handed_out.extend(page.iter().cloned());
        if got == 0 || reading.reaction == Reaction::Dies {
            return got;
        }
        pause(Duration::from_millis(reading.works)).await;
        let mut rng = self.cloud.world.draws.about(&("reader", step.number));
        let reports = reading.reaction == Reaction::Reports;
        let answers: Vec<_> = page.into_iter().map(|got| (got.receipt, !(reports && rng.bool()))).collect();
        self.answer(step, slot, webhook.clone(), answers.clone()).await;
        if reading.reaction == Reaction::Repeats {
            pause(Duration::from_secs_f64(20.0 * rng.f64().powi(3))).await;
            self.answer(step, slot, webhook, answers).await;
        }
        got
    }

    /// Requests deliveries. If there is no response, the reader tries again, and may then hold deliveries that it does
    /// not know about.
    async fn ask(&self, step: Step, slot: Slot, webhook: WebhookId, reading: Reading) -> Vec<HandedOut> {
        let id = webhook.clone();
        let answer = self
            .request(step, Some(webhook), None, Function::ReadFeed, move |bundle| {
                let id = id.clone();
                async move {
                    let Reading { limit, visibility, wait, .. } = reading;
                    let body = json!({ "limit": limit, "visibility": visibility, "wait": wait }).to_string();
                    let request = FeedRequest::read(body.as_bytes())?;
                    done(bundle.feeds().read(&bundle.rings, &entity(slot.0), &id, request, None, &()).await)
                }
            })
            .await;
        let Some(Answer::Done(page)) = answer else { return Vec::new() };
        let received = self.cloud.world.clock.millis();
        let deliveries = page["items"].as_array().into_iter().flatten();
        let handed_out = |delivery: &Value| {
            let visible_from = delivery["visibleFrom"].as_str().and_then(millis).unwrap_or_default();
            HandedOut {
                delivery: delivery["deliveryIdentifier"].as_str().unwrap_or_default().to_owned(),
                attempt: delivery["attemptNumber"].as_u64().unwrap_or_default(),
                receipt: delivery["receipt"].as_str().unwrap_or_default().to_owned(),
                claimed: visible_from.saturating_sub(1_000 * u64::from(reading.visibility)),
                received,
                visible_from,
            }
        };
        deliveries.map(handed_out).collect()
    }

    /// Sends answers: for each receipt, whether it confirms the delivery.
    async fn answer(&self, step: Step, slot: Slot, webhook: WebhookId, answers: Vec<(String, bool)>) {
        let first = {
            let sent = self.cloud.world.clock.millis();
            let mut records = self.records();
            let known = &mut records.readers.answers;
            let first = known.len();
            let answer = |(receipt, confirms): &(String, bool)| {
                let (receipt, confirms) = (receipt.clone(), *confirms);
                ReaderAnswer { receipt, confirms, sent, tries: 0, outcome: None }
            };
            known.extend(answers.iter().map(answer));
            first
        };
        let count = answers.len();
        let (confirmed, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, confirms)| *confirms);
        let confirmed: Vec<_> = confirmed.into_iter().map(|(receipt, _)| receipt).collect();
        let failed: Vec<_> =
            failed.into_iter().map(|(receipt, _)| json!({ "receipt": receipt, "reason": "full" })).collect();
        let body = json!({ "confirmed": confirmed, "failed": failed }).to_string();
        let number = self.records().requests.len();
        let id = webhook.clone();
        let answer = self
            .request(step, Some(webhook), None, Function::AcknowledgeFeed, move |bundle| {
                let (id, body) = (id.clone(), body.clone());
                async move {
                    let answers = Acknowledgement::read(body.as_bytes())?;
                    done(bundle.feeds().acknowledge(&entity(slot.0), &id, answers).await.map_err(Problem::from))
                }
            })
            .await;
        let now = self.cloud.world.clock.millis();
        let mut records = self.records();
        let tries = records.requests[number].tries;
        let sent = &mut records.readers.answers[first..first + count];
        sent.iter_mut().for_each(|sent| sent.tries = tries);
        let Some(Answer::Done(answer)) = answer else { return };
        for result in answer["items"].as_array().into_iter().flatten() {
            let outcome = result["outcome"].as_str().unwrap_or_default().to_owned();
            let sent = sent.iter_mut().find(|sent| result["receipt"] == sent.receipt.as_str());
            if let Some(sent) = sent {
                sent.outcome = Some((outcome, now));
            }
        }
    }

    /// Reads all feeds until they are empty, and confirms everything. The webhooks are read from the table, since a
    /// tenant may not know a webhook whose registration got no response.
    pub async fn empty_feeds(&self) {
        /// More reads than a history's deliveries require.
        const MOST: usize = 50;
        for (slot, webhook) in self.pulled() {
            for _ in 0..MOST {
                let reading = Reading::diligent();
                let number = 50_000 + self.records().requests.len();
                let step = Step { number, at: Duration::ZERO, action: Action::Read(slot, reading) };
                if self.read(step, slot, webhook.clone(), reading).await == 0 {
                    break;
                }
            }
        }
    }

    fn pulled(&self) -> Vec<(Slot, WebhookId)> {
        let state = self.cloud.world.state();
        let webhooks = state.table.items().filter_map(|((_, sort), item)| {
            let id = WebhookId::parse(sort.strip_prefix("WHK#")?)?;
            let is_enabled = item.get("enabled").is_some_and(|enabled| enabled["BOOL"] == true);
            let slot = slot_of(item)?;
            (is_enabled && text(item, "delivery") == "pull").then_some((slot, id))
        });
        webhooks.collect()
    }
}
