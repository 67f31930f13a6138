//! Arguments that several tools take: their schemas, and how they are read. Everything else is read by the use case, as
//! from the body or the query of a request, so that each fault is the same Problem as there.

use auth::AuthorizedEntity;
use base::{DeliveryId, WebhookId};
use problem::{Problem, Query};
use serde_json::{Value, json};
use storage::Once;
use webhooks::{deliveries::DeliveryError, subscriptions::WebhookError};

use crate::tool::ToolCall;

const WEBHOOK: &str = "webhookIdentifier";
const DELIVERY: &str = "deliveryIdentifier";
const KEY: &str = "idempotencyKey";

/// The schema of the member that names a webhook.
pub fn webhook() -> Value {
    json!({ WEBHOOK: {
        "type": "string",
        "pattern": "^whk_[0-9a-z]+$",
        "maxLength": 64,
        "description": "The identifier of the webhook, as `list_webhooks` shows it: not its name.",
        "examples": ["whk_01m74zy5eva3kj3s4w04zg1hhc"],
    } })
}

/// The schema of the member that names a delivery.
pub fn delivery() -> Value {
    json!({ DELIVERY: {
        "type": "string",
        "pattern": "^dlv_[0-9a-z]+$",
        "maxLength": 64,
        "description": "The identifier of the delivery, as `list_deliveries` and `diagnose_webhook` show it.",
        "examples": ["dlv_01m7w5gmev32p3wwt3y0b8j32h"],
    } })
}

/// The schema of the member that makes a call safe to repeat.
pub fn idempotency_key() -> Value {
    json!({ KEY: {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[ -~]+$",
        "description": "A text of your own, such as a UUID, under which this call is carried out once within 24 \
                        hours: if no answer came, send the same call again with the same key. Use a new key for \
                        each new request.",
        "examples": ["4f9c2f1e-8f3b-4c55-9f0a-6d1f6f2f7a10"],
    } })
}

/// The schema of the member of a result that says that the call was a repetition.
pub fn repeated() -> Value {
    json!({ "repeated": {
        "type": "boolean",
        "description": "True where the `idempotencyKey` had come before: nothing was done again, and this is the \
                        first answer.",
    } })
}

impl ToolCall {
    /// Takes the webhook that the call is about.
    ///
    /// # Errors
    /// 400 where it is missing, and 404 for a text that cannot be an identifier: no webhook has it.
    pub fn webhook(&mut self) -> Result<WebhookId, Problem> {
        WebhookId::parse(&self.text(WEBHOOK)?).ok_or_else(|| WebhookError::NotFound.into())
    }

    /// Takes the delivery that the call is about.
    ///
    /// # Errors
    /// 400 where it is missing, and 404 for a text that cannot be an identifier: no delivery has it.
    pub fn delivery(&mut self) -> Result<DeliveryId, Problem> {
        DeliveryId::parse(&self.text(DELIVERY)?).ok_or_else(|| DeliveryError::NotFound.into())
    }

    /// Takes the idempotency key: the call as a request that is carried out once, if it has one. All other arguments
    /// are the request, so that it is to be taken first.
    ///
    /// # Errors
    /// 400 for a key of another form.
    pub fn once(&mut self, entity: &AuthorizedEntity) -> Result<Option<Once>, Problem> {
        let Some(key) = self.take(KEY) else { return Ok(None) };
        let key = key.as_str().ok_or_else(|| Problem::invalid_value(KEY, "must be a text"))?;
        self.caller.once(entity, self.tool, key, &self.body()).map(Some)
    }

    /// Reads the arguments that were not taken as a use case reads a query. A list is a parameter that comes several
    /// times.
    pub fn read_query<T>(&self, read: impl FnOnce(Query<'_>) -> T) -> T {
        let values = self.arguments.iter().flat_map(|(name, value)| match value {
            Value::Array(values) => values.iter().map(|value| (name, in_query(value))).collect(),
            one => vec![(name, in_query(one))],
        });
        let pairs: Vec<_> = values.collect();
        read(Query::new(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }

    fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(Problem::invalid_value(name, "must be a text")),
            None => Err(Problem::invalid_value(name, "is missing; it must be an identifier")),
        }
    }
}

/// A value as a query would have it.
fn in_query(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
