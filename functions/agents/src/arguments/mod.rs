//! Arguments that several tools share: their schemas and their parsing. Use cases read all other arguments like a
//! request's body or query, and report the same Problems.

mod faults;
mod normalized;
mod query;

use auth::AuthorizedEntity;
use base::{DeliveryId, EventId, WebhookId};
use problem::{Problem, Query, Rule, Violation};
use serde_json::{Map, Value, json};
use storage::IdempotentRequest;
use webhooks::{deliveries::DeliveryError, subscriptions::WebhookError};

pub use self::{
    faults::{check_left_out, with_other_faults},
    normalized::normalized,
};
use crate::tool::ToolCall;

const WEBHOOK: &str = "webhookIdentifier";
const DELIVERY: &str = "deliveryIdentifier";
const EVENT: &str = "eventIdentifier";
const KEY: &str = "idempotencyKey";

/// The schema of the argument for a webhook.
pub fn webhook() -> Value {
    json!({ WEBHOOK: {
        "type": "string",
        "pattern": "^whk_[0-9a-z]+$",
        "maxLength": 64,
        "description": "The webhook's identifier, as in `list_webhooks`, not its name.",
        "examples": ["whk_01m74zy5eva3kj3s4w04zg1hhc"],
    } })
}

/// The schema of the argument for a delivery.
pub fn delivery() -> Value {
    json!({ DELIVERY: {
        "type": "string",
        "pattern": "^dlv_[0-9a-z]+$",
        "maxLength": 64,
        "description": "The delivery's identifier, as in `list_deliveries` and `diagnose_webhook`.",
        "examples": ["dlv_01m7w5gmev32p3wwt3y0b8j32h"],
    } })
}

/// The schema of the argument for an event.
pub fn event() -> Value {
    json!({ EVENT: {
        "type": "string",
        "pattern": "^evt_[0-9a-z]+$",
        "maxLength": 64,
        "description": "The event's identifier, as in `list_events` and `show_delivery`.",
        "examples": ["evt_01m7w5gmev7xwvpyt3bc2k45jh"],
    } })
}

/// The schema of the argument that makes a call safe to repeat.
pub fn idempotency_key() -> Value {
    json!({ KEY: {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[ -~]+$",
        "description": "Any string, such as a UUID. Calls with the same key run only once within 24 hours: if you get \
                        no result, repeat the call with the same key. Use a new key for each new request.",
    } })
}

/// The schema of the result member that marks a repetition.
pub fn repeated() -> Value {
    json!({ "repeated": {
        "type": "boolean",
        "description": "True if the `idempotencyKey` was used before, so the call did not run again. This is the first \
                        result, or the current state of a changed webhook or delivery.",
    } })
}

/// The webhook or delivery that a call names, for the audit trail.
pub fn subject(arguments: &Map<String, Value>) -> Option<String> {
    let text = |name| arguments.get(name).and_then(Value::as_str);
    let webhook = text(WEBHOOK).and_then(WebhookId::parse).map(|id| id.to_string());
    webhook.or_else(|| text(DELIVERY).and_then(DeliveryId::parse).map(|id| id.to_string()))
}

impl ToolCall {
    /// Takes the call's webhook.
    ///
    /// # Errors
    /// 400 if it is missing, and 404 for a string that cannot be an identifier: no webhook has it.
    pub fn webhook(&mut self) -> Result<WebhookId, Problem> {
        WebhookId::parse(&self.text(WEBHOOK)?).ok_or_else(|| WebhookError::NotFound.into())
    }

    /// Takes the call's delivery.
    ///
    /// # Errors
    /// 400 if it is missing, and 404 for a string that cannot be an identifier: no delivery has it.
    pub fn delivery(&mut self) -> Result<DeliveryId, Problem> {
        DeliveryId::parse(&self.text(DELIVERY)?).ok_or_else(|| DeliveryError::NotFound.into())
    }

    /// Takes the call's event.
    ///
    /// # Errors
    /// 400 if it is missing, and 404 for a string that cannot be an identifier: no event has it.
    pub fn event(&mut self) -> Result<EventId, Problem> {
        EventId::parse(&self.text(EVENT)?).ok_or_else(|| DeliveryError::EventNotFound.into())
    }

    /// Takes the idempotency key, and returns the call as an idempotent request if it has one. Call this first, since
    /// all other arguments identify the request.
    ///
    /// # Errors
    /// 400 for a malformed key.
    pub fn once(&mut self, entity: &AuthorizedEntity) -> Result<Option<IdempotentRequest>, Problem> {
        let Some(key) = self.take(KEY) else { return Ok(None) };
        let key = key.as_str().ok_or_else(|| Violation::body(KEY, Rule::InvalidType, "must be a string"))?;
        self.caller.once(entity, self.tool, key, &self.body()).map(Some)
    }

    /// Reads the remaining arguments as a request's query. An argument whose type differs from the tool's `schema` is a
    /// violation, in addition to those that the use case finds.
    pub fn read_query<T>(&self, schema: &Value, read: impl FnOnce(Query<'_>) -> T) -> T {
        query::read_query(&self.arguments, schema, read)
    }

    fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(Violation::body(name, Rule::InvalidType, "must be a string").into()),
            None => Err(Violation::body(name, Rule::Required, "is missing; it must be an identifier").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_trail_names_only_identifiers() {
        let of = |arguments: Value| subject(arguments.as_object().expect("an object"));
        let webhook = "whk_01m74zy5eva3kj3s4w04zg1hhc";
        let delivery = "dlv_01m7w5gmev32p3wwt3y0b8j32h";
        assert_eq!(of(json!({ "webhookIdentifier": webhook, "name": "n" })).as_deref(), Some(webhook));
        assert_eq!(of(json!({ "deliveryIdentifier": delivery })).as_deref(), Some(delivery));
        for other in [json!({}), json!({ "webhookIdentifier": "whsec_secret" }), json!({ "webhookIdentifier": 1 })] {
            assert_eq!(of(other), None);
        }
    }
}
