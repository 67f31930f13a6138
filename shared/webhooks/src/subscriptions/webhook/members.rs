//! The members of a webhook that its owner sets, read and checked in the same way for new webhooks and for changes.

use std::fmt;

use serde::{Deserialize, de::DeserializeOwned};

use crate::events::{catalogue, payload::Payload, unknown};
use crate::subscriptions::{
    attempt_settings::{NO_RETRIES, NO_TIMEOUT, Retries, TimeoutSeconds},
    endpoint::{Part, key_pair::SignatureScheme, masked::Headers},
    filter::EventFilter,
    rate_limit::{self, PerSecond},
    webhook::{Delivering, DeliveryOrder},
};
use auth::EntityId;
use outbound::AddressRules;
use problem::{JsonBody, Metadata, Pointer, Rule, Violations, name, near::MAX_COMPARED};

const MAX_NAME_LENGTH: usize = 200;

/// The members of a webhook in a request's body; a missing member is `None`.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct Members {
    pub name: Option<String>,
    pub delivery: Option<Delivering>,
    pub enabled: Option<bool>,
    /// In a change, it may have masks for stored values.
    pub event_url: Option<String>,
    /// `Some(None)` for `null`, which means no filter.
    pub event_filter: Option<Option<EventFilter>>,
    /// Each type and each group once, as given.
    pub event_list: Option<Vec<String>>,
    /// In a change, they may have masks as well.
    pub headers: Option<Headers>,
    /// `Some(None)` for `null`, which means no limit.
    pub max_attempts_per_second: Option<Option<PerSecond>>,
    /// Empty for `null`, which means no metadata.
    pub metadata: Option<Metadata>,
    pub payload: Option<Payload>,
    pub order: Option<DeliveryOrder>,
    pub retries: Option<Retries>,
    pub signature: Option<SignatureScheme>,
    /// For a new webhook only.
    pub temporary: Option<bool>,
    pub timeout_seconds: Option<TimeoutSeconds>,
}

/// Leaves out the endpoint, whose values must not be logged.
impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, delivery, enabled, event_list, order, signature, .. } = self;
        let mut members = f.debug_struct("Members");
        members.field("name", name).field("delivery", delivery).field("enabled", enabled);
        members
            .field("event_list", event_list)
            .field("order", order)
            .field("signature", signature)
            .finish_non_exhaustive()
    }
}

/// Whether a body describes a new or an existing webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A new webhook: members without a default are required.
    New,
    /// An existing webhook: a missing member does not change.
    Existing,
}

/// The member `entity`, which published clients send: the identifier, and members that clients for similar platforms
/// send.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "clients send it, and nothing depends on it")]
struct EntityReference {
    identifier: String,
    name: Option<String>,
    r#type: Option<String>,
    sub_type: Option<String>,
    url_name: Option<String>,
    image_identifier: Option<String>,
    price_lookup_key: Option<String>,
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

impl About {
    /// Checks a part of the endpoint. A new webhook has no stored values for masks.
    fn check<T: Part>(self, part: Option<&T>, rules: &AddressRules, violations: &mut Violations) {
        let Some(part) = part else { return };
        part.check(rules, violations);
        if self == Self::New {
            part.clone().unmasked(&T::default(), violations);
        }
    }

    /// The endpoint's address, which a pull webhook does not have.
    fn event_url(self, body: &mut JsonBody<'_>, is_pulled: bool) -> Option<String> {
        if !is_pulled {
            return self.member(body, "eventUrl", "the endpoint's address");
        }
        body.refuse("eventUrl", "must be omitted: a pull webhook has no address");
        None
    }

    /// Whether the webhook is temporary, which only a new pull webhook can be.
    fn temporary(self, body: &mut JsonBody<'_>, is_pulled: bool) -> Option<bool> {
        if self == Self::New && is_pulled {
            return body.optional("temporary", "true or false");
        }
        body.refuse("temporary", "must be omitted: only a new pull webhook can be temporary");
        None
    }

    fn member<T: DeserializeOwned>(self, body: &mut JsonBody<'_>, name: &'static str, what: &str) -> Option<T> {
        match self {
            Self::New => body.required(name, what),
            Self::Existing => body.optional(name, what),
        }
    }
}

impl Members {
    /// Takes the members from a body, which collects their violations: the members are valid only if the body finishes
    /// without an error.
    pub fn take(body: &mut JsonBody<'_>, about: About, entity: &EntityId, rules: &AddressRules) -> Self {
        let name: Option<String> = about.member(body, "name", "a string with a human-readable name for the webhook");
        let enabled = body.optional("enabled", "true or false");
        let delivery = body.optional_word("delivery", "push or pull");
        let is_pulled = delivery == Some(Delivering::Pull);
        let event_url = about.event_url(body, is_pulled);
        let event_list =
            about.member(body, "eventList", "a list of event types and groups; an empty list means every type");
        let event_filter = body.take_raw("eventFilter");
        let headers = body.optional_texts("headers", "an object of strings by header name");
        let rate_limit = body.take_raw("maxAttemptsPerSecond");
        let timeout = body.take_raw("timeoutSeconds");
        let retries = body.optional_word("retries", "`default`, `short` or `none`");
        let metadata = match about {
            About::New => Metadata::take(body),
            About::Existing => Metadata::take_change(body),
        };
        let payload = body.optional_word("payload", "`full` or `thin`");
        let order = body.optional_word("order", "`none` or `subject`");
        let signature = body.optional_word("signature", "`hmac` or `ed25519`");
        let temporary = about.temporary(body, is_pulled);
        let reference: Option<EntityReference> = body.optional_object("entity", "an object with identifier and name");

        let violations = &mut body.violations;
        let name =
            name.and_then(|text| violations.note("name", Rule::InvalidFormat, name::checked(&text, MAX_NAME_LENGTH)));
        about.check(event_url.as_ref(), rules, violations);
        let event_filter = event_filter.map(|json| match json {
            "null" => None,
            json => EventFilter::take("eventFilter", json, violations),
        });
        let max_attempts_per_second = rate_limit.map(|json| rate_limit::take("maxAttemptsPerSecond", json, violations));
        let timeout_seconds = timeout.and_then(|json| TimeoutSeconds::take("timeoutSeconds", json, violations));
        let event_list = event_list.map(|list| known_types("eventList", list, entity, violations));
        about.check(headers.as_ref(), rules, violations);
        check_reference(reference, entity, violations);
        let members = Self {
            name,
            delivery,
            enabled,
            event_url,
            event_filter,
            event_list,
            headers,
            max_attempts_per_second,
            metadata,
            order,
            payload,
            retries,
            signature,
            temporary,
            timeout_seconds,
        };
        if is_pulled {
            members.refuse_settings_of_requests("must be omitted: a pull webhook has no headers", violations);
        }
        members
    }

    /// Refuses the request settings for a pull webhook, which sends no requests; `headers` is the message about
    /// headers. Values that mean "none" or the default are accepted.
    pub(super) fn refuse_settings_of_requests(&self, headers: &str, violations: &mut Violations) {
        if self.headers.as_ref().is_some_and(|headers| !headers.is_empty()) {
            violations.add("headers", Rule::Inconsistent, headers);
        }
        if matches!(self.max_attempts_per_second, Some(Some(_))) {
            violations.add("maxAttemptsPerSecond", Rule::Inconsistent, rate_limit::NOT_PULLED);
        }
        if self.timeout_seconds.is_some_and(|timeout| !timeout.is_default()) {
            violations.add("timeoutSeconds", Rule::Inconsistent, NO_TIMEOUT);
        }
        if self.retries.is_some_and(|retries| !retries.is_default()) {
            violations.add("retries", Rule::Inconsistent, NO_RETRIES);
        }
    }

    /// Whether all members are missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Refuses a member `entity` that differs from the managing entity in the path.
fn check_reference(reference: Option<EntityReference>, entity: &EntityId, violations: &mut Violations) {
    if reference.is_some_and(|reference| reference.identifier != entity.as_str()) {
        let pointer = Pointer::from("entity").member("identifier");
        violations.add(pointer, Rule::Inconsistent, "must be the path's managing entity, or be omitted");
    }
}

/// The types and groups of the list, each once. Unknown ones are violations.
pub(crate) fn known_types(
    member: &'static str,
    list: Vec<String>,
    entity: &EntityId,
    violations: &mut Violations,
) -> Vec<String> {
    let mut known = Vec::<String>::new();
    let mut compared = 0;
    if list.len() > catalogue::all().len() {
        violations.add(member, Rule::TooLong, "must not be longer than the catalogue; an empty list means every type");
        return known;
    }
    for (position, value) in list.into_iter().enumerate() {
        let pointer = Pointer::from(member).at(position);
        if catalogue::find(&value).is_some() || catalogue::group_exists(&value) {
            if !known.contains(&value) {
                known.push(value);
            }
        } else if compared < MAX_COMPARED {
            compared += 1;
            violations.add(pointer, Rule::UnknownValue, unknown::no_type_or_group(&value, entity));
        } else {
            violations.add(pointer, Rule::UnknownValue, "is neither a type nor a group in the catalogue");
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Problem;

    fn read(about: About, body: &str) -> Result<Members, Problem> {
        let mut body = JsonBody::read(body.as_bytes()).expect("an object");
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let members = Members::take(&mut body, about, &entity, &AddressRules::default());
        body.finish().map(|()| members)
    }

    fn violations(about: About, body: &str) -> Vec<String> {
        crate::testing::refused(&read(about, body).expect_err("refused"))
    }

    #[test]
    fn a_new_webhook_has_each_type_once_and_may_name_the_entity_of_the_path() {
        let members = read(
            About::New,
            r#"{"name":"n","eventUrl":"https://example.com/","eventList":["booking.created","booking.created"],
                "entity":{"identifier":"demo-hotel","name":"Demo","type":"COMPANY","subType":"HOTEL","urlName":"demo",
                          "imageIdentifier":"i","priceLookupKey":"STARTER_MONTHLY","metadata":{"a":[1]}}}"#,
        );
        let members = members.expect("good");
        assert_eq!(members.event_list.as_deref(), Some(&["booking.created".to_owned()][..]));
        assert!(members.enabled.is_none() && members.headers.is_none());
    }

    #[test]
    fn a_group_is_stored_as_given_and_not_as_its_current_types() {
        let body = r#"{"eventList":["booking.*","booking.created","payment.connection.*","booking.*"]}"#;
        let members = read(About::Existing, body).expect("good");
        let kept = members.event_list.expect("given");
        assert_eq!(kept, ["booking.*", "booking.created", "payment.connection.*"]);
    }

    #[test]
    fn an_unknown_type_is_named_with_similar_ones_at_limited_cost() {
        let message = |problem: &Problem, position: usize| problem.violations()[position].detail.clone();
        let problem = read(About::Existing, r#"{"eventList":["booking.create"]}"#).expect_err("refused");
        assert!(message(&problem, 0).contains("`booking.create` is unknown (did you mean booking.created"));
        assert!(message(&problem, 0).contains("/api/managing-entity/demo-hotel/webhook/event/list"));
        let many = vec!["\"booking.create\""; 100].join(",");
        let problem = read(About::Existing, &format!(r#"{{"eventList":[{many}]}}"#)).expect_err("refused");
        assert!(message(&problem, MAX_COMPARED - 1).contains("did you mean"));
        assert!(!message(&problem, MAX_COMPARED).contains("did you mean"));
    }

    #[test]
    fn a_change_may_be_empty_and_has_only_the_given_members() {
        assert!(read(About::Existing, "{}").expect("good").is_empty());
        assert!(read(About::Existing, r#"{"entity":{"identifier":"demo-hotel"}}"#).expect("good").is_empty());
        let some = read(About::Existing, r#"{"headers":{},"eventList":[]}"#).expect("good");
        let expected = Members { headers: Some(Headers::new()), event_list: Some(Vec::new()), ..Members::default() };
        assert_eq!(some, expected);
    }

    #[test]
    fn every_violation_is_listed_at_once_for_a_new_webhook_and_for_a_change() {
        let body = r#"{"name":" ","enabled":"yes","eventUrl":"http://x","eventList":["nope"],"headers":{"Host":"x"},
                       "entity":{"identifier":"other"},"secret":"x"}"#;
        let fields = ["enabled", "name", "eventUrl", "eventList[0]", "headers.Host", "entity.identifier", "secret"];
        assert_eq!(violations(About::New, body), fields);
        assert_eq!(violations(About::Existing, body), fields);
        assert_eq!(violations(About::New, "{}"), ["name", "eventUrl", "eventList"]);
    }

    #[test]
    fn null_is_no_rate_limit_and_a_webhook_that_is_pulled_has_none() {
        let limit = |body: &str| read(About::Existing, body).expect("good").max_attempts_per_second;
        assert_eq!(limit("{}"), None);
        assert_eq!(limit(r#"{"maxAttemptsPerSecond":null}"#), Some(None));
        assert_eq!(limit(r#"{"maxAttemptsPerSecond":5}"#).flatten().map(PerSecond::get), Some(5));
        assert_eq!(violations(About::Existing, r#"{"maxAttemptsPerSecond":0}"#), ["maxAttemptsPerSecond"]);
        let pulled = r#"{"name":"n","delivery":"pull","eventList":[],"maxAttemptsPerSecond":5}"#;
        assert_eq!(violations(About::New, pulled), ["maxAttemptsPerSecond"]);
    }

    #[test]
    fn duplicate_members_of_the_entity_are_refused_with_their_places_and_null_is_not() {
        let body = r#"{"entity":{"identifier":"other","identifier":"demo-hotel","metadata":{"a":[{"b":1,"b":2}]}}}"#;
        assert_eq!(violations(About::Existing, body), ["entity.identifier", "entity.metadata.a[0].b"]);
        let body = r#"{"entity":{"identifier":"demo-hotel","name":null,"metadata":{"a":null}}}"#;
        assert!(read(About::Existing, body).is_ok(), "clients for similar platforms may send it");
    }

    #[test]
    fn an_entity_is_an_object() {
        for bad in [r#"["demo-hotel"]"#, r#"["demo-hotel","n","t","s","u","i","p",{}]"#, r#""demo-hotel""#, "{}"] {
            assert_eq!(violations(About::Existing, &format!(r#"{{"entity":{bad}}}"#)), ["entity"], "{bad}");
        }
    }

    #[test]
    fn metadata_of_the_webhook_is_not_that_of_its_entity() {
        let body = r#"{"entity":{"identifier":"demo-hotel","metadata":{"rooms":12}},"metadata":{"system":"pms-7"}}"#;
        let given = read(About::Existing, body).expect("good").metadata.expect("given");
        assert_eq!(serde_json::to_string(&given).expect("JSON"), r#"{"system":"pms-7"}"#);
        let of_entity = r#"{"entity":{"identifier":"demo-hotel","metadata":{"rooms":12}}}"#;
        assert_eq!(read(About::Existing, of_entity).expect("good").metadata, None);
        let removed = read(About::Existing, r#"{"metadata":null}"#).expect("good").metadata;
        assert!(removed.is_some_and(|metadata| metadata.is_empty()));
        assert_eq!(violations(About::Existing, r#"{"metadata":{"rooms":12}}"#), ["metadata"]);
    }

    #[test]
    fn null_is_no_filter_and_a_fault_of_a_filter_has_its_path() {
        let filter = |body: &str| read(About::Existing, body).expect("good").event_filter;
        assert_eq!(filter("{}"), None);
        assert_eq!(filter(r#"{"eventFilter":null}"#), Some(None));
        let read_filter = EventFilter::read(r#"{"a":[1.50]}"#).expect("a filter");
        assert_eq!(filter(r#"{"eventFilter":{ "a": [1.50] }}"#), Some(Some(read_filter)));
        let body = r#"{"eventFilter":{"a":"x","b":{"c":[{"prefix":1}]}}}"#;
        assert_eq!(violations(About::Existing, body), ["eventFilter.a", "eventFilter.b.c[0].prefix"]);
    }

    #[test]
    fn a_mask_in_a_new_webhook_is_a_violation() {
        let body =
            r#"{"name":"n","eventUrl":"https://example.com/?token=***","eventList":[],"headers":{"X-Key":"***"}}"#;
        assert_eq!(violations(About::New, body), ["eventUrl", "headers.X-Key"]);
        assert!(read(About::Existing, body).is_ok());
    }

    #[test]
    fn an_object_is_no_setting() {
        for (name, value) in
            [("delivery", "pull"), ("order", "none"), ("payload", "thin"), ("retries", "none"), ("signature", "hmac")]
        {
            let body = format!(r#"{{"{name}":{{"{value}":null}}}}"#);
            assert_eq!(violations(About::Existing, &body), [name], "{body}");
        }
    }

    #[test]
    fn a_signature_is_one_of_two_names() {
        for (name, scheme) in [("hmac", SignatureScheme::Hmac), ("ed25519", SignatureScheme::Ed25519)] {
            let members = read(About::Existing, &format!(r#"{{"signature":"{name}"}}"#)).expect("good");
            assert_eq!(members.signature, Some(scheme));
        }
        for bad in ["\"Ed25519\"", "\"v1a\"", "\"\"", "[\"hmac\"]", "true", "1"] {
            assert_eq!(violations(About::Existing, &format!(r#"{{"signature":{bad}}}"#)), ["signature"], "{bad}");
        }
    }

    #[test]
    fn an_order_is_one_of_two_names() {
        for (name, order) in [("none", DeliveryOrder::None), ("subject", DeliveryOrder::Subject)] {
            let members = read(About::Existing, &format!(r#"{{"order":"{name}"}}"#)).expect("good");
            assert_eq!(members.order, Some(order));
        }
        for bad in ["\"Subject\"", "\"\"", "true", "[]"] {
            assert_eq!(violations(About::Existing, &format!(r#"{{"order":{bad}}}"#)), ["order"], "{bad}");
        }
    }

    #[test]
    fn retries_are_one_of_three_names() {
        for (name, retries) in [("default", Retries::Default), ("short", Retries::Short), ("none", Retries::None)] {
            let members = read(About::Existing, &format!(r#"{{"retries":"{name}"}}"#)).expect("good");
            assert_eq!(members.retries, Some(retries));
        }
        for bad in ["\"Short\"", "\"\"", "3", "false", "[]"] {
            assert_eq!(violations(About::Existing, &format!(r#"{{"retries":{bad}}}"#)), ["retries"], "{bad}");
        }
    }

    #[test]
    fn a_pull_webhook_has_neither_a_timeout_nor_a_choice_of_retries() {
        let with = |settings: &str| format!(r#"{{"name":"n","delivery":"pull","eventList":[]{settings}}}"#);
        let settings = with(r#","timeoutSeconds":5,"retries":"none""#);
        assert_eq!(violations(About::New, &settings), ["timeoutSeconds", "retries"]);
        assert!(read(About::New, &with(r#","timeoutSeconds":15,"retries":"default""#)).is_ok(), "the defaults");
    }

    #[test]
    fn null_is_a_value_of_no_member() {
        for member in [
            "name",
            "enabled",
            "eventUrl",
            "eventList",
            "headers",
            "order",
            "payload",
            "retries",
            "signature",
            "timeoutSeconds",
            "entity",
        ] {
            assert_eq!(violations(About::Existing, &format!(r#"{{"{member}":null}}"#)), [member]);
        }
    }
}
