//! Arguments that several tools take: their schemas, and how they are read. Everything else is read by the use case, as
//! from the body or the query of a request, so that each fault is the same Problem as there.

use std::{collections::BTreeSet, ops::RangeInclusive};

use auth::AuthorizedEntity;
use base::{DeliveryId, WebhookId};
use problem::{Problem, Query, Violations};
use serde_json::{Map, Value, json};
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

    /// Reads the arguments that were not taken as a use case reads a query. `schema` is the tool's: an argument of
    /// another type is a violation beside those that the use case finds.
    pub fn read_query<T>(&self, schema: &Value, read: impl FnOnce(Query<'_>) -> T) -> T {
        read_query(&self.arguments, schema, read)
    }

    fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(Problem::invalid_value(name, "must be a text")),
            None => Err(Problem::invalid_value(name, "is missing; it must be an identifier")),
        }
    }
}

fn read_query<T>(arguments: &Map<String, Value>, schema: &Value, read: impl FnOnce(Query<'_>) -> T) -> T {
    let (mut pairs, mut violations) = (Vec::new(), Violations::default());
    for (name, value) in arguments {
        match in_query(value, &schema["properties"][name]) {
            Ok(values) => pairs.extend(values.into_iter().map(|value| (name.as_str(), value))),
            Err(message) => violations.add(name, message),
        }
    }
    let mut query = Query::new(pairs.iter().map(|(name, value)| (*name, value.as_str())));
    query.violations = violations;
    read(query)
}

/// The values of a parameter that says the same as an argument. An array is a parameter that comes several times.
///
/// A query has texts alone, so that the type is looked at here: a text, an integer, or an array of texts. An empty
/// array would make no parameter, and a filter that is lost gives a list that was not asked for.
///
/// # Errors
/// What the argument must be, where its schema has another type.
fn in_query(value: &Value, schema: &Value) -> Result<Vec<String>, String> {
    match (schema["type"].as_str(), value) {
        (Some("string"), Value::String(text)) => Ok(vec![text.clone()]),
        (Some("string"), _) => Err("must be a text".to_owned()),
        (Some("integer"), Value::Number(number)) => Ok(vec![number.to_string()]),
        (Some("integer"), _) => Err("must be a number".to_owned()),
        (Some("array"), _) => {
            let [least, most] = ["minItems", "maxItems"].map(|bound| schema[bound].as_u64().unwrap_or_default());
            let message = || format!("must be an array of {least} to {most} different texts, each without a comma");
            texts(value, least..=most).ok_or_else(message)
        }
        // The use case does not know the name, and refuses it whatever the value.
        _ => Ok(vec![String::new()]),
    }
}

/// The texts of an array that has so many, all different. None has a comma, at which a query would divide it.
fn texts(value: &Value, count: RangeInclusive<u64>) -> Option<Vec<String>> {
    let items = value.as_array().filter(|items| count.contains(&(items.len() as u64)))?;
    let texts: BTreeSet<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    let are_whole = texts.len() == items.len() && !texts.iter().any(|text| text.contains(','));
    are_whole.then(|| texts.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    const TEXTS: [&str; 6] = ["type", "webhookIdentifier", "eventIdentifier", "createdFrom", "createdTo", "cursor"];

    /// What a use case that takes any text reads of the arguments of `list_deliveries`: the states, and the limit.
    fn read(arguments: &Value) -> Result<(Vec<String>, Option<String>), Vec<String>> {
        let schema = (tools::find("list_deliveries").expect("a tool").input)();
        read_query(arguments.as_object().expect("an object"), &schema, |mut query| {
            let states = query.list("status", "a text", |text| Some(text.to_owned()));
            let limit = query.optional("limit", "a text", |text| Some(text.to_owned()));
            for name in TEXTS {
                query.optional(name, "a text", Some);
            }
            let read = query.finish().map(|()| (states, limit));
            read.map_err(|problem| problem.fields().map(str::to_owned).collect())
        })
    }

    #[test]
    fn arguments_of_the_types_of_the_schema_are_read_as_a_query() {
        let states = ["cancelled", "delivered", "failed", "pending", "retrying"];
        let owned: Vec<_> = states.iter().map(|state| (*state).to_owned()).collect();
        assert_eq!(read(&json!({ "status": states, "limit": 25 })), Ok((owned, Some("25".to_owned()))));
        assert_eq!(read(&json!({ "status": ["failed"] })), Ok((vec!["failed".to_owned()], None)));
        assert_eq!(read(&json!({})), Ok((Vec::new(), None)));
        for name in TEXTS {
            assert!(read(&json!({ name: "x" })).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_filter_is_lost_because_its_type_is_another() {
        let others = [json!([]), json!(["x"]), json!({}), Value::Null, json!(true)];
        for name in TEXTS.into_iter().chain(["limit"]) {
            for value in &others {
                assert_eq!(read(&json!({ name: value })), Err(vec![name.to_owned()]), "{name}: {value}");
            }
        }
        let bad = [
            ("limit", json!("25")),
            ("limit", json!([5])),
            ("cursor", json!(5)),
            ("status", json!("failed")),
            ("status", json!({ "failed": true })),
            ("status", Value::Null),
            ("status", json!([])),
            ("status", json!([1])),
            ("status", json!(["failed", null])),
            ("status", json!(["failed", "failed"])),
            ("status", json!(["failed,retrying"])),
            ("status", json!(["1", "2", "3", "4", "5", "6"])),
            ("status", json!(vec!["failed"; 90_000])),
        ];
        for (name, value) in bad {
            assert_eq!(read(&json!({ name: value })), Err(vec![name.to_owned()]), "{name}");
        }
    }

    #[test]
    fn an_argument_that_no_schema_names_is_refused_whatever_its_value() {
        for value in [json!([]), json!({}), Value::Null, json!("x"), json!(["x", "x"])] {
            assert_eq!(read(&json!({ "unknown": value })), Err(vec!["unknown".to_owned()]), "{value}");
        }
        let fields = read(&json!({ "limit": "5", "status": [], "state": [] })).expect_err("violations");
        assert_eq!(fields, ["limit", "status", "state"], "all are found at once");
    }
}
