//! Each function has the rights that SAM derives from template.yaml, and declares no variable that it does not read.
//! Every run ends by checking that all calls are granted and that tests use every grant.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Stdio,
    sync::Arc,
};

use contract_test::contract_test;
use serde_json::{Value, json};
use template::Template;
use tokio::process::Command;

use crate::harness::{Agent, Behaviour, Bus, LONG, Receiver, Suite, local, project, python, rights::template_rights};

#[contract_test]
async fn the_rights_are_those_that_sam_makes_of_the_template(_: Arc<Suite>) {
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

/// A function does not start if a required variable is missing or any variable is malformed; the error names all such
/// variables. A variable that no such error names is not read.
#[contract_test]
async fn every_variable_that_a_function_declares_is_read(_: Arc<Suite>) {
    let text = std::fs::read_to_string(project().join("template.yaml")).expect("the project has a template.yaml");
    let template = Template::parse(&text).expect("template.yaml is a template");
    let folder = local().expect("`local` is built");
    let folder = folder.parent().expect("a program has a folder");
    let shared: BTreeSet<_> = template
        .functions()
        .iter()
        .map(|function| function.environment.keys().collect::<BTreeSet<_>>())
        .reduce(|all, of_one| all.intersection(&of_one).copied().collect())
        .expect("there are functions");
    let mut read_of_shared = BTreeSet::new();
    let mut unread = BTreeMap::new();
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
        // Any short string is a valid name, so no error ever mentions this variable.
        let own: Vec<_> = own.into_iter().filter(|name| !is_read(name) && *name != "PANEL_NAME").collect();
        if !own.is_empty() {
            unread.insert(&function.name, own);
        }
    }
    assert!(
        unread.is_empty(),
        "these functions do not read these variables, which template.yaml gives them: {unread:?}"
    );
    // Any string is a valid log level, so no error ever mentions this variable.
    read_of_shared.insert("LOG_LEVEL".to_owned());
    let unread: Vec<_> = shared.into_iter().filter(|name| !read_of_shared.contains(*name)).collect();
    assert!(unread.is_empty(), "no function reads these variables, which template.yaml gives all of them: {unread:?}");
}

/// The error from a function that is started with only these variables.
async fn complaint(folder: &Path, function: &str, variables: &[(&str, &str)]) -> String {
    let aws = [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "none"), ("AWS_SECRET_ACCESS_KEY", "none")];
    let mut command = Command::new(folder.join("functions"));
    command.arg0(function).env_clear().envs(aws).envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(LONG, output).await;
    let output = output.unwrap_or_else(|_| panic!("{function} starts with an environment that it should refuse"));
    let output = output.expect("the function is built");
    assert!(!output.status.success(), "{function} starts with an environment that it should refuse");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// Each publishing function has the right to send to the slow lane, and a run must use every right. Other tests publish
// to slow webhooks through only some of these functions.
#[contract_test]
async fn every_publishing_function_announces_slow_webhooks_in_their_lane(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let pk = format!("ENT#{}", entity.id);
    let sk = format!("WHK#{}", hook.id);
    assert!(table.set(&pk, &sk, "slowUntil", "2099-01-01T00:00:00.000Z").await);
    let published = entity.publish(json!({})).await;
    let tested = entity.test(&hook.id).expect(202).await.json();
    let by_agent = Agent::of(&entity).await.call("publish_test_event", json!({ "webhookIdentifier": hook.id })).await;
    let detail = format!(r#"{{"type":"booking.created","managingEntityIdentifier":"{}","data":{{}}}}"#, entity.id);
    let ingested = Bus::of(&suite.api.env).hand_over(Bus::event(&format!("{}-slow", entity.id), &detail)).await;
    let ingested = ingested.expect("the event is accepted")["published"]["deliveries"][0]["deliveryIdentifier"].clone();
    let text = |value: &Value| value.as_str().expect("a delivery has an identifier").to_owned();
    let [tested, by_agent] = [tested, by_agent].map(|sent| text(&sent["deliveryIdentifier"]));
    for delivery in [published, tested, by_agent, text(&ingested)] {
        entity.until_status(&delivery, &["delivered"]).await;
    }
}

// Each of these functions has the rights to record a credential's first use and to count a failed attempt, and a run
// must use every right. Other tests do both through only some of these endpoints.
#[contract_test]
async fn every_endpoint_for_clients_notes_first_use_and_counts_guesses(suite: Arc<Suite>) {
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
