//! Arguments that several tools share: their schemas and their parsing. Use cases read all other arguments like the
//! body or query of a request, and report the same Problems.

use std::{collections::BTreeSet, ops::RangeInclusive};

use auth::AuthorizedEntity;
use base::{DeliveryId, EventId, WebhookId};
use problem::{Problem, ProblemKind, Query, Rule, Violation, Violations, json_body::plain_integer, near};
use serde_json::{Map, Value, json};
use storage::IdempotentRequest;
use webhooks::{deliveries::DeliveryError, subscriptions::WebhookError};

use crate::{schemas, tool::ToolCall};

const WEBHOOK: &str = "webhookIdentifier";
const DELIVERY: &str = "deliveryIdentifier";
const EVENT: &str = "eventIdentifier";
const KEY: &str = "idempotencyKey";
/// Arguments that n8n adds to each call for itself: <https://github.com/n8n-io/n8n/issues/21500>.
const ADDED_BY_CLIENTS: [&str; 5] = ["action", "chatInput", "sessionId", "tool", "toolCallId"];

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
        "description": "Any string, such as a UUID. Calls with the same key run only once within 24 hours: if you got \
                        no result, send the same call again with the same key. Use a new key for each new request.",
    } })
}

/// The schema of the member of a result that marks a repetition.
pub fn repeated() -> Value {
    json!({ "repeated": {
        "type": "boolean",
        "description": "True if the `idempotencyKey` was used before: the call did not run again. This is the first \
                        result, or the current state of a changed webhook or delivery.",
    } })
}

/// Normalizes arguments for use cases. Models and the forms of clients send null or an empty string for members that
/// they mean to leave out, and some write integers as `2.0` or `"2"` and truth values as `"true"`. Such members are
/// removed, or get the type of the schema.
///
/// Null removes a member of a webhook that allows it. But if another member is null that cannot be, the caller sends null
/// for everything that it leaves out, and removes nothing.
///
/// Only members of the schema change, and the members that some clients add to each call are removed. Another unknown
/// member stays, so that the use case refuses it by name.
pub fn normalized(arguments: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let member = |name: &str| &schema["properties"][name];
    let cannot_be_null = |name: &str| !member(name).is_null() && !allows(member(name), "null");
    let fills_with_null = arguments.iter().any(|(name, value)| value.is_null() && cannot_be_null(name));
    let normalize = |(name, value): (String, Value)| {
        let member = &schema["properties"][&name];
        let is_left_out = match &value {
            _ if member.is_null() => ADDED_BY_CLIENTS.contains(&&*name),
            Value::Null => fills_with_null || !allows(member, "null"),
            // No argument has the empty text as a value.
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        (!is_left_out).then(|| (name, typed(value, member)))
    };
    arguments.into_iter().filter_map(normalize).collect()
}

/// The webhook or delivery that a call names, for the audit trail.
pub fn subject(arguments: &Map<String, Value>) -> Option<String> {
    let text = |name| arguments.get(name).and_then(Value::as_str);
    let webhook = text(WEBHOOK).and_then(WebhookId::parse).map(|id| id.to_string());
    webhook.or_else(|| text(DELIVERY).and_then(DeliveryId::parse).map(|id| id.to_string()))
}

/// Refuses members of the contract that tools leave out. The use case would accept them.
///
/// # Errors
/// 400 if there is one.
pub fn check_left_out(arguments: &Map<String, Value>) -> Result<(), Problem> {
    let mut violations = Violations::default();
    for name in arguments.keys().filter(|name| schemas::is_left_out(name)) {
        violations.add(name.as_str(), Rule::Unknown, UNKNOWN);
    }
    violations.check()
}

/// Adds the other arguments that do not conform to the tool's schema to a Problem of invalid arguments. A call first
/// reads its managing entity and identifiers, and the use case the rest, so the model would otherwise learn the faults
/// one by one. For an unknown argument, the Problem names those of the schema.
pub fn with_other_faults(problem: Problem, arguments: &Map<String, Value>, schema: &Value) -> Problem {
    if problem.kind != ProblemKind::InvalidRequest {
        return problem;
    }
    let names: Vec<_> = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let found = problem.violations();
    // `/eventList/2` and `/headers/Host` are faults of `eventList` and `headers`.
    let known: BTreeSet<String> = found.iter().filter_map(|violation| violation.pointer.steps().next()).collect();
    // It keeps a limited number of them.
    let mut violations = Violations::default();
    found.into_iter().for_each(|violation| violations.push(violation));
    for violation in faults(arguments, schema) {
        if violation.pointer.steps().next().is_none_or(|argument| !known.contains(&argument)) {
            violations.push(violation);
        }
    }
    let mut violations = violations.into_list();
    for (position, violation) in violations.iter_mut().filter(|found| is_unknown(found)).enumerate() {
        let compared = if position < near::MAX_COMPARED { &names[..] } else { &[] };
        violation.detail = format!("{UNKNOWN}{}", near::hint(&violation.name(), compared));
    }
    let Problem { detail, properties, .. } = Problem::invalid(violations);
    Problem { detail, properties, ..problem }
}

/// The message about an argument that the schema does not have.
const UNKNOWN: &str = "is not an argument of this tool";

/// Whether a violation is about an unknown argument, and not about a member within an argument.
fn is_unknown(violation: &Violation) -> bool {
    violation.rule == Rule::Unknown && violation.pointer.steps().count() == 1
}

/// The arguments that do not conform to a tool's schema, each with its requirement.
fn faults(arguments: &Map<String, Value>, schema: &Value) -> Vec<Violation> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !arguments.contains_key(*name));
    let missing = missing.map(|name| Violation::body(name, Rule::Required, "is missing"));
    let of_value = |(name, value): (&String, &Value)| match &schema["properties"][name] {
        Value::Null => Some(Violation::body(name.as_str(), Rule::Unknown, UNKNOWN)),
        schema => fault(value, schema).map(|Fault { rule, detail }| Violation::body(name.as_str(), rule, detail)),
    };
    missing.chain(arguments.iter().filter_map(of_value)).collect()
}

/// The requirement that a value violates.
struct Fault {
    rule: Rule,
    detail: String,
}

/// The requirement that a value violates: its type, its permitted values or its range.
fn fault(value: &Value, schema: &Value) -> Option<Fault> {
    let kinds = [
        ("string", "a string", value.is_string()),
        ("integer", "a whole number", value.is_i64() || value.is_u64()),
        ("boolean", "true or false", value.is_boolean()),
        ("array", "an array", value.is_array()),
        ("object", "an object", value.is_object()),
    ];
    if value.is_null() && allows(schema, "null") {
        return None;
    }
    if let Some((_, what, _)) = kinds.iter().find(|(name, _, is_so)| allows(schema, name) && !is_so) {
        return Some(Fault { rule: Rule::InvalidType, detail: format!("must be {what}") });
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
        return Some(Fault { rule: Rule::UnknownValue, detail: format!("must be one of {}", allowed.join(", ")) });
    }
    let is_beyond = |number: i64| {
        schema["minimum"].as_i64().is_some_and(|least| number < least)
            || schema["maximum"].as_i64().is_some_and(|most| number > most)
    };
    if value.as_i64().is_some_and(is_beyond) {
        let detail = match schema["maximum"].as_i64() {
            Some(most) => format!("must be {} to {most}", schema["minimum"].as_i64().unwrap_or_default()),
            None => format!("must be {} or more", schema["minimum"]),
        };
        return Some(Fault { rule: Rule::OutOfRange, detail });
    }
    value.as_array().into_iter().flatten().find_map(|item| fault(item, &schema["items"]))
}

/// Whether a schema names this type.
fn allows(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::Array(types) => types.iter().any(|known| known == name),
        known => known == name,
    }
}

/// A value with the type of its schema, if it can have only this type.
fn typed(value: Value, schema: &Value) -> Value {
    match value {
        Value::String(text) if !allows(schema, "string") => {
            let number = allows(schema, "integer").then(|| plain_integer(&text)).flatten();
            match (number.and_then(|number| number.parse::<i64>().ok()), &*text) {
                (Some(number), _) => number.into(),
                (None, "true" | "false") if allows(schema, "boolean") => (text == "true").into(),
                _ => text.into(),
            }
        }
        value if allows(schema, "integer") => integer(value),
        value => value,
    }
}

/// Converts a number without a fraction to an integer, which it is in JSON Schema. A double holds every integer up to
/// 2^53.
fn integer(value: Value) -> Value {
    const MAX: f64 = 9_007_199_254_740_992.0;
    match value.as_f64() {
        Some(number) if value.is_f64() && number.fract() == 0.0 && number.abs() < MAX => (number as i64).into(),
        _ => value,
    }
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

    /// Reads the remaining arguments as the query of a request. An argument that does not have its type in the tool's
    /// `schema` is a violation, in addition to those that the use case finds.
    pub fn read_query<T>(&self, schema: &Value, read: impl FnOnce(Query<'_>) -> T) -> T {
        read_query(&self.arguments, schema, read)
    }

    fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(Violation::body(name, Rule::InvalidType, "must be a string").into()),
            None => Err(Violation::body(name, Rule::Required, "is missing; it must be an identifier").into()),
        }
    }
}

fn read_query<T>(arguments: &Map<String, Value>, schema: &Value, read: impl FnOnce(Query<'_>) -> T) -> T {
    let mut pairs = Vec::new();
    let mut violations = Violations::default();
    for (name, value) in arguments {
        match in_query(value, &schema["properties"][name]) {
            Ok(values) => pairs.extend(values.into_iter().map(|value| (name.as_str(), value))),
            Err(message) => violations.add(name.as_str(), Rule::InvalidType, message),
        }
    }
    let mut query = Query::new(pairs.iter().map(|(name, value)| (*name, value.as_str())));
    query.violations = violations;
    read(query)
}

/// The values of the query parameter that corresponds to an argument. An array becomes a repeated parameter.
///
/// A query contains only strings, so the type is checked here: a string, an integer, or an array of strings. An empty
/// array is refused: it would become no parameter, and the list would be unfiltered.
///
/// # Errors
/// The requirement, if the argument has another type than its schema.
fn in_query(value: &Value, schema: &Value) -> Result<Vec<String>, String> {
    match (schema["type"].as_str(), value) {
        (Some("string"), Value::String(text)) => Ok(vec![text.clone()]),
        (Some("string"), _) => Err("must be a string".to_owned()),
        (Some("integer"), Value::Number(number)) => {
            let number = number.to_string();
            Ok(vec![plain_integer(&number).unwrap_or(number)])
        }
        (Some("integer"), _) => Err("must be a number".to_owned()),
        (Some("array"), _) => {
            let [least, most] = ["minItems", "maxItems"].map(|bound| schema[bound].as_u64().unwrap_or_default());
            let message = || format!("must be an array of {least} to {most} different strings, each without a comma");
            texts(value, least..=most).ok_or_else(message)
        }
        // The use case refuses an unknown name with any value.
        _ => Ok(vec![String::new()]),
    }
}

/// The texts of an array of `count` different texts without commas, at which a query would split them.
fn texts(value: &Value, count: RangeInclusive<u64>) -> Option<Vec<String>> {
    let items = value.as_array().filter(|items| count.contains(&(items.len() as u64)))?;
    let texts: BTreeSet<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    let are_whole = texts.len() == items.len() && !texts.iter().any(|text| text.contains(','));
    are_whole.then(|| texts.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use problem::Pointer;

    use super::*;
    use crate::tools;

    const TEXTS: [&str; 6] = ["type", "webhookIdentifier", "eventIdentifier", "createdFrom", "createdUntil", "cursor"];

    /// Reads arguments of `list_deliveries` with a use case that accepts any string, and returns the states and the
    /// limit.
    fn read(arguments: &Value) -> Result<(Vec<String>, Option<String>), Vec<String>> {
        let schema = (tools::find("list_deliveries").expect("a tool").input)();
        read_query(arguments.as_object().expect("an object"), &schema, |mut query| {
            let states = query.list("status", "a string", |text| Some(text.to_owned()));
            let limit = query.optional("limit", "a string", |text| Some(text.to_owned()));
            for name in TEXTS {
                query.optional(name, "a string", Some);
            }
            let read = query.finish().map(|()| (states, limit));
            read.map_err(|problem| problem.violations().iter().map(Violation::name).collect())
        })
    }

    #[test]
    fn arguments_of_the_types_of_the_schema_are_read_as_a_query() {
        let states = ["cancelled", "delivered", "failed", "pending", "retrying"];
        let owned: Vec<_> = states.iter().map(|state| (*state).to_owned()).collect();
        assert_eq!(read(&json!({ "status": states, "limit": 25 })), Ok((owned, Some("25".to_owned()))));
        assert_eq!(read(&json!({ "limit": 25.0 })), Ok((Vec::new(), Some("25".to_owned()))));
        assert_eq!(read(&json!({ "status": ["failed"] })), Ok((vec!["failed".to_owned()], None)));
        assert_eq!(read(&json!({})), Ok((Vec::new(), None)));
        for name in TEXTS {
            assert!(read(&json!({ name: "x" })).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_filter_of_a_wrong_type_is_lost() {
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
    fn null_arguments_count_as_absent() {
        for tool in tools::ALL {
            let schema = (tool.input)();
            // Null removes these members of a webhook.
            let clears = |name: &String| ["eventFilter", "maxAttemptsPerSecond"].contains(&&**name);
            let names = || schema["properties"].as_object().expect("an object").keys().filter(|name| !clears(name));
            for nothing in [Value::Null, "".into()] {
                let left_out: Map<_, _> = names().map(|name| (name.clone(), nothing.clone())).collect();
                assert_eq!(normalized(left_out, &schema), Map::new(), "{}", tool.name);
            }
        }
        let schema = (tools::find("list_deliveries").expect("a tool").input)();
        let given =
            |arguments: Value| Value::Object(normalized(arguments.as_object().cloned().expect("an object"), &schema));
        assert_eq!(given(json!({ "cursor": "", "limit": 2.0 })), json!({ "limit": 2 }));
        assert_eq!(given(json!({ "limit": "2", "sessionId": "s", "toolCallId": "c" })), json!({ "limit": 2 }));
        // Other arguments stay, and are refused.
        for refused in [
            json!({ "unknown": null }),
            json!({ "type": 1 }),
            json!({ "limit": 2.5 }),
            json!({ "limit": 1e300 }),
            json!({ "limit": "2.5" }),
            json!({ "limit": "two" }),
            json!({ "status": [null] }),
        ] {
            assert_eq!(given(refused.clone()), refused);
        }
        assert_eq!(given(json!({ "limit": -2.0 })), json!({ "limit": -2 }));
        let schema = (tools::find("change_webhook").expect("a tool").input)();
        let change = json!({ "enabled": "false", "name": "5", "maxAttemptsPerSecond": null, "version": "3" });
        let expected = json!({ "enabled": false, "name": "5", "maxAttemptsPerSecond": null, "version": 3 });
        assert_eq!(Value::Object(normalized(change.as_object().cloned().expect("an object"), &schema)), expected);
    }

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

    #[test]
    fn a_problem_names_all_arguments_that_do_not_conform() {
        let fields = |problem: &Problem| problem.violations().iter().map(Violation::name).collect::<Vec<_>>();
        let of = |problem: Problem, tool: &str, arguments: Value| {
            let schema = (tools::find(tool).expect("a tool").input)();
            with_other_faults(problem, arguments.as_object().expect("an object"), &schema)
        };
        let missing = || Violation::body("managingEntity", Rule::Required, "is missing").into();
        let arguments = json!({ "name": 1, "eventList": "x", "headers": {}, "enabled": "yes", "z": 1 });
        let all = of(missing(), "create_webhook", arguments);
        assert_eq!(fields(&all), ["managingEntity", "enabled", "eventList", "name", "z"]);
        let arguments = json!({ "status": ["failed", "gone"], "limit": 101, "type": "x", "createdUntil": 1 });
        let all = of(missing(), "list_deliveries", arguments);
        assert_eq!(fields(&all), ["managingEntity", "createdUntil", "limit", "status"]);
        let limit = Violation::body("limit", Rule::OutOfRange, "must be 1 to 100");
        assert!(all.violations().contains(&limit), "{all:?}");
        // Violations of the use case are not listed again.
        let found = Violation::body(Pointer::from("eventList").at(0), Rule::UnknownValue, "must be a type").into();
        let all = of(found, "create_webhook", json!({ "name": "n", "eventUrl": "x", "eventList": [1] }));
        assert_eq!(fields(&all), ["eventList[0]"]);
        // The names are those of the schema, regardless of the use case.
        let unknown = "is not a member of this operation; it accepts entity";
        let unknown = Violation::body("filter", Rule::Unknown, unknown).into();
        let all = of(unknown, "change_webhook", json!({ "webhookIdentifier": "whk_1", "filter": 1 }));
        assert_eq!(all.detail, "`filter` is not an argument of this tool (did you mean eventFilter?).");
        let left_out = check_left_out(json!({ "entity": {} }).as_object().expect("an object")).expect_err("refused");
        let all = of(left_out, "change_webhook", json!({ "webhookIdentifier": "whk_1", "entity": {} }));
        assert!(all.detail.contains("it accepts") && all.detail.contains("webhookIdentifier"), "{}", all.detail);
        let other = of(Problem::internal("a test"), "create_webhook", json!({}));
        assert_eq!(other.kind, ProblemKind::InternalError);
    }

    #[test]
    fn a_caller_that_fills_in_null_removes_no_filter() {
        let schema = (tools::find("change_webhook").expect("a tool").input)();
        let kept =
            |arguments: Value| Value::Object(normalized(arguments.as_object().expect("an object").clone(), &schema));
        let filled = json!({ "name": "n", "eventFilter": null, "maxAttemptsPerSecond": null, "enabled": null });
        assert_eq!(kept(filled), json!({ "name": "n" }));
        let removal = json!({ "name": "n", "eventFilter": null });
        assert_eq!(kept(removal.clone()), removal);
    }

    #[test]
    fn thousands_of_unknown_arguments_get_a_short_answer() {
        let schema = (tools::find("list_webhooks").expect("a tool").input)();
        let arguments: Map<_, _> = (0..50_000).map(|number| (format!("u{number}"), json!(1))).collect();
        let missing = Violation::body("managingEntity", Rule::Required, "is missing");
        let problem = with_other_faults(missing.into(), &arguments, &schema);
        assert!((10..=200).contains(&problem.violations().len()));
    }

    #[test]
    fn an_unknown_argument_is_refused_with_any_value() {
        for value in [json!([]), json!({}), Value::Null, json!("x"), json!(["x", "x"])] {
            assert_eq!(read(&json!({ "unknown": value })), Err(vec!["unknown".to_owned()]), "{value}");
        }
        let fields = read(&json!({ "limit": "5", "status": [], "state": [] })).expect_err("violations");
        assert_eq!(fields, ["limit", "status", "state"], "all are found at once");
    }
}
