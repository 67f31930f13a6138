//! Webhooks: creating them, refused values, and the list.

use std::{collections::HashSet, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Entity, Receiver, Suite, invalid_values, is_signed_by};

fn good() -> Value {
    json!({ "name": "test", "eventUrl": "https://hooks.example.com/waypost", "eventList": [] })
}

/// A valid request with one member replaced.
fn with(member: &str, value: impl Into<Value>) -> Value {
    let mut body = good();
    body[member] = value.into();
    body
}

/// The invalid values in a refused new webhook.
async fn violations(entity: &Entity, body: &Value) -> Vec<String> {
    invalid_values(&entity.post("/webhook").json(body).refused(400, "invalid-request").await)
}

#[contract_test]
async fn a_new_webhook_has_the_requested_values(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let asked = json!({
        "name": "Booking sync – Überblick",
        "enabled": false,
        "eventUrl": "https://hooks.example.com:8443/waypost?tenant=1&x=%20",
        "eventList": ["booking.cancelled", "booking.created"],
        "headers": { "X-Tenant": "demo", "Authorization": "Bearer abc", "x-lower": "" },
    });
    let hook = entity.hook_with(asked.clone()).await;
    let mut shown = asked.clone();
    shown["eventUrl"] = "https://hooks.example.com:8443/waypost?tenant=***&x=***".into();
    shown["headers"] = json!({ "X-Tenant": "***", "Authorization": "***", "x-lower": "***" });
    for (member, value) in shown.as_object().expect("an object") {
        assert_eq!(hook.json[member], *value, "{member}");
    }
    assert_eq!(hook.json["ownerIdentifier"], entity.id.as_str());
    assert_eq!(hook.json["health"], "healthy");
    assert_eq!(hook.json["createdDate"], hook.json["lastUpdate"]);
    assert!(hook.json.get("disabledReason").is_none());
}

#[contract_test]
async fn a_webhook_has_the_contracts_defaults(suite: Arc<Suite>) {
    let hook = suite.entity().await.hook_with(good()).await;
    assert_eq!(hook.json["enabled"], true);
    assert_eq!(hook.json["headers"], json!({}));
    assert_eq!(hook.json["eventList"], json!([]));
}

#[contract_test]
async fn the_location_leads_to_the_webhook(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let answer = entity.post("/webhook").json(&good()).expect(201).await;
    let id = answer.json()["id"].as_str().expect("openapi.yaml says so").to_owned();
    let path = entity.path(&format!("/webhook/{id}"));
    let location = answer.header("location");
    assert!(location == path || location == format!("{}{path}", suite.api.base_url()), "{}", answer.exchange);
    assert_eq!(entity.get(&format!("/webhook/{id}")).expect(200).await.json()["id"], id);
}

#[contract_test]
async fn the_secret_is_shown_once_and_differs_from_all_others(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let mut secrets = HashSet::new();
    for _ in 0..5 {
        let secret = entity.hook_with(good()).await.secret;
        // The secret has 24 to 64 bytes, as Standard Webhooks requires.
        assert!(secret.starts_with("whsec_") && (38..=94).contains(&secret.len()), "{secret}");
        assert!(secrets.insert(secret), "a secret came twice");
    }
    let list = entity.get("/webhook/list").expect(200).await.text();
    assert!(!list.contains("whsec_") && !list.contains("signingSecret"), "{list}");
    for secret in secrets {
        assert!(!list.contains(secret.trim_start_matches("whsec_")), "{list}");
    }
}

#[contract_test]
async fn the_body_may_name_the_entity_of_the_path(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.hook_with(with("entity", json!({ "identifier": entity.id }))).await;
    let hook = entity.hook_with(with("entity", json!({ "identifier": entity.id, "name": "Any name" }))).await;
    assert!(hook.json.get("entity").is_none());
}

#[contract_test]
async fn another_entity_in_the_body_is_a_violation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let wrong = [
        json!({ "identifier": "another" }),
        json!({ "name": "x" }),
        json!({}),
        json!("text"),
        json!({ "identifier": entity.id, "more": 1 }),
    ];
    for wrong in wrong {
        let fields = violations(&entity, &with("entity", wrong.clone())).await;
        assert!(fields.iter().all(|field| field.starts_with("body/entity")), "{wrong}: {fields:?}");
    }
}

#[contract_test]
async fn the_list_shows_only_the_entitys_webhooks_without_their_secrets(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let other = suite.entity().await;
    assert_eq!(entity.get("/webhook/list").expect(200).await.json(), json!([]));
    let mut made = vec![];
    for name in ["first", "second", "third"] {
        let mut hook = entity.hook_with(with("name", name)).await.json;
        hook.as_object_mut().expect("an object").remove("signingSecret");
        made.push(hook);
    }
    other.hook_with(good()).await;
    assert_eq!(entity.get("/webhook/list").expect(200).await.json(), Value::from(made));
}

#[contract_test]
async fn every_violation_is_reported_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({
        "name": "", "enabled": "yes", "eventUrl": "ftp://hooks.example.com/", "eventList": ["booking.created", "nonsense", 1],
        "headers": { "Host": "x", "X-Bad": "a\nb" }, "entity": { "identifier": "another" }, "evnetList": [],
    });
    let fields = violations(&entity, &body).await;
    for field in ["name", "enabled", "eventUrl", "eventList", "headers/Host", "headers/X-Bad", "entity", "evnetList"] {
        let field = format!("body/{field}");
        assert!(fields.iter().any(|known| known.starts_with(&field)), "{field} is missing among {fields:?}");
    }
    let mut missing = violations(&entity, &json!({})).await;
    missing.sort();
    assert_eq!(missing, ["body/eventList", "body/eventUrl", "body/name"]);
}

#[contract_test]
async fn a_wrong_value_is_a_violation_of_its_member(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (member, value) in [
        ("name", json!(null)),
        ("name", json!(1)),
        ("name", json!("   ")),
        ("name", json!("a\u{0}b")),
        ("name", json!("x".repeat(10_000))),
        ("enabled", json!(null)),
        ("enabled", json!(1)),
        ("eventUrl", json!(null)),
        ("eventUrl", json!(["https://hooks.example.com/"])),
        ("eventList", json!(null)),
        ("eventList", json!("booking.created")),
        ("eventList", json!(["booking.created", "BOOKING.CREATED"])),
        ("eventList", json!(["*"])),
        ("eventList", json!([null])),
        ("headers", json!(null)),
        ("headers", json!([])),
        ("headers", json!({ "X-Number": 1 })),
        ("headers", json!({ "X-Null": null })),
        ("retries", json!({ "none": null })),
        ("signature", json!({ "hmac": null })),
    ] {
        let fields = violations(&entity, &with(member, value.clone())).await;
        assert!(
            !fields.is_empty() && fields.iter().all(|field| field.starts_with(&format!("body/{member}"))),
            "{member} = {value}: {fields:?}"
        );
    }
}

#[contract_test]
async fn header_names_that_the_service_sets_are_reserved(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let names = [
        "Content-Type",
        "content-length",
        "Content-Encoding",
        "Transfer-Encoding",
        "Host",
        "Connection",
        "User-Agent",
        "Service-Delivery-Id",
        "SERVICE-VERSION",
        "webhook-id",
        "webhook-timestamp",
        "Webhook-Signature",
        "Expect",
        "Upgrade",
        "TE",
        "Trailer",
        "Proxy-Authorization",
        "Keep-Alive",
        "Proxy-Status",
        "HTTP2-Settings",
        "Range",
        "Content-Range",
        "If-None-Match",
        "Set-Cookie",
    ];
    for name in names {
        let fields = violations(&entity, &with("headers", json!({ name: "x" }))).await;
        assert_eq!(fields, [format!("body/headers/{name}")]);
    }
}

#[contract_test]
async fn headers_that_could_split_a_message_are_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\u{0}b", "a\u{7f}", "a\u{1b}b", "\u{e9}\u{100}"] {
        let fields = violations(&entity, &with("headers", json!({ "X-Test": value }))).await;
        assert_eq!(fields, ["body/headers/X-Test"], "{value:?}");
    }
    for name in ["", "a b", "a:b", "a\r\nb", "ä", "(x)", "a\u{0}"] {
        let fields = violations(&entity, &with("headers", json!({ name: "x" }))).await;
        assert_eq!(fields, [format!("body/headers/{name}")]);
    }
    let fields = violations(&entity, &with("headers", json!({ "X-Test": "1", "x-test": "2" }))).await;
    assert!(!fields.is_empty() && fields.iter().all(|field| field.starts_with("body/headers")), "{fields:?}");
}

#[contract_test]
async fn at_most_twenty_headers_can_be_set(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let headers = |count: usize| {
        (0..count).map(|number| (format!("X-{number}"), Value::from("x"))).collect::<serde_json::Map<_, _>>()
    };
    entity.hook_with(with("headers", headers(20))).await;
    assert_eq!(violations(&entity, &with("headers", headers(21))).await, ["body/headers"]);
}

#[contract_test]
async fn headers_may_have_six_kibibytes_together(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let headers = |count: usize| {
        let all = (0..count).map(|number| (format!("X-{number}"), Value::from("x".repeat(2_000))));
        all.collect::<serde_json::Map<_, _>>()
    };
    let hook = entity.hook_with(with("headers", headers(3))).await;
    assert_eq!(violations(&entity, &with("headers", headers(4))).await, ["body/headers"]);
    let change = entity.change(&hook.id, &json!({ "headers": headers(20) })).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&change)[0], "body/headers");
}

#[contract_test]
async fn ordinary_addresses_are_taken(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for url in [
        "https://hooks.example.com",
        "https://hooks.example.com/a/b?c=d",
        "http://hooks.example.com/",
        "https://93.184.216.34/",
        "https://[2606:4700::1111]:8443/",
        "http://127.0.0.1:65535/",
    ] {
        let hook = entity.hook_with(with("eventUrl", url)).await;
        assert_eq!(hook.json["eventUrl"], url.replace("?c=d", "?c=***"));
    }
}

#[contract_test]
async fn addresses_of_other_kinds_are_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for url in [
        "",
        "hooks.example.com",
        "/relative",
        "//hooks.example.com/",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,x",
        "ws://hooks.example.com/",
        "https://",
        "https://user@hooks.example.com/",
        "https://user:password@hooks.example.com/",
        "https://:password@hooks.example.com/",
        "https://hooks.example.com/#fragment",
        "https://hooks.example.com/#",
        "https://hooks.example.com:0/",
        "https://hooks.example.com:65536/",
        "https://hooks.exa mple.com/",
        "https://hooks.example.com/\n",
        " https://hooks.example.com/",
        "https://hooks.example.com/\u{0}",
        &format!("https://hooks.example.com/{}", "x".repeat(10_000)),
    ] {
        assert_eq!(violations(&entity, &with("eventUrl", url)).await, ["body/eventUrl"], "{url:?}");
    }
}

#[contract_test]
async fn addresses_that_are_not_public_are_refused_in_every_notation(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for host in [
        "127.0.0.2",
        "127.2",
        "2130706434",
        "0x7f000002",
        "0177.0.0.2",
        "127.0.0.2.",
        "0.0.0.0",
        "0",
        "10.0.0.1",
        "10.1",
        "0xa000001",
        "100.64.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "%31%30.0.0.1",
        "１０.0.0.1",
        "[::]",
        "[::1]",
        "[::2]",
        "[::ffff:10.0.0.1]",
        "[::ffff:a00:1]",
        "[::10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::a00:1]",
        "[2002:a00:1::]",
        "[2001:0:0:0:0:0:f5ff:fffe]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[100::1]",
        "intranet",
        "printer.local",
        "metadata.google.internal",
        "router.home.arpa",
    ] {
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{host}/");
            assert_eq!(violations(&entity, &with("eventUrl", url.as_str())).await, ["body/eventUrl"], "{url}");
        }
    }
}

#[contract_test]
async fn many_webhooks_of_an_entity_are_all_listed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let mut hooks = vec![];
    for number in 0..30 {
        let mut body = with("eventUrl", receiver.url(&format!("/{number}")));
        body["name"] = format!("number {number}").into();
        hooks.push(entity.hook_with(body).await);
    }
    let list = entity.get("/webhook/list").expect(200).await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(hooks.len()));
    // Each webhook receives its delivery, signed with its own secret.
    let published = entity.publish_of_type("booking.created", json!({})).await.json();
    assert_eq!(published["deliveries"].as_array().map(Vec::len), Some(hooks.len()));
    for (number, hook) in hooks.iter().enumerate() {
        let received = receiver.until(&format!("/{number}"), 1).await;
        assert!(
            is_signed_by(&received[0], &hook.secret),
            "the delivery to number {number} is not signed with its secret"
        );
    }
}

#[contract_test]
async fn an_entity_has_at_most_two_hundred_webhooks(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for _ in 0..200 {
        entity.post("/webhook").json(&good()).expect(201).await;
    }
    entity.post("/webhook").json(&good()).refused(409, "webhook-limit").await;
    let listed = entity.get("/webhook/list").expect(200).await;
    let listed = listed.json();
    assert_eq!(listed.as_array().expect("a list").len(), 200);
    // Removing a webhook makes room for a new one.
    entity.remove(listed[17]["id"].as_str().expect("openapi.yaml says so")).expect(200).await;
    entity.post("/webhook").json(&good()).expect(201).await;
    entity.post("/webhook").json(&good()).refused(409, "webhook-limit").await;
}
