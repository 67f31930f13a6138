//! Each function may do what template.yaml grants it, here as on AWS, and declares no variable that it does not read. That no
//! test needs a right that is not granted, and none is granted that no test needs, is what the end of every run checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use reqwest::StatusCode;
use serde_json::{Value, json};
use template::Template;
use tokio::process::Command;

use crate::harness::{
    Agent, Behaviour, Bus, Entity, Receiver, Settings, Suite, aws_authorization,
    changed_grants::NARROWED,
    local, project, python,
    rights::{expect_refusal, refusals, template_rights, template_text},
    tests,
};

tests![
    what_is_granted_here_is_what_sam_makes_of_the_template,
    a_function_is_refused_what_it_is_not_granted_as_aws_refuses_it,
    a_grant_that_is_narrowed_by_hand_is_refused_and_named,
    every_variable_that_a_function_declares_is_read,
    what_goes_to_a_slow_webhook_is_announced_in_its_lane_by_every_function_that_publishes,
    every_endpoint_for_clients_notes_their_first_use_and_counts_their_guesses,
];

async fn what_is_granted_here_is_what_sam_makes_of_the_template(_: Arc<Suite>) {
    let template = project().join("template.yaml");
    let expanded = python("expand_template.py", &json!({ "template": template })).await;
    let rights = template_rights();
    for function in rights.functions() {
        let of_aws = |name: &str| name.starts_with("AWS");
        let managed: BTreeSet<_> = function.policies().map(|(name, _)| name).filter(|name| of_aws(name)).collect();
        let ours = function.policies().filter(|(name, _)| !of_aws(name));
        let ours: BTreeSet<_> = ours.flat_map(|(_, statements)| statements).map(Value::to_string).collect();
        let of_sam = &expanded[&function.logical_id];
        let list = |member: &str| of_sam[member].as_array().expect("the script prints lists").iter();
        assert_eq!(list("managed").filter_map(Value::as_str).collect::<BTreeSet<_>>(), managed, "{}", function.name);
        assert_eq!(list("statements").map(Value::to_string).collect::<BTreeSet<_>>(), ours, "{}", function.name);
    }
    assert_eq!(expanded.as_object().map(serde_json::Map::len), Some(rights.functions().count()));
}

async fn a_function_is_refused_what_it_is_not_granted_as_aws_refuses_it(suite: Arc<Suite>) {
    let env = &suite.api.env;
    suite.api.get("/oauth2/jwks").expect(200).await;
    let function = suite.bundle().process("token-keys").await;
    let own = function.variable("AWS_ACCESS_KEY_ID").expect("a function has credentials");
    assert_ne!(own, env["AWS_ACCESS_KEY_ID"], "the operator's are the operator's alone");
    let other = suite.bundle().process("token").await.variable("AWS_ACCESS_KEY_ID");
    assert_ne!(Some(&own), other.as_ref());
    let ask = async |endpoint: &str, target: &str, body: Value| {
        let request = reqwest::Client::new().post(&env[endpoint]).header("authorization", aws_authorization(&own));
        let request = request.header("x-amz-target", target).header("content-type", "application/x-amz-json-1.0");
        let answer = request.body(body.to_string()).send().await.expect("a stand-in answers");
        (answer.status(), answer.text().await.expect("a whole answer"))
    };
    let table = &env["TABLE_NAME"];
    let key = |pk: &str| json!({ "TableName": table, "Key": { "pk": { "S": pk }, "sk": { "S": "JWKS" } } });
    let get = "DynamoDB_20120810.GetItem";
    let (status, body) = ask("DYNAMODB_ENDPOINT", get, key("KEYS")).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let queue = json!({ "QueueUrl": "http://queue/000000000000/DeliveryQueue", "MessageBody": "x" });
    let secret = json!({ "SecretId": "waypost/local/signing-key" });
    for (endpoint, target, request, expected, action, named) in [
        ("DYNAMODB_ENDPOINT", get, key("APP#1"), 400, "dynamodb:GetItem", " for the key APP#1"),
        ("DYNAMODB_ENDPOINT", "DynamoDB_20120810.Scan", json!({ "TableName": table }), 400, "dynamodb:Scan", table),
        ("SERVICES_ENDPOINT", "AmazonSQS.SendMessage", queue, 403, "sqs:SendMessage", ":DeliveryQueue"),
        (
            "SERVICES_ENDPOINT",
            "secretsmanager.GetSecretValue",
            secret,
            400,
            "secretsmanager:GetSecretValue",
            "signing-key-stands",
        ),
    ] {
        expect_refusal("token-keys", action, named);
        let (status, body) = ask(endpoint, target, request).await;
        assert_eq!(status.as_u16(), expected, "{action}: {body}");
        let body: Value = serde_json::from_str(&body).expect("a refusal is JSON");
        assert!(body["__type"].as_str().is_some_and(|kind| kind.ends_with("#AccessDeniedException")), "{body}");
        let sentence = body["Message"].as_str().unwrap_or_default();
        let user =
            "User: arn:aws:sts::000000000000:assumed-role/TokenKeysRole/token-keys is not authorized to perform: ";
        assert!(sentence.starts_with(&format!("{user}{action} on resource: arn:aws:")), "{sentence}");
        let why = format!(" because no identity-based policy allows the {action} action");
        assert!(sentence.ends_with(&why), "{sentence}");
    }
    let object = format!("{}/bucket/object", env["SERVICES_ENDPOINT"]);
    expect_refusal("token-keys", "s3:GetObject", ":::bucket/object");
    let request = reqwest::Client::new().get(object).header("authorization", aws_authorization(&own));
    let answer = request.send().await.expect("a stand-in answers");
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let body = answer.text().await.expect("a whole answer");
    assert!(body.contains("<Code>AccessDenied</Code>"), "{body}");
}

/// That a widened grant is named, and these too without a bundle of their own, is what the end of every run checks.
async fn a_grant_that_is_narrowed_by_hand_is_refused_and_named(suite: Arc<Suite>) {
    let narrowed = NARROWED.iter().try_fold(template_text(), |template, change| change.apply(&template));
    let narrowed = narrowed.unwrap_or_else(|fault| panic!("{fault}"));
    let (bundle, api, _permit) = suite.other_bundle_of(&narrowed, Settings::default()).await;
    let entity = Entity::new(&api, "entity".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await.id;

    let range = json!({ "since": "2020-01-01T00:00:00Z" });
    entity.post(&format!("/webhook/{hook}/recover")).json(&range).expect(500).await;
    entity.post("/webhook/event").json(&json!({ "type": "booking.created", "data": {} })).expect(500).await;
    entity.get("/webhook/list").expect(500).await;
    // A secret may also be out of reach for a while.
    entity.post("/application").json(&json!({ "name": "Client", "scopes": ["booking.read"] })).expect(503).await;
    // Without the queue, a delivery comes with the next sweep; the refusal alone shows what is missing.
    let tested = entity.test(&hook).expect(202).await.json();
    let delivery = tested["deliveryIdentifier"].as_str().expect("openapi.yaml says so");
    entity.until_status(delivery, &["delivered"]).await;

    let refusals = refusals(&bundle.data());
    for change in &NARROWED {
        let said = refusals.iter().any(|sentence| change.is_named_by(sentence));
        assert!(said, "{} lacks a right, which no refusal names: {refusals:#?}", change.function);
    }
    let of_one = |sentence: &String| NARROWED.iter().any(|change| change.is_named_by(sentence));
    let others: Vec<_> = refusals.iter().filter(|sentence| !of_one(sentence)).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// A function with a variable that it needs does not start without it, and none starts with a malformed one; the error names every
/// variable at once. What it names neither way, the function does not read.
async fn every_variable_that_a_function_declares_is_read(_: Arc<Suite>) {
    let text = std::fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let template = Template::parse(&text).expect("template.yaml is a template");
    let folder = local().expect("`local` is built");
    let folder = folder.parent().expect("it lies in a folder");
    let shared: BTreeSet<_> = template
        .functions()
        .iter()
        .map(|function| function.environment.keys().collect::<BTreeSet<_>>())
        .reduce(|all, of_one| all.intersection(&of_one).copied().collect())
        .expect("there are functions");
    let (mut read_of_shared, mut unread) = (BTreeSet::new(), BTreeMap::new());
    for function in template.functions() {
        let variables = || function.environment.keys().map(String::as_str);
        let errors = [complaint(folder, &function.name, &[]).await, {
            let malformed: Vec<_> = variables().map(|name| (name, "\u{a7}")).collect();
            complaint(folder, &function.name, &malformed).await
        }];
        let is_read = |name: &&String| {
            let words =
                |error: &'_ String| error.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == **name);
            errors.iter().any(words)
        };
        let (shared, own): (Vec<_>, Vec<_>) = function.environment.keys().partition(|name| shared.contains(name));
        read_of_shared.extend(shared.into_iter().filter(is_read).cloned());
        let own: Vec<_> = own.into_iter().filter(|name| !is_read(name)).collect();
        if !own.is_empty() {
            unread.insert(&function.name, own);
        }
    }
    assert!(
        unread.is_empty(),
        "these functions do not read these variables, which template.yaml gives them: {unread:?}"
    );
    // Every level of logging is one, if only the usual one.
    read_of_shared.insert("LOG_LEVEL".to_owned());
    let unread: Vec<_> = shared.into_iter().filter(|name| !read_of_shared.contains(*name)).collect();
    assert!(unread.is_empty(), "no function reads these variables, which template.yaml gives all of them: {unread:?}");
}

/// What a function says that is started with no more variables than these.
async fn complaint(folder: &Path, function: &str, variables: &[(&str, &str)]) -> String {
    let aws = [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "none"), ("AWS_SECRET_ACCESS_KEY", "none")];
    let mut command = Command::new(folder.join("functions"));
    command.arg0(function).env_clear().envs(aws).envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_secs(20), output).await;
    let output = output.unwrap_or_else(|_| panic!("{function} starts with an environment that it should refuse"));
    let output = output.expect("the function is built");
    assert!(!output.status.success(), "{function} starts with an environment that it should refuse");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn what_goes_to_a_slow_webhook_is_announced_in_its_lane_by_every_function_that_publishes(suite: Arc<Suite>) {
    let (entity, receiver, table) = (suite.entity().await, Receiver::start().await, suite.table());
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let (pk, sk) = (format!("ENT#{}", entity.id), format!("WHK#{}", hook.id));
    assert!(table.set(&pk, &sk, "slowUntil", "2099-01-01T00:00:00.000Z").await);
    let published = entity.publish(json!({})).await;
    let tested = entity.test(&hook.id).expect(202).await.json();
    let by_agent = Agent::of(&entity).await.call("publish_test_event", json!({ "webhookIdentifier": hook.id })).await;
    let detail = format!(r#"{{"type":"booking.created","managingEntityIdentifier":"{}","data":{{}}}}"#, entity.id);
    let ingested = Bus::of(&suite.api.env).hand_over(Bus::event(&format!("{}-slow", entity.id), &detail)).await;
    let ingested = ingested.expect("the event is taken")["published"]["deliveries"][0]["deliveryIdentifier"].clone();
    let text = |value: &Value| value.as_str().expect("a delivery has an identifier").to_owned();
    let [tested, by_agent] = [tested, by_agent].map(|sent| text(&sent["deliveryIdentifier"]));
    for delivery in [published, tested, by_agent, text(&ingested)] {
        entity.until_status(&delivery, &["delivered"]).await;
    }
}

async fn every_endpoint_for_clients_notes_their_first_use_and_counts_their_guesses(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for path in ["/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"] {
        let new = json!({ "name": "Client", "scopes": ["booking.read"] });
        let made = entity.post("/application").json(&new).expect(201).await.json();
        let [id, secret] =
            ["clientId", "clientSecret"].map(|name| made[name].as_str().expect("it is shown").to_owned());
        let ask = |secret: &str| {
            let form = [("client_id", id.as_str()), ("client_secret", secret), ("token", "none")];
            suite.api.post(path).form(&[&form[..], &[("grant_type", "client_credentials")]].concat())
        };
        ask(&secret).expect(200).await;
        ask("wrong").expect(401).await;
    }
}
