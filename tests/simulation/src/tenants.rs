//! The tenants: clients that call the use cases, repeat requests that get no response, and remember the responses.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{DeliveryId, Time, WebhookId, pause, trace::Trace};
use problem::Problem;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use storage::{IdempotencyKey, IdempotentRequest, Once, Sender};
use webhooks::{
    deliveries::{jobs::RecoveryScope, requests::replay::ReplayRequest},
    events::{
        NewEvent,
        ingest::{BusEvent, Ingested},
    },
    subscriptions::{
        endpoint::rotate::RotationRequest,
        test_event::TestRequest,
        webhook::{change::WebhookChange, pausing::PauseRequest, register::NewWebhook},
    },
};

use crate::{
    bundle::{Bundle, entity, entity_id, rules},
    cloud::Cloud,
    endpoints::{Slot, address},
    geo_ip,
    journal::Actor,
    plan::{Action, Order, Step},
    records::{Answer, Records, Request},
    sandbox::Function,
};

/// The maximum number of tries for a request that gets no response.
const TRIES: u32 = 6;

/// All tenants' clients.
pub struct Tenants {
    pub(crate) cloud: Arc<Cloud>,
    order: Option<Order>,
    records: Mutex<Records>,
}

/// The outcome of one try.
type Tried = Result<Value, Problem>;

impl Tenants {
    /// Tenants that have no webhooks yet.
    pub fn new(cloud: Arc<Cloud>, order: Option<Order>) -> Arc<Self> {
        Arc::new(Self { cloud, order, records: Mutex::default() })
    }

    /// The facts that all tenants remember.
    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs a step.
    pub async fn act(&self, step: Step) {
        let world = &self.cloud.world;
        world.note_of(Actor::Step(step.number), || format!("{:?}", step.action));
        match step.action {
            Action::Register(slot, kind) | Action::RegisterPulled(slot, kind) => {
                let types: Vec<_> = kind.iter().map(|kind| kind.name()).collect();
                let name = format!("Webhook {slot:?}");
                let mut body = match step.action {
                    Action::RegisterPulled(..) => json!({ "name": name, "delivery": "pull", "eventList": types }),
                    _ => json!({ "name": name, "eventUrl": address(slot, 0), "eventList": types }),
                };
                if self.order.as_ref().is_some_and(|order| order.webhooks.contains(&slot)) {
                    body["order"] = "subject".into();
                }
                if self.order.is_some() && slot.1 % 2 == 1 && matches!(step.action, Action::Register(..)) {
                    body["maxAttemptsPerSecond"] = 2.into();
                }
                if slot.1 == 2 && matches!(step.action, Action::Register(..)) {
                    body["retries"] = "none".into();
                }
                let body = body.to_string();
                let key = format!("step-{}", step.number);
                let made = self
                    .request(step, None, Some(key.clone()), Function::ManageWebhooks, move |bundle| {
                        let (body, key) = (body.clone(), key.clone());
                        async move {
                            let new = NewWebhook::read(body.as_bytes(), &entity_id(slot.0), &rules())?;
                            let once = once(slot.0, "webhook", &key, body.as_bytes());
                            done(bundle.registration().register(&entity(slot.0), new, Some(&once)).await)
                        }
                    })
                    .await;
                if let Some(Answer::Done(made)) = made {
                    let mut records = self.records();
                    records.webhooks.extend(id(&made["id"]).map(|id| (slot, id)));
                    records.secrets.entry(slot).or_default().extend(made["signingSecret"].as_str().map(str::to_owned));
                }
            }
            Action::Publish(tenant, kind, key) => {
                // The same key always has the same body.
                let (kind, number) = match key {
                    Some(key) if key % 2 == 0 => ("booking.created", 1_000 + usize::from(key)),
                    Some(key) => ("booking.cancelled", 1_000 + usize::from(key)),
                    None => (kind.name(), step.number),
                };
                let mut body = json!({ "type": kind, "data": { "number": number } });
                self.add_subject(&mut body, number);
                let body = body.to_string();
                let key = key.map(|key| format!("key-{key}"));
                let again = key.clone();
                let published = self
                    .request(step, None, key, Function::PublishEvent, move |bundle| {
                        let (body, key) = (body.clone(), again.clone());
                        async move {
                            let read = key.as_ref().map(|key| IdempotencyKey::read([key.as_bytes()])).transpose();
                            let sender = sender(tenant, "event");
                            let publisher = bundle.publisher();
                            let longest = publisher.retention();
                            let read = read.map(Option::flatten);
                            let event = NewEvent::read(body.as_bytes(), read, Sender { ..sender }, longest)?;
                            let trace = Trace::derived_from(&body);
                            done(publisher.publish(&entity(tenant), event, &trace, None).await)
                        }
                    })
                    .await;
                if let Some(Answer::Done(published)) = published {
                    let planned = published["deliveries"].as_array().into_iter().flatten();
                    let known = planned.filter_map(|planned| planned["deliveryIdentifier"].as_str());
                    let known: Vec<_> = known.filter_map(DeliveryId::parse).collect();
                    self.records().deliveries.entry(tenant).or_default().extend(known);
                }
            }
            Action::PutOnBus(tenant, kind) => {
                let mut detail = json!({
                    "type": kind.name(), "managingEntityIdentifier": entity_id(tenant), "data": { "number": step.number },
                });
                self.add_subject(&mut detail, step.number);
                let detail = RawValue::from_string(detail.to_string()).expect("JSON");
                let id = format!("bus-{}", step.number);
                let key = Some(id.clone());
                self.request(step, None, key, Function::IngestEvent, move |bundle| {
                    let (id, detail) = (id.clone(), detail.clone());
                    async move {
                        let event = BusEvent { id, detail: &detail };
                        let trace = Trace::derived_from(detail.get());
                        match bundle.ingestion().ingest(detail.get(), Ok(event), &trace).await {
                            Ok(Ingested::Published(published)) => Ok(written(&published)),
                            Ok(Ingested::Rejected(rejection)) => Ok(json!({ "rejected": rejection.reason })),
                            Err(error) => Err(Problem::unavailable(error)),
                        }
                    }
                })
                .await;
            }
            Action::Enable(slot, enabled) => self.change(step, slot, json!({ "enabled": enabled })).await,
            Action::Move(slot) => {
                let url = self.next_address(slot);
                self.change(step, slot, json!({ "eventUrl": url })).await;
            }
            Action::Pull(slot, true) => self.change(step, slot, json!({ "delivery": "pull" })).await,
            Action::Pull(slot, false) => {
                let url = self.next_address(slot);
                self.change(step, slot, json!({ "delivery": "push", "eventUrl": url })).await;
            }
            Action::Order(slot, true) => self.change(step, slot, json!({ "order": "subject" })).await,
            Action::Order(slot, false) => self.change(step, slot, json!({ "order": "none" })).await,
            Action::Read(slot, reading) => {
                let Some(webhook) = self.webhook(slot) else { return };
                self.read(step, slot, webhook, reading).await;
            }
            Action::Remove(slot) => {
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                self.request(step, Some(webhook), None, Function::ManageWebhooks, move |bundle| {
                    let id = id.clone();
                    async move {
                        let removed = bundle.removal().remove(&entity(slot.0), &id, None).await;
                        removed.map(|()| Value::Null).map_err(Problem::from)
                    }
                })
                .await;
            }
            Action::Rotate(slot) => {
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                let key = format!("step-{}", step.number);
                let rotated = self
                    .request(step, Some(webhook), Some(key.clone()), Function::ManageWebhooks, move |bundle| {
                        let (id, key) = (id.clone(), key.clone());
                        async move {
                            let body = br#"{"overlapSeconds":3600,"endPrevious":true}"#;
                            let request = RotationRequest::read(body)?;
                            let once = once(slot.0, &format!("webhook/{id}/secret"), &key, body);
                            done(bundle.rotation().rotate(&entity(slot.0), &id, request, Some(&once)).await)
                        }
                    })
                    .await;
                if let Some(Answer::Done(rotated)) = rotated {
                    let secret = rotated["signingSecret"].as_str().map(str::to_owned);
                    self.records().secrets.entry(slot).or_default().extend(secret);
                }
            }
            Action::Test(slot) => {
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                let key = format!("step-{}", step.number);
                self.request(step, Some(webhook), Some(key.clone()), Function::ManageWebhooks, move |bundle| {
                    let (id, key) = (id.clone(), key.clone());
                    async move {
                        let once = once(slot.0, &format!("webhook/{id}/test"), &key, b"");
                        let trace = Trace::derived_from(&key);
                        done(
                            bundle
                                .testing()
                                .send(&entity(slot.0), &id, &TestRequest::default(), Some(&once), &trace)
                                .await,
                        )
                    }
                })
                .await;
            }
            Action::Pause(slot, lasts) => {
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                self.request(step, Some(webhook), None, Function::ManageWebhooks, move |bundle| {
                    let id = id.clone();
                    async move {
                        let now = bundle.clock().now();
                        let body = json!({ "until": now + lasts }).to_string();
                        let request = PauseRequest::read(body.as_bytes(), now)?;
                        done(bundle.pausing().pause(&entity(slot.0), &id, request).await)
                    }
                })
                .await;
            }
            Action::Resume(slot) => {
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                self.request(step, Some(webhook), None, Function::ManageWebhooks, move |bundle| {
                    let id = id.clone();
                    async move { done(bundle.pausing().resume(&entity(slot.0), &id).await) }
                })
                .await;
            }
            Action::Resend(tenant, which) => {
                let delivery = {
                    let records = self.records();
                    let known = records.deliveries.get(&tenant).map(Vec::as_slice).unwrap_or_default();
                    known.get(usize::from(which) % known.len().max(1)).cloned()
                };
                let Some(delivery) = delivery else { return };
                *self.records().resends.entry(delivery.clone()).or_default() += 1;
                let key = format!("step-{}", step.number);
                self.request(step, None, Some(key.clone()), Function::ResendDelivery, move |bundle| {
                    let (delivery, key) = (delivery.clone(), key.clone());
                    async move {
                        let once = once(tenant, &format!("delivery/{delivery}/resend"), &key, b"");
                        let resent = bundle.resending().resend(&entity(tenant), &delivery, Some(&once)).await;
                        resent.map(|resent| json!({ "id": resent.delivery().id })).map_err(Problem::from)
                    }
                })
                .await;
            }
            Action::Cancel(tenant, which) => {
                let Some(delivery) = self.latest_delivery(tenant, which) else { return };
                self.records().cancelled.insert(delivery.clone());
                self.request(step, None, None, Function::CancelDelivery, move |bundle| {
                    let delivery = delivery.clone();
                    async move {
                        let cancelled = bundle.cancelling().cancel(&entity(tenant), &delivery).await;
                        cancelled.map(|cancelled| json!({ "id": cancelled.delivery.id })).map_err(Problem::from)
                    }
                })
                .await;
            }
            Action::Erase(tenant, which) => {
                let Some(delivery) = self.latest_delivery(tenant, which) else { return };
                let event = delivery.event();
                self.records().erased.insert(event.clone());
                self.request(step, None, None, Function::EraseEvent, move |bundle| {
                    let event = event.clone();
                    async move { done(bundle.erasing().erase(&entity(tenant), &event, Once::NO_KEY).await) }
                })
                .await;
            }
            Action::Recover(slot, minutes) => {
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                let since = world.now() - Duration::from_secs(60 * u64::from(minutes));
                let body = json!({ "createdFrom": since }).to_string();
                let key = format!("step-{}", step.number);
                self.request(step, Some(webhook), Some(key.clone()), Function::RecoverDeliveries, move |bundle| {
                    let (id, key, body) = (id.clone(), key.clone(), body.clone());
                    async move {
                        let now = bundle.clock().now();
                        let scope = RecoveryScope::read(body.as_bytes(), now)?;
                        let once = once(slot.0, &format!("webhook/{id}/recover"), &key, body.as_bytes());
                        done(bundle.recovery().recover(&entity(slot.0), &id, scope, Some(&once), now).await)
                    }
                })
                .await;
            }
            Action::Replay(slot, minutes) => {
                const HOUR: i64 = 60 * 60 * 1_000;
                let Some(webhook) = self.webhook(slot) else { return };
                let id = webhook.clone();
                let since = world.now() - Duration::from_secs(60 * u64::from(minutes));
                // This is often the range of a replay in progress, since no other range is accepted.
                let since = Time::from_millis(since.as_millis().div_euclid(HOUR) * HOUR);
                let body = json!({ "createdFrom": since }).to_string();
                let key = format!("step-{}", step.number);
                self.request(step, Some(webhook), Some(key.clone()), Function::RecoverDeliveries, move |bundle| {
                    let (id, key, body) = (id.clone(), key.clone(), body.clone());
                    async move {
                        let now = bundle.clock().now();
                        let request = ReplayRequest::read(body.as_bytes(), &entity_id(slot.0), now)?;
                        let once = once(slot.0, &format!("webhook/{id}/replay"), &key, body.as_bytes());
                        done(bundle.replaying().replay(&entity(slot.0), &id, request, Some(&once), now).await)
                    }
                })
                .await;
            }
            Action::React(slot, mood) => {
                world.state().endpoints.moods.insert(slot, mood);
            }
            Action::Throttle(tenant, time) => {
                let until = world.clock.millis() + u64::try_from(time.as_millis()).unwrap_or_default();
                let partition = format!("ENT#{}", entity_id(tenant).as_str());
                let now = world.clock.millis();
                let mut state = world.state();
                state.throttles.push((partition.clone(), now, until));
                state.throttled.insert(partition, until);
            }
            Action::LoseSecrets(time) => {
                let until = world.clock.millis() + u64::try_from(time.as_millis()).unwrap_or_default();
                world.state().secrets_away_until = until;
            }
            Action::GeoIp(action) => geo_ip::act(&self.cloud, action).await,
            Action::Expire => {
                let now = world.clock.millis();
                let late = world.draws.about(&("expire", step.number)).u64(0..48 * 3_600_000);
                world.state().table.remove_expired(now, late);
            }
            Action::OAuth(action) => self.act_on_tokens(step, action).await,
            Action::Providers(action) => self.act_on_providers(step, action).await,
        }
    }

    fn webhook(&self, slot: Slot) -> Option<WebhookId> {
        self.records().webhooks.get(&slot).cloned()
    }

    fn latest_delivery(&self, tenant: usize, which: u8) -> Option<DeliveryId> {
        const LATEST: usize = 6;
        let records = self.records();
        let known = records.deliveries.get(&tenant)?;
        let latest = &known[known.len().saturating_sub(LATEST)..];
        latest.get(usize::from(which) % latest.len().max(1)).cloned()
    }

    /// Gives an event with this number its subject, if the history has subjects.
    fn add_subject(&self, event: &mut Value, number: usize) {
        if let Some(order) = &self.order {
            event["subject"] = format!("B-{}", number % order.subjects.max(1)).into();
        }
    }

    /// A new URL for a webhook.
    fn next_address(&self, slot: Slot) -> String {
        let mut records = self.records();
        let version = records.addresses.entry(slot).or_default();
        *version += 1;
        address(slot, *version)
    }

    async fn change(&self, step: Step, slot: Slot, body: Value) {
        let Some(webhook) = self.webhook(slot) else { return };
        let id = webhook.clone();
        let body = body.to_string();
        self.request(step, Some(webhook), None, Function::ManageWebhooks, move |bundle| {
            let (id, body) = (id.clone(), body.clone());
            async move {
                let change = WebhookChange::read(body.as_bytes(), &entity_id(slot.0), &rules())?;
                done(bundle.changing().change(&entity(slot.0), &id, &change, Once::NO_KEY).await)
            }
        })
        .await;
    }

    /// Repeats a request until it gets a response, and remembers the response.
    pub(crate) async fn request<W>(
        &self,
        step: Step,
        webhook: Option<WebhookId>,
        key: Option<String>,
        function: Function,
        work: impl Fn(Arc<Bundle>) -> W + Clone + Send + 'static,
    ) -> Option<Answer>
    where
        W: Future<Output = Tried> + Send + 'static,
    {
        let world = Arc::clone(&self.cloud.world);
        let number = {
            let mut records = self.records();
            let began = world.clock.millis();
            records.requests.push(Request { step, webhook, key, began, answer: None, tries: 0 });
            records.requests.len() - 1
        };
        for tries in 1..=TRIES {
            let tried = self.cloud.invoke(function, work.clone()).await;
            self.records().requests[number].tries = tries;
            let answer = match tried {
                Some(Ok(value)) => Some(Answer::Done(value)),
                Some(Err(problem)) if problem.kind.status().as_u16() < 500 => {
                    Some(Answer::Refused(problem.kind.status().as_u16()))
                }
                Some(Err(_)) | None => None,
            };
            if let Some(answer) = answer {
                let now = world.clock.millis();
                world.note_of(Actor::Step(step.number), || format!("is answered: {answer}"));
                self.records().requests[number].answer = Some((answer.clone(), now));
                return Some(answer);
            }
            let mut rng = world.draws.about(&("client", step.number, tries));
            // Some clients give up.
            if rng.u8(0..8) == 0 {
                break;
            }
            pause(Duration::from_millis(rng.u64(200..8_000))).await;
        }
        world.note_of(Actor::Step(step.number), || "gets no answer, and gives up".to_owned());
        None
    }
}

fn id(value: &Value) -> Option<WebhookId> {
    value.as_str().and_then(WebhookId::parse)
}

pub(crate) fn done<T: Serialize, E: Into<Problem>>(result: Result<T, E>) -> Tried {
    result.map(|value| written(&value)).map_err(Into::into)
}

fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("an answer can be written")
}

fn sender(tenant: usize, path: &'static str) -> Sender<'static> {
    // Bursts have eleven entities.
    const ENTITIES: [&str; 11] = [
        "hotel-0", "hotel-1", "hotel-2", "hotel-3", "hotel-4", "hotel-5", "hotel-6", "hotel-7", "hotel-8", "hotel-9",
        "hotel-10",
    ];
    Sender { entity: ENTITIES[tenant], client: "client", path }
}

pub(crate) fn once(tenant: usize, path: &str, key: &str, body: &[u8]) -> IdempotentRequest {
    let key = IdempotencyKey::read([key.as_bytes()]).ok().flatten().expect("a valid key");
    IdempotentRequest::of_request(Sender { path, ..sender(tenant, "") }, key, body)
}
