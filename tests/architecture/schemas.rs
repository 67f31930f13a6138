//! The schemas in openapi.yaml: repeated schemas agree with their originals, responses accept values added later, and
//! the known values are those in the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;
use syn::{Attribute, Item, Meta};
use template::yaml_to_json;

/// A schema that repeats another one, with a secret or without its large members, and the members that it adds. Members
/// are repeated because generators drop the parts of `allOf`.
const REPEATING: [(&str, &str, &[&str]); 4] = [
    ("ApplicationWithSecret", "Application", &["clientSecret", "secretKey"]),
    ("DeliverySummary", "Delivery", &[]),
    ("PanelLinkWithUrl", "PanelLink", &["url"]),
    ("WebhookWithSecret", "Webhook", &["signingSecret"]),
];

const ATTEMPT: &str = "shared/webhooks/src/deliveries/state/attempt.rs";
const DELIVERY: &str = "shared/webhooks/src/deliveries/state/delivery.rs";
const WEBHOOK: &str = "shared/webhooks/src/subscriptions/webhook/mod.rs";
const PAYLOAD: &str = "shared/webhooks/src/events/payload.rs";
const ATTEMPT_SETTINGS: &str = "shared/webhooks/src/subscriptions/attempt_settings.rs";
const SIGNATURE: &str = "shared/webhooks/src/subscriptions/endpoint/key_pair.rs";
const VIOLATION: &str = "shared/problem/src/violation.rs";
const CONNECTION: &str = "shared/payments/src/connection.rs";

/// The strings with a list of values, each with the file and the name of the enumeration in the code.
const OF_CODE: [(&str, &str, &str); 33] = [
    ("WebhookRetries", ATTEMPT_SETTINGS, "Retries"),
    ("WebhookRequest/retries", ATTEMPT_SETTINGS, "Retries"),
    ("WebhookChange/retries", ATTEMPT_SETTINGS, "Retries"),
    ("Webhook/pausedBy", "shared/webhooks/src/subscriptions/webhook/status.rs", "PausedBy"),
    ("WebhookWithSecret/pausedBy", "shared/webhooks/src/subscriptions/webhook/status.rs", "PausedBy"),
    ("AttemptErrorCode", ATTEMPT, "ErrorCode"),
    ("AttemptErrorCodeFilter", ATTEMPT, "ErrorCode"),
    ("ConnectionBreakReason", CONNECTION, "BreakReason"),
    ("ConnectionStatus", CONNECTION, "ConnectionStatus"),
    ("DeliveryCancelReason", DELIVERY, "CancelReason"),
    ("DeliveryOrder", WEBHOOK, "DeliveryOrder"),
    ("DeliveryStatus", DELIVERY, "Status"),
    ("DeliveryStatusFilter", DELIVERY, "Status"),
    ("FeedAnswerResult/outcome", "shared/webhooks/src/deliveries/feed/acknowledge.rs", "Recorded"),
    ("FeedExtensionOutcome/outcome", "shared/webhooks/src/deliveries/feed/extend.rs", "Extended"),
    ("ProviderAccess", "shared/payments/src/disconnect.rs", "ProviderAccess"),
    ("ViolationCode", VIOLATION, "Rule"),
    ("WaitingReason", DELIVERY, "WaitingFor"),
    ("Webhook/delivery", WEBHOOK, "Delivering"),
    ("Webhook/payload", PAYLOAD, "Payload"),
    ("WebhookChange/delivery", WEBHOOK, "Delivering"),
    ("WebhookChange/order", WEBHOOK, "DeliveryOrder"),
    ("WebhookChange/payload", PAYLOAD, "Payload"),
    ("WebhookChange/signature", SIGNATURE, "SignatureScheme"),
    ("WebhookDeliveryState", "shared/webhooks/src/subscriptions/webhook/status.rs", "DeliveryState"),
    ("WebhookHealth", "shared/webhooks/src/subscriptions/health/breaker.rs", "Health"),
    ("WebhookRequest/delivery", WEBHOOK, "Delivering"),
    ("WebhookRequest/order", WEBHOOK, "DeliveryOrder"),
    ("WebhookRequest/payload", PAYLOAD, "Payload"),
    ("WebhookRequest/signature", SIGNATURE, "SignatureScheme"),
    ("WebhookSignature", SIGNATURE, "SignatureScheme"),
    ("WebhookWithSecret/delivery", WEBHOOK, "Delivering"),
    ("WebhookWithSecret/payload", PAYLOAD, "Payload"),
];

/// The other strings with a list of values, each with the reason why no enumeration has exactly these values.
const OTHERS: [(&str, &str); 26] = [
    ("Attempt/payload", "only `thin` is shown"),
    ("AuthorizationServerMetadata/code_challenge_methods_supported", "the names of RFC 7636"),
    ("AuthorizationServerMetadata/grant_types_supported", "the names of RFC 6749"),
    ("AuthorizationServerMetadata/response_types_supported", "the names of RFC 6749"),
    ("ClientAssertionAlgorithms", "the names of RFC 7518, RFC 8037 and RFC 9864"),
    ("ClientAuthenticationMethods", "the names of RFC 7591"),
    ("ConnectionErrorCode", "those of `GrantError::shown`, and of `AttemptError` in the crate `outbound`"),
    ("DataWarning/in", "of the parts, only `data`"),
    ("DeliveryAdvice/cause", "the codes of `advice.json` that `DeliveryView::cause` returns"),
    ("JsonWebKey/alg", "the names of RFC 7518 and RFC 8037"),
    ("JsonWebKey/crv", "the names of RFC 7518 and RFC 8037"),
    ("JsonWebKey/kty", "the names of RFC 7518 and RFC 8037"),
    ("JsonWebKey/use", "the names of RFC 7517"),
    ("ProblemProperties/limitName", "the limits of several crates; docs/reference.md lists them, and a test its table"),
    ("ProtectedResourceMetadata/bearer_methods_supported", "the names of RFC 9728"),
    ("PublicKey/alg", "the names of RFC 7518, RFC 8037 and RFC 9864"),
    ("PublicKey/crv", "the names of RFC 7518 and RFC 8037"),
    ("PublicKey/kty", "the names of RFC 7518 and RFC 8037"),
    ("RecoveryRequest/include", "`Include::parse`, which has its own test"),
    ("RegisteredPublicKey/alg", "the names of RFC 7518 and RFC 8037"),
    ("RegisteredPublicKey/crv", "the names of RFC 7518 and RFC 8037"),
    ("RegisteredPublicKey/kty", "the names of RFC 7518 and RFC 8037"),
    ("Token/token_type", "the name of RFC 6750"),
    ("TokenError/error", "the codes of RFC 6749"),
    ("TokenIntrospection/token_type", "the name of RFC 6750"),
    ("Violation/in", "all parts but `data`, which is in warnings"),
];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn document() -> Value {
    yaml_to_json(&text("openapi.yaml")).expect("openapi.yaml is YAML")
}

fn undescribed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove("description");
    }
    schema
}

fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_schema_that_repeats_another_has_the_same_members() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    for (name, base, added) in REPEATING {
        let members = schemas[name]["properties"].as_object().expect(name);
        for (member, schema) in members.iter().filter(|(member, _)| !added.contains(&member.as_str())) {
            assert_eq!(undescribed(schema), undescribed(&schemas[base]["properties"][member]), "{name}.{member}");
        }
        let required = names(&schemas[base]["required"]).into_iter().filter(|member| members.contains_key(*member));
        let lacking: Vec<_> = required.filter(|member| !names(&schemas[name]["required"]).contains(member)).collect();
        assert_eq!(lacking, Vec::<&str>::new(), "{name} requires these as {base} does");
    }
}

/// A string in a schema that has a list of values.
struct Enumeration<'a> {
    /// The string's values, from `examples` if more may be added, otherwise from `enum`.
    values: BTreeSet<&'a str>,
    is_open: bool,
    /// The description of the string, or of the list that contains the string.
    description: &'a str,
}

impl<'a> Enumeration<'a> {
    fn of(schema: &'a Value, description: &'a str) -> Option<Self> {
        let description = schema["description"].as_str().unwrap_or(description);
        let of = |keyword: &str, is_open| {
            schema[keyword].is_array().then(|| Self { values: names(&schema[keyword]), is_open, description })
        };
        of("enum", false).or_else(|| of("examples", true))
    }
}

/// Adds a schema's enumerations. A location is the name of a schema, followed by the name of a member if the
/// enumeration is in one.
fn collect<'a>(schema: &'a Value, place: &str, description: &'a str, found: &mut BTreeMap<String, Enumeration<'a>>) {
    found.extend(Enumeration::of(schema, description).map(|enumeration| (place.to_owned(), enumeration)));
    let top = place.split('/').next().unwrap_or_default();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        collect(member, &format!("{top}/{name}"), "", found);
    }
    if let Some(items) = schema.get("items") {
        collect(items, place, schema["description"].as_str().unwrap_or_default(), found);
    }
}

fn enumerations(document: &Value) -> BTreeMap<String, Enumeration<'_>> {
    let mut found = BTreeMap::new();
    for (name, schema) in document["components"]["schemas"].as_object().expect("openapi.yaml has schemas") {
        collect(schema, name, "", &mut found);
    }
    found
}

/// The names that an enumeration in the code has on the wire.
fn values_in_code(file: &str, name: &str) -> BTreeSet<String> {
    let parsed = syn::parse_file(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let found = parsed.items.iter().find_map(|item| match item {
        Item::Enum(found) if found.ident == name => Some(found),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("{file} has no enumeration {name}"));
    let separator = match found.attrs.iter().find_map(rename_rule).as_deref() {
        Some("lowercase") => "",
        Some("kebab-case") => "-",
        other => panic!("{file}: extend this test by the rule {other:?} of {name}"),
    };
    found.variants.iter().map(|variant| lowercase(&variant.ident.to_string(), separator)).collect()
}

/// A name in lower case, with this separator between its words.
fn lowercase(name: &str, separator: &str) -> String {
    let letters = name.char_indices().map(|(place, letter)| {
        let separator = if place > 0 && letter.is_ascii_uppercase() { separator } else { "" };
        format!("{separator}{}", letter.to_ascii_lowercase())
    });
    letters.collect()
}

/// The rule that serde uses to rename the variants.
fn rename_rule(attribute: &Attribute) -> Option<String> {
    let Meta::List(list) = &attribute.meta else { return None };
    let arguments = list.path.is_ident("serde").then(|| list.tokens.to_string())?;
    let (_, rest) = arguments.split_once("rename_all")?;
    rest.split('"').nth(1).map(str::to_owned)
}

#[test]
fn the_known_values_are_those_of_the_code() {
    let document = document();
    let enumerations = enumerations(&document);
    let listed = OF_CODE.iter().map(|(place, ..)| *place).chain(OTHERS.iter().map(|(place, _)| *place));
    assert_eq!(enumerations.keys().map(String::as_str).collect::<BTreeSet<_>>(), listed.collect());
    for (place, file, name) in OF_CODE {
        let in_code = values_in_code(file, name);
        assert_eq!(enumerations[place].values, in_code.iter().map(String::as_str).collect(), "{place}");
    }
    assert!(OTHERS.iter().all(|(_, reason)| !reason.is_empty()));
}

#[test]
fn a_description_names_each_known_value() {
    let document = document();
    for (place, enumeration) in enumerations(&document).into_iter().filter(|(_, enumeration)| enumeration.is_open) {
        let is_named = |value: &&str| enumeration.description.contains(&format!("`{value}`"));
        let unnamed: Vec<_> = enumeration.values.iter().filter(|value| !is_named(value)).collect();
        assert!(unnamed.is_empty(), "the description of {place} does not name {unnamed:?}");
    }
}

/// Adds the schemas that a part of the document contains or refers to.
fn reach<'a>(document: &'a Value, part: &'a Value, seen: &mut BTreeSet<&'a str>, found: &mut Vec<&'a Value>) {
    match part {
        Value::Object(members) => {
            if let Some(reference) =
                members.get("$ref").and_then(Value::as_str).filter(|reference| seen.insert(*reference))
            {
                let target = document.pointer(reference.trim_start_matches('#'));
                reach(document, target.expect("the target of a reference exists"), seen, found);
            }
            found.push(part);
            let data = ["example", "examples"];
            let inner = members.iter().filter(|(name, _)| !data.contains(&name.as_str()));
            inner.for_each(|(_, member)| reach(document, member, seen, found));
        }
        Value::Array(items) => items.iter().for_each(|item| reach(document, item, seen, found)),
        _ => {}
    }
}

#[test]
fn values_may_be_added_to_responses_and_requests_list_the_accepted_ones() {
    let document = document();
    let paths = document["paths"].as_object().expect("openapi.yaml has paths").values();
    let (mut requests, mut responses) = (Vec::new(), Vec::new());
    let (mut seen_requests, mut seen_responses) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        reach(&document, &path["parameters"], &mut seen_requests, &mut requests);
        for operation in path.as_object().into_iter().flat_map(|path| path.values()) {
            for part in [&operation["parameters"], &operation["requestBody"]] {
                reach(&document, part, &mut seen_requests, &mut requests);
            }
            for response in operation["responses"].as_object().into_iter().flat_map(|responses| responses.values()) {
                let reference = response["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
                let response = reference.and_then(|reference| document.pointer(reference)).unwrap_or(response);
                reach(&document, &response["content"], &mut seen_responses, &mut responses);
            }
        }
    }
    // A client's endpoint reads this request as clients read responses.
    reach(&document, &document["components"]["pathItems"], &mut seen_responses, &mut responses);
    assert!(requests.len() > 100 && responses.len() > 300, "{} and {}", requests.len(), responses.len());
    // The versions of JSON-RPC and of this contract: any other version has a different schema.
    let is_version = |value: &Value| value == "2.0";
    let is_closed =
        |schema: &Value| schema["enum"].is_array() || (schema["const"].is_string() && !is_version(&schema["const"]));
    let closed: Vec<_> = responses.into_iter().filter(|schema| is_closed(schema)).collect();
    assert!(closed.is_empty(), "use `examples` and a `pattern` for the values of responses: {closed:#?}");
    let open: Vec<_> = requests.into_iter().filter(|schema| schema["examples"].is_array()).collect();
    assert!(open.is_empty(), "use `enum` for the values of requests: {open:#?}");
}
