//! A managing entity for one test, with the platform's token: its events reach only its own webhooks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Api, ApiResponse, Application, Call, LONG, until};

/// The event type for tests in which the type does not matter.
const SOME_TYPE: &str = "booking.created";

fn every_type(url: &str) -> Value {
    json!({ "name": "test", "eventUrl": url, "eventList": [] })
}

#[derive(Clone)]
pub struct Entity {
    pub id: String,
    api: Api,
    token: String,
}

/// A webhook that was created.
#[derive(Debug, Clone)]
pub struct Hook {
    pub id: String,
    /// The webhook's signing secret.
    pub secret: String,
    pub json: Value,
}

impl Entity {
    /// The entity with this name.
    pub async fn new(api: &Api, id: String) -> Self {
        Self { id, api: api.clone(), token: api.token(Application::Platform, "").await }
    }

    /// A path that begins with the entity's path.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/managing-entity/{}{rest}", self.id)
    }

    /// A request with this method and the token.
    pub fn call(&self, method: &str, rest: &str) -> Call {
        self.api.call(method, self.path(rest)).bearer(&self.token)
    }

    /// A GET with the token.
    pub fn get(&self, rest: &str) -> Call {
        self.call("GET", rest)
    }

    /// A POST with the token; the caller adds the body.
    pub fn post(&self, rest: &str) -> Call {
        self.call("POST", rest)
    }

    /// The client for the entity's requests.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Creates a webhook for every event type.
    pub async fn hook(&self, url: &str) -> Hook {
        self.hook_with(every_type(url)).await
    }

    /// Creates a webhook for every event type without an idempotency key, whose record would count as a stored item.
    pub async fn hook_without_key(&self, url: &str) -> Hook {
        Self::created(self.post("/webhook"), every_type(url)).await
    }

    pub async fn hook_with(&self, body: Value) -> Hook {
        Self::created(self.post("/webhook").once(), body).await
    }

    /// Creates a webhook by sending this request.
    pub async fn created(call: Call, body: Value) -> Hook {
        let json = call.json(&body).expect(201).await.json();
        let text = |name: &str| json[name].as_str().expect("openapi.yaml says so").to_owned();
        Hook { id: text("id"), secret: text("signingSecret"), json }
    }

    /// The webhook, as the list shows it.
    pub async fn listed(&self, hook: &Hook) -> Value {
        let list = self.get("/webhook/list").expect(200).await.json();
        let webhooks = list.as_array().expect("openapi.yaml says so");
        webhooks.iter().find(|webhook| webhook["id"] == hook.id.as_str()).expect("a webhook is listed").clone()
    }

    /// Publishes an event, and returns its only delivery.
    pub async fn publish(&self, data: Value) -> String {
        let published = self.publish_of_type(SOME_TYPE, data).await.json();
        let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
        assert_eq!(deliveries.len(), 1, "one webhook, one delivery: {published}");
        deliveries[0]["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
    }

    pub async fn publish_of_type(&self, kind: &str, data: Value) -> ApiResponse {
        self.publish_event(&json!({ "type": kind, "data": data })).await
    }

    /// Publishes as a client should: with a key, and again after a 503, which occurs if a machine stalls for seconds.
    pub async fn publish_event(&self, event: &Value) -> ApiResponse {
        self.post("/webhook/event").once().json(event).expect(202).await
    }

    /// Publishes further events until the service has disabled the webhook, whose endpoint responds with 410; returns
    /// the webhook as the list shows it. If the table is slow, the service gives up on disabling the webhook, and the
    /// next 410 disables it.
    pub async fn until_gone(&self, gone: &Hook) -> Value {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < LONG, "no 410 disables the webhook");
            let listed = self.listed(gone).await;
            if listed["enabled"] == false {
                return listed;
            }
            let published = self.publish_of_type(SOME_TYPE, json!({})).await.json();
            let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so");
            for delivery in deliveries.iter().filter(|delivery| delivery["webhookIdentifier"] == *gone.id) {
                let id = delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
                // The delivery is cancelled if an earlier 410 has disabled the webhook in the meantime.
                self.until_status(id, &["failed", "cancelled"]).await;
            }
        }
    }

    pub async fn delivery(&self, id: &str) -> Value {
        self.get(&format!("/webhook/delivery/{id}")).expect(200).await.json()
    }

    /// Waits until a delivery has one of these states.
    pub async fn until_status(&self, id: &str, states: &[&str]) -> Value {
        self.until_delivery(id, &format!("is {states:?}"), |delivery| {
            states.iter().any(|status| delivery["status"] == *status)
        })
        .await
    }

    /// Waits until a delivery satisfies a condition; a failure message shows the delivery.
    pub async fn until_delivery(&self, id: &str, what: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let wait = until(what, LONG, async || {
            last = self.delivery(id).await;
            is_so(&last).then(|| last.clone())
        });
        match tokio::time::timeout(LONG - Duration::from_secs(5), wait).await {
            Ok(delivery) => delivery,
            Err(_) => panic!("the delivery never {what}: {last:#}"),
        }
    }

    /// Publishes to a new webhook at this address, and waits until the delivery has succeeded or failed.
    pub async fn deliver_to(&self, url: &str) -> Value {
        self.hook(url).await;
        let delivery = self.publish(json!({ "some": "data" })).await;
        self.until_status(&delivery, &["delivered", "failed"]).await
    }
}
