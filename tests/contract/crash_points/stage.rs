//! The stage for crash tests: a bundle behind proxies, a receiver, and for each crash point a separate entity with
//! webhooks, so that items on disk and requests can later be attributed to crash points.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde_json::{Value, json};
use tokio::{sync::SemaphorePermit, task::JoinHandle};

use crate::harness::{
    Api, ApiResponse, AwsCall, Behaviour, Bundle, Call, Entity, Held, Hook, Interposed, Interposer, LONG, Moment,
    Received, Receiver, Settings, Suite, Table, announced, interrupted, now, stored, time, until, until_gone,
};

/// The age, in seconds, by which the sweep has opened a delivery.
const OPENED_BY: i64 = 30;

/// The bundle, the receiver, and the crash points tested so far.
pub struct Stage<'a> {
    /// The bundle and its proxies.
    pub setup: Interposed,
    receiver: Receiver,
    scenes: Mutex<Vec<Played>>,
    /// The periods during which the dispatcher was killed.
    kills: Mutex<Vec<Range<Instant>>>,
    count: Mutex<u32>,
    /// Only one publish request is held at a time, since two concurrent ones may share the call that announces them.
    announcing: tokio::sync::Mutex<()>,
    _permit: SemaphorePermit<'a>,
}

/// The entity and webhooks for one crash point.
#[derive(Clone)]
pub struct Scene {
    /// The scene's entity.
    pub entity: Entity,
    /// The entity's webhooks.
    pub hooks: Vec<Hook>,
    /// The receiver's path for the webhooks.
    pub path: String,
    /// The data of the scene's event.
    pub data: Value,
}

/// A tested crash point, for the final checks.
struct Played {
    point: String,
    on_disk: String,
    scene: Scene,
    deliveries: Vec<String>,
    ends: &'static str,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scene {
    /// Sends one publish request with the client's key, which stays the same.
    pub fn publish(&self) -> JoinHandle<Option<ApiResponse>> {
        let scene = self.clone();
        tokio::spawn(async move { scene.publish_once().await })
    }

    /// Publishes while no crash interrupts the request. A slow machine's 503 is repeated, as by every client.
    pub fn publish_undisturbed(&self) -> JoinHandle<Option<ApiResponse>> {
        let publication = self.publication().answered();
        tokio::spawn(async move { Some(publication.await).filter(|answer| answer.status == 202) })
    }

    fn publication(&self) -> Call {
        let body = json!({ "type": "booking.created", "data": self.data });
        self.entity.post("/webhook/event").header("idempotency-key", &self.entity.id).json(&body)
    }

    /// The acknowledgement of the request, if there is one.
    pub async fn publish_once(&self) -> Option<ApiResponse> {
        let answer = self.publication().attempt().await.ok()?;
        if answer.status != 202 {
            eprintln!("a publication was not acknowledged: {}", answer.exchange);
        }
        Some(answer).filter(|answer| answer.status == 202)
    }

    /// Repeats the publish request until it is acknowledged; returns the deliveries.
    pub async fn acknowledged(&self) -> Vec<String> {
        until("the publication is acknowledged", LONG, async || self.publish_once().await.as_ref().map(deliveries))
            .await
    }
}

/// The acknowledgement of a publish request that no crash interrupts.
pub async fn acknowledged(publication: JoinHandle<Option<ApiResponse>>) -> ApiResponse {
    publication.await.expect("no panic").expect("no crash interrupts it")
}

/// The deliveries that a response lists.
pub fn deliveries(answer: &ApiResponse) -> Vec<String> {
    let answer = answer.json();
    let deliveries = answer["deliveries"].as_array().expect("openapi.yaml says so");
    let identifiers = deliveries.iter().map(|delivery| delivery["deliveryIdentifier"].as_str().expect("a text"));
    identifiers.map(str::to_owned).collect()
}

/// Whether a call writes to this item with these words in its statement or expression.
pub fn writes(call: &AwsCall, item: &str, words: &str) -> bool {
    let says = |part: &Value| {
        let part = part.to_string();
        part.contains(item) && part.replace("\\\"", "").contains(words)
    };
    let in_transaction = || call.body["TransactItems"].as_array().into_iter().flatten().any(says);
    match call.operation.as_str() {
        "TransactWriteItems" => in_transaction(),
        "PutItem" | "UpdateItem" | "DeleteItem" => says(&call.body),
        _ => call.statements().into_iter().any(says),
    }
}

impl<'a> Stage<'a> {
    /// Starts a bundle with these settings, behind proxies.
    pub async fn set(suite: &'a Suite, settings: Settings) -> Self {
        let (setup, permit) = suite.other_bundle_interposed(settings).await;
        Self {
            setup,
            receiver: Receiver::start().await,
            scenes: Mutex::default(),
            kills: Mutex::default(),
            count: Mutex::new(0),
            announcing: tokio::sync::Mutex::default(),
            _permit: permit,
        }
    }

    /// The table's proxy.
    pub fn table(&self) -> &Interposer {
        &self.setup.table
    }

    /// The queue's proxy.
    pub fn queue(&self) -> &Interposer {
        &self.setup.services
    }

    fn bundle(&self) -> &Bundle {
        &self.setup.bundle
    }

    /// Creates an entity with this many webhooks, all with this behaviour.
    pub async fn scene(&self, webhooks: usize, script: impl Into<Vec<Behaviour>>) -> Scene {
        let number = {
            let mut count = locked(&self.count);
            *count += 1;
            *count
        };
        let id = format!("scene-{number:03}");
        let (path, api): (String, &Api) = (format!("/{id}"), &self.setup.api);
        let entity = Entity::new(api, id).await;
        let url = self.receiver.on(&path, script);
        let mut hooks = Vec::new();
        for _ in 0..webhooks {
            hooks.push(entity.hook_without_key(&url).await);
        }
        let data = json!({ "scene": entity.id });
        Scene { entity, hooks, path, data }
    }

    /// Sets the receiver's behaviour for a scene's requests; returns their address.
    pub fn receiver_does(&self, scene: &Scene, script: impl Into<Vec<Behaviour>>) -> String {
        self.receiver.on(&scene.path, script)
    }

    /// Waits until the receiver has received this many of a scene's requests.
    pub async fn until_received(&self, scene: &Scene, count: usize) -> Vec<Received> {
        self.receiver.until(&scene.path, count).await
    }

    /// Kills a function's process and waits until it has ended.
    pub async fn kill(&self, function: &str) {
        let process = self.bundle().process(function).await;
        let began = Instant::now();
        process.kill();
        until_gone(std::slice::from_ref(&process)).await;
        if function == "dispatch-deliveries" {
            locked(&self.kills).push(began..Instant::now());
        }
    }

    /// Publishes and holds the first announcement, so that the test knows the delivery before the next steps.
    pub async fn publish_and_hold(&self, scene: &Scene) -> (String, Held, JoinHandle<Option<ApiResponse>>) {
        let _turn = self.announcing.lock().await;
        let webhook = scene.hooks[0].id.clone();
        let announced = {
            let webhook = webhook.clone();
            // In the meantime, an earlier delivery to the webhook may announce its second attempt.
            move |call: &AwsCall| announced(call).iter().any(|due| due.webhook == webhook && due.number == 1)
        };
        let mut held = self.queue().hold("the first announcement", Moment::Before, announced);
        let mut publication = scene.publish_undisturbed();
        let call = tokio::select! {
            call = held.reached() => call,
            // If a publish request ends before its announcement, it has failed; its response shows the reason.
            ended = &mut publication => panic!("a publication ended before its announcement: {ended:?}"),
        };
        (delivery_in(&call, &webhook), held, publication)
    }

    /// Records a tested crash point and the current items on disk; the deliveries must end in this status.
    pub async fn note(&self, point: &str, scene: &Scene, deliveries: Vec<String>, ends: &'static str) {
        let on_disk = self.on_disk(scene).await;
        self.played(point, on_disk, scene, deliveries, ends);
    }

    /// Records a tested crash point with the items that were on disk earlier.
    pub fn played(&self, point: &str, on_disk: String, scene: &Scene, deliveries: Vec<String>, ends: &'static str) {
        let point = point.to_owned();
        let scene = scene.clone();
        locked(&self.scenes).push(Played { point, on_disk, scene, deliveries, ends });
    }

    /// A scene's items in the table, read directly rather than through the service and the proxy.
    pub async fn on_disk(&self, scene: &Scene) -> String {
        let (entity, mut found) = (&scene.entity.id, BTreeMap::<String, usize>::new());
        for item in Table::of(&self.setup.api.env).scan().await {
            let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
            let pk = text("pk");
            let sk = text("sk");
            let whose = item.to_string();
            if !whose.contains(&format!("{entity}\""))
                && !whose.contains(&format!("{entity}#"))
                && !whose.contains(&format!("{entity}\\\""))
            {
                continue;
            }
            let what = match pk.split('#').next() {
                Some("IDEMPOTENCY") => "key".to_owned(),
                Some("EVENTS") => "event".to_owned(),
                Some("OUTBOX") => "outbox".to_owned(),
                Some("JOB") => "job".to_owned(),
                Some("LINE") => "line".to_owned(),
                Some("EVT") if stored::is_head(&item) => {
                    let lease = if item.get("lease").is_some() { ", leased" } else { "" };
                    format!(
                        "head ({}, {} attempts{lease})",
                        text("status"),
                        item["attemptCount"]["N"].as_str().unwrap_or("?")
                    )
                }
                Some("ENT") if sk.starts_with("STA#") => "stats".to_owned(),
                Some("ENT") if sk.starts_with("HLT#") => "health".to_owned(),
                _ => continue,
            };
            *found.entry(what).or_default() += 1;
        }
        let found = found.into_iter().map(|(what, count)| if count == 1 { what } else { format!("{count} × {what}") });
        let found: Vec<String> = found.collect();
        if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }
    }

    /// Waits until every delivery has reached its final status, compares the receiver's requests with the histories,
    /// prints the crash points, and stops the bundle.
    pub async fn end(self) {
        let played = std::mem::take(&mut *locked(&self.scenes));
        let mut lines = Vec::new();
        for Played { point, on_disk, scene, deliveries, ends } in &played {
            let mut unknown = 0;
            for id in deliveries {
                let delivery = scene.entity.until_status(id, &["delivered", "failed", "cancelled"]).await;
                assert_eq!(delivery["status"], *ends, "{point}: {delivery:#}");
                let requests = self.receiver.received(&scene.path);
                let requests: Vec<&Received> =
                    requests.iter().filter(|request| request.header("service-delivery-id") == id).collect();
                unknown += interrupted(&requests, &delivery, &locked(&self.kills));
            }
            lines.push(format!("| {point} | {on_disk} | {} {ends}, {unknown} interrupted |", deliveries.len()));
        }
        self.nothing_is_stuck().await;
        println!("{}", lines.join("\n"));
        assert!(self.bundle().stop().await.success());
    }

    /// Checks that every open delivery has a time from which it can be claimed and, unless it is new, a due time for
    /// the sweep; and that no final delivery has a lease or either of these times.
    async fn nothing_is_stuck(&self) {
        for item in Table::of(&self.setup.api.env).scan().await.iter().filter(|item| stored::is_head(item)) {
            let open = ["pending", "retrying"].iter().any(|status| item["status"]["S"] == *status);
            let has = |name: &str| item.get(name).is_some();
            assert_eq!(has("claimableAt"), open, "{item:#}");
            assert_eq!(has("dueShard"), has("dueAt"), "{item:#}");
            let is_new = now() - time(&item["createdDate"]["S"]).as_second() < OPENED_BY;
            assert!(has("dueAt") == open || open && is_new, "{item:#}");
            assert!(open || !has("lease"), "a final delivery is leased: {item:#}");
        }
    }
}

/// The delivery to a webhook that a batch of messages announces.
fn delivery_in(call: &AwsCall, webhook: &str) -> String {
    let due = announced(call).into_iter().find(|due| due.webhook == webhook && due.number == 1);
    due.unwrap_or_else(|| panic!("no delivery in {}", call.body)).delivery
}
