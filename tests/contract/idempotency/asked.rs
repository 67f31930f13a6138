//! Requests with an idempotency key, and the number of resources that they have created.

use serde_json::{Value, json};

use crate::{
    applications::{KEY, made, of},
    harness::{Api, ApiResponse, Call, Entity, Suite, Table},
};

/// The kind of request, which also determines the resources to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Webhook,
    SigningSecret,
    TestEvent,
    Application,
    ClientSecret,
    Key,
    Link,
    PanelLink,
}

/// A request that creates something, with an alternative body that is also valid.
#[derive(Debug, Clone)]
pub struct Asked {
    pub wanted: Wanted,
    pub path: String,
    pub body: String,
    pub other: String,
    pub status: u16,
    /// The webhook or the application that the request concerns.
    pub about: String,
}

const CONNECTION: &str = "/payment/provider/sim-pkce/connection";

impl Wanted {
    /// All kinds of requests.
    pub const ALL: [Self; 8] = [
        Self::Webhook,
        Self::SigningSecret,
        Self::TestEvent,
        Self::Application,
        Self::ClientSecret,
        Self::Key,
        Self::Link,
        Self::PanelLink,
    ];

    /// The function that handles the request.
    pub fn function(self) -> &'static str {
        match self {
            Self::Webhook => "create-webhook",
            Self::SigningSecret => "rotate-webhook-secret",
            Self::TestEvent => "test-webhook",
            Self::Application => "create-application",
            Self::ClientSecret => "add-application-secret",
            Self::Key => "add-application-key",
            Self::Link => "connect-provider",
            Self::PanelLink => "create-panel-link",
        }
    }

    /// Whether the response shows a secret.
    pub fn is_secret(self) -> bool {
        !matches!(self, Self::TestEvent | Self::Key)
    }

    /// Prepares a request of this kind, and the resources that it needs.
    pub async fn asked(self, entity: &Entity, url: &str) -> Asked {
        let nothing_or = |other: &str| (String::from("{}"), String::from(other));
        let key =
            |kid: &str| json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": kid } }).to_string();
        let webhook = |name: &str| json!({ "name": name, "eventUrl": url, "eventList": [] }).to_string();
        let application = |name: &str| json!({ "name": name, "scopes": ["account.read"] }).to_string();
        let (path, (body, other), status, about) = match self {
            Self::Webhook => ("/webhook".to_owned(), (webhook("one"), webhook("other")), 201, String::new()),
            Self::SigningSecret => {
                let id = entity.hook_without_key(url).await.id;
                let other = r#"{"endPrevious":true,"overlapSeconds":60}"#.to_owned();
                (format!("/webhook/{id}/secret"), (r#"{"endPrevious":true}"#.to_owned(), other), 200, id)
            }
            Self::TestEvent => {
                let id = entity.hook_without_key(url).await.id;
                (format!("/webhook/{id}/test"), nothing_or(r#"{"type":"booking.created"}"#), 202, id)
            }
            Self::Application => {
                ("/application".to_owned(), (application("one"), application("other")), 201, String::new())
            }
            Self::ClientSecret => {
                let made = made(entity).await;
                (of(&made, "/secret"), ("{}".into(), r#"{"overlapSeconds":60}"#.into()), 200, made.id)
            }
            Self::Key => {
                let made = made(entity).await;
                (of(&made, "/key"), (key("one"), key("other")), 201, made.id)
            }
            Self::Link => (CONNECTION.to_owned(), nothing_or(r#"{"replace":true}"#), 201, String::new()),
            Self::PanelLink => ("/panel/link".to_owned(), nothing_or(r#"{"name":"Ada"}"#), 201, String::new()),
        };
        Asked { wanted: self, path, body, other, status, about }
    }
}

impl Asked {
    /// The request with this key.
    pub fn call(&self, entity: &Entity, key: &str) -> Call {
        self.with_body(entity, key, &self.body)
    }

    /// The request with this key and another body.
    pub fn with_body(&self, entity: &Entity, key: &str, body: &str) -> Call {
        entity.post(&self.path).header("idempotency-key", key).body("application/json", body)
    }

    /// The request with this token.
    pub fn by(&self, api: &Api, entity: &Entity, token: &str, key: &str) -> Call {
        let call = api.post(entity.path(&self.path)).bearer(token).header("idempotency-key", key);
        call.body("application/json", self.body.as_str())
    }

    /// The number of resources of the requested kind.
    pub async fn count(&self, entity: &Entity) -> usize {
        let listed = async |path: &str| entity.get(path).expect(200).await.json();
        let length = |list: &Value| list.as_array().map(Vec::len).expect("a list");
        match self.wanted {
            Wanted::Webhook => length(&listed("/webhook/list").await),
            Wanted::Application => length(&listed("/application/list").await),
            Wanted::ClientSecret => length(&listed(&format!("/application/{}", self.about)).await["secrets"]),
            Wanted::Key => length(&listed(&format!("/application/{}", self.about)).await["publicKeys"]),
            Wanted::TestEvent => {
                let of_webhook = format!("/webhook/delivery/list?webhookIdentifier={}", self.about);
                length(&listed(&of_webhook).await["items"])
            }
            Wanted::SigningSecret => {
                let table = Table::of(&entity.api().env);
                let pk = format!("ENT#{}", entity.id);
                let item = table.item(&pk, &format!("WHK#{}", self.about)).await;
                length(&item.expect("the webhook is there")["signingSecrets"]["L"])
            }
            Wanted::PanelLink => length(&listed("/panel/link/list").await["items"]),
            Wanted::Link => {
                let items = Table::of(&entity.api().env).scan().await;
                let of_entity = |item: &&Value| item["sk"]["S"] == "STATE" && item["entity"]["S"] == entity.id.as_str();
                items.iter().filter(of_entity).count()
            }
        }
    }
}

/// Whether no earlier request was carried out with the key, not counting earlier tries of the same request.
pub fn is_first(answer: &ApiResponse) -> bool {
    !is_replayed(answer) || answer.is_repetition
}

/// Whether a response is marked as a repetition.
pub fn is_replayed(answer: &ApiResponse) -> bool {
    match answer.header("idempotency-replayed") {
        "" => false,
        "true" => true,
        other => panic!("Idempotency-Replayed: {other}"),
    }
}

/// One request of each of these kinds, each for a separate entity.
pub async fn of_each(suite: &Suite, all: impl IntoIterator<Item = Wanted>, url: &str) -> Vec<(Entity, Asked)> {
    let mut each = Vec::new();
    for wanted in all {
        let entity = suite.entity().await;
        let asked = wanted.asked(&entity, url).await;
        each.push((entity, asked));
    }
    each
}
