//! Tokens are refreshed before they expire, once each, even if calls fail in between.

use std::{collections::BTreeSet, fs, sync::Arc};

use contract_test::contract_test;
use fakes::provider::{Kind, PROVIDERS_WORDS, RequestOutcome};
use serde_json::{Value, json};

use crate::harness::{
    Api, Behaviour, Bundle, Choice, Entity, LONG, Receiver, Settings, Suite, Table, Visit, invocation, project, time,
    until,
};

/// A time in the past, in the table's format.
const PAST: &str = "2026-01-01T00:00:00.000Z";

fn key(entity: &Entity, provider: &str) -> (String, String) {
    (format!("ENT#{}", entity.id), format!("PAY#{provider}"))
}

async fn make_due(table: &Table, entity: &Entity, provider: &str) {
    let (pk, sk) = key(entity, provider);
    until("no function holds the connection", LONG, async || table.set(&pk, &sk, "dueAt", PAST).await.then_some(()))
        .await;
}

/// Waits until `count` refreshes have been requested for an account, and returns their outcomes.
async fn refreshes(suite: &Suite, account: &str, count: usize) -> Vec<RequestOutcome> {
    until(&format!("{count} refreshes of {account}"), LONG, async || {
        Some(suite.providers().of_account(Kind::Refresh, account)).filter(|outcomes| outcomes.len() >= count)
    })
    .await
}

async fn until_listed(entity: &Entity, provider: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until(what, LONG, async || entity.connection(provider).await.filter(&is_so)).await
}

/// Waits until the last refresh is recorded, regardless of its outcome.
async fn until_recorded(table: &Table, entity: &Entity, provider: &str) -> Value {
    let (pk, sk) = key(entity, provider);
    until("the refresh is recorded", LONG, async || {
        let item = table.item(&pk, &sk).await?;
        let waits = item["lease"].is_null() && item["dueAt"]["S"] != PAST;
        waits.then_some(item)
    })
    .await
}

/// The refresher's log line with this message about this connection.
async fn logged(suite: &Suite, connection: &Value, message: &str) -> Value {
    let log = suite.bundle().data().join("logs/refresh-connections.log");
    until(message, LONG, async || {
        let text = fs::read_to_string(&log).ok()?;
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["message"] == message && line["connectionId"] == connection["id"])
    })
    .await
}

/// The lifetime of the first access tokens in seconds, for the test of when they are refreshed. No test waits for its
/// end.
const LIFE: u32 = 30 * 60;

#[contract_test]
async fn tokens_are_refreshed_before_they_expire(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let in_time = |provider| is_refreshed_in_time(&suite, &entity, provider);
    tokio::join!(
        in_time("sim-basic"),
        in_time("sim-pkce"),
        in_time("sim-jwt"),
        in_time("sim-json"),
        in_time("sim-body"),
        in_time("square"),
    );
}

async fn is_refreshed_in_time(suite: &Suite, entity: &Entity, provider: &str) {
    let table = suite.table();
    let visit = entity.link(provider, Choice { first_lifetime: Some(LIFE), ..Choice::ALLOW }).await;
    let before = entity.connection(provider).await.expect("connected");
    let (pk, sk) = key(entity, provider);
    let item = table.item(&pk, &sk).await.expect("kept");
    // With the service's timing, the schedule's next run refreshes a connection that is due.
    let waits = time(&item["dueAt"]["S"]).as_second() - time(&before["connectedDate"]).as_second();
    let life = i64::from(LIFE);
    assert!((life / 3..life).contains(&waits), "{provider}: due after {waits} s, of {life} s");
    assert_eq!(suite.providers().of_account(Kind::Refresh, &visit.account), [], "{provider}");
    make_due(&table, entity, provider).await;
    let after = until_listed(entity, provider, "the new tokens are kept", |connection| {
        connection["expiresDate"] != before["expiresDate"]
    })
    .await;
    assert_eq!((&after["status"], &after["id"]), (&json!("connected"), &before["id"]), "{provider}");
    assert!(time(&after["expiresDate"]) > time(&before["expiresDate"]), "{provider}");
    assert_eq!(after["connectedDate"], before["connectedDate"]);
    assert_ne!(after["lastUpdate"], before["lastUpdate"]);
    assert_eq!(suite.providers().of_account(Kind::Refresh, &visit.account), [RequestOutcome::Done], "{provider}");
}

async fn refresh_twice(suite: &Suite, provider: &str) {
    let entity = suite.entity().await;
    let table = suite.table();
    let visit = entity.link(provider, Choice::ALLOW).await;
    for count in 1..=3 {
        make_due(&table, &entity, provider).await;
        let outcomes = refreshes(suite, &visit.account, count).await;
        assert_eq!(outcomes, vec![RequestOutcome::Done; count], "{provider}");
        until_recorded(&table, &entity, provider).await;
    }
    assert_eq!(entity.connection(provider).await.expect("kept")["status"], "connected");
    // The stored tokens can be revoked.
    assert_eq!(entity.disconnect(provider).expect(200).await.json()["providerAccess"], "revoked");
    assert!(suite.providers().has_ended(provider, &visit.account));
}

#[contract_test]
async fn the_rotated_token_is_the_one_that_is_used_next(suite: Arc<Suite>) {
    // The first provider ends the grant when an old token is used; the second accepts both tokens until the new one is
    // used.
    refresh_twice(&suite, "sim-body").await;
    refresh_twice(&suite, "sim-basic").await;
}

#[contract_test]
async fn a_provider_that_keeps_its_refresh_token_is_asked_with_it_again(suite: Arc<Suite>) {
    // The first provider repeats the token in its responses; the second does not.
    refresh_twice(&suite, "square").await;
    refresh_twice(&suite, "sim-json").await;
}

/// A webhook for events about broken connections; the receiver gets its requests at `/`.
async fn watch(entity: &Entity) -> Receiver {
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(200)]);
    let types = json!(["payment.connection.broken"]);
    entity.hook_with(json!({ "name": "broken", "eventUrl": url, "eventList": types })).await;
    receiver
}

async fn event_arrives(receiver: &Receiver, connection: &Value, visit: &Visit, provider: &str, reason: &str) {
    let event = receiver.until("/", 1).await[0].json();
    let data = json!({
        "connectionIdentifier": connection["id"], "provider": provider, "account": visit.account, "reason": reason,
    });
    assert_eq!((&event["type"], &event["data"]), (&json!("payment.connection.broken"), &data), "{event:#}");
}

#[contract_test]
async fn a_grant_that_has_ended_breaks_the_connection_and_an_event_says_so(suite: Arc<Suite>) {
    for provider in ["sim-basic", "square"] {
        let entity = suite.entity().await;
        let table = suite.table();
        let receiver = watch(&entity).await;
        let visit = entity.link(provider, Choice::ALLOW).await;
        suite.providers().end(provider, &visit.account);
        make_due(&table, &entity, provider).await;
        let broken =
            until_listed(&entity, provider, "it is broken", |connection| connection["status"] == "broken").await;
        event_arrives(&receiver, &broken, &visit, provider, "refused").await;
        assert_eq!(broken["brokenReason"], "refused", "{broken:#}");
        assert_eq!(broken["lastErrorCode"], "refused", "{broken:#}");
        let detail = broken["lastErrorDetail"].as_str();
        assert!(detail.is_some_and(|detail| detail.ends_with("with invalid_grant")), "{broken:#}");
        let line = logged(&suite, &broken, "a connection is broken").await;
        assert_eq!((&line["entity"], &line["reason"]), (&json!(entity.id), &json!("refused")), "{line:#}");
        // A refresh that cannot succeed is not repeated.
        let (pk, sk) = key(&entity, provider);
        let item = table.item(&pk, &sk).await.expect("kept");
        assert!(item["dueAt"].is_null() && item["dueShard"].is_null(), "{item:#}");
        assert_eq!(suite.providers().of_account(Kind::Refresh, &visit.account).len(), 1);
        let answer = entity.disconnect(provider).expect(200).await.json();
        assert!(["revoked", "already-revoked"].iter().any(|access| answer["providerAccess"] == *access), "{answer:#}");
    }
}

#[contract_test]
async fn an_error_with_status_200_breaks_the_connection(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let table = suite.table();
    let visit = entity.link("sim-basic", Choice::leading_to("refresh-200-invalid_grant")).await;
    make_due(&table, &entity, "sim-basic").await;
    let broken =
        until_listed(&entity, "sim-basic", "it is broken", |connection| connection["status"] == "broken").await;
    let detail = "the provider answered 200 with invalid_grant";
    assert_eq!(
        (&broken["lastErrorCode"], &broken["lastErrorDetail"]),
        (&json!("refused"), &json!(detail)),
        "{broken:#}"
    );
    assert_eq!(suite.providers().of_account(Kind::Refresh, &visit.account), [RequestOutcome::Failed]);
}

#[contract_test]
async fn grants_with_members_that_cannot_be_read_are_kept(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let table = suite.table();
    // This provider keeps its refresh token, and its refresh response contains an empty one.
    let visit = entity.link("sim-json", Choice::leading_to("odd-members")).await;
    for count in 1..=2 {
        make_due(&table, &entity, "sim-json").await;
        assert_eq!(refreshes(&suite, &visit.account, count).await, vec![RequestOutcome::Done; count]);
        let item = until_recorded(&table, &entity, "sim-json").await;
        assert_eq!(item["failures"]["N"], "0", "{item:#}");
    }
    let connection = entity.connection("sim-json").await.expect("kept");
    assert_eq!(
        (&connection["status"], &connection["lastErrorCode"]),
        (&json!("connected"), &Value::Null),
        "{connection:#}"
    );
}

#[contract_test]
async fn a_connection_that_cannot_be_refreshed_breaks_when_it_expires(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = watch(&entity).await;
    let visit = entity.link("sim-basic", Choice::leading_to("no-refresh")).await;
    let connection = entity.connection("sim-basic").await.expect("connected");
    assert_eq!(connection["status"], "connected");
    let table = suite.table();
    let (pk, sk) = key(&entity, "sim-basic");
    let item = table.item(&pk, &sk).await.expect("kept");
    assert_eq!(item["dueAt"]["S"], connection["expiresDate"], "it is due when its tokens expire");
    make_due(&table, &entity, "sim-basic").await;
    let broken =
        until_listed(&entity, "sim-basic", "it is broken", |connection| connection["status"] == "broken").await;
    event_arrives(&receiver, &broken, &visit, "sim-basic", "expired").await;
    assert_eq!((&broken["brokenReason"], &broken["lastErrorCode"]), (&json!("expired"), &Value::Null), "{broken:#}");
    assert!(broken["lastErrorDetail"].is_null(), "{broken:#}");
    assert_eq!(suite.providers().of_account(Kind::Refresh, &visit.account), []);
}

#[contract_test]
async fn a_failure_is_tried_again_and_breaks_nothing(suite: Arc<Suite>) {
    // Test one after the other, so that these refreshes do not compete for the machine.
    for name in ["500", "503", "429", "invalid_client", "not-json", "reset", "truncated", "redirect", "huge", "hang"] {
        let entity = suite.entity().await;
        let table = suite.table();
        let visit = entity.link("sim-basic", Choice::leading_to(&format!("refresh-{name}-once"))).await;
        make_due(&table, &entity, "sim-basic").await;
        assert_eq!(refreshes(&suite, &visit.account, 1).await, [RequestOutcome::Failed], "{name}");
        let item = until_recorded(&table, &entity, "sim-basic").await;
        assert_eq!(item["failures"]["N"], "1", "{name}: {item:#}");
        let connection = entity.connection("sim-basic").await.expect("kept");
        assert_eq!((&connection["status"], &connection["brokenReason"]), (&json!("connected"), &Value::Null), "{name}");
        assert!(connection["lastErrorCode"].is_string() && connection["lastErrorDetail"].is_string(), "{name}");
        assert!(!connection.to_string().contains(PROVIDERS_WORDS), "{name}");
        if name == "invalid_client" {
            assert_eq!(connection["lastErrorCode"], "refused");
            assert_eq!(connection["lastErrorDetail"], "the provider answered 401 with invalid_client");
            let line = logged(&suite, &connection, "a refresh failed").await;
            assert!(line["error"].as_str().is_some_and(|error| error.contains("invalid_client")), "{line:#}");
        }
        make_due(&table, &entity, "sim-basic").await;
        assert_eq!(
            refreshes(&suite, &visit.account, 2).await,
            [RequestOutcome::Failed, RequestOutcome::Done],
            "{name}"
        );
        let item = until_recorded(&table, &entity, "sim-basic").await;
        assert_eq!(item["failures"]["N"], "0", "{name}: {item:#}");
        assert_eq!(entity.connection("sim-basic").await.expect("kept")["lastErrorCode"], Value::Null, "{name}");
    }
}

#[contract_test]
async fn an_answer_that_was_lost_costs_no_connection(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let table = suite.table();
    let visit = entity.link("sim-basic", Choice::leading_to("refresh-lost-once")).await;
    for count in 1..=3 {
        make_due(&table, &entity, "sim-basic").await;
        refreshes(&suite, &visit.account, count).await;
        until_recorded(&table, &entity, "sim-basic").await;
    }
    let outcomes = suite.providers().of_account(Kind::Refresh, &visit.account);
    assert_eq!(outcomes, [RequestOutcome::Failed, RequestOutcome::Done, RequestOutcome::Done]);
    assert_eq!(entity.connection("sim-basic").await.expect("kept")["status"], "connected");
}

#[contract_test]
async fn a_broken_connection_is_mended_by_connecting_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let table = suite.table();
    let broken = entity.link("sim-basic", Choice::leading_to("refresh-invalid_grant")).await;
    make_due(&table, &entity, "sim-basic").await;
    until_listed(&entity, "sim-basic", "it is broken", |connection| connection["status"] == "broken").await;
    let again = entity.authorization_url("sim-basic").await;
    let visit = entity.visit_from(&again, &broken.account, Choice::ALLOW).await;
    visit.arrive("connected").await;
    assert_eq!(entity.connection("sim-basic").await.expect("there")["status"], "connected");
    make_due(&table, &entity, "sim-basic").await;
    assert_eq!(refreshes(&suite, &visit.account, 2).await.last(), Some(&RequestOutcome::Done));
}

#[contract_test]
async fn a_row_that_was_copied_to_another_entity_is_of_no_use(suite: Arc<Suite>) {
    let owner = suite.entity().await;
    let thief = suite.entity().await;
    let table = suite.table();
    let visit = owner.link("sim-basic", Choice::ALLOW).await;
    let (pk, sk) = key(&owner, "sim-basic");
    let row = table.item(&pk, &sk).await.expect("it is there");
    // Test copies with and without the original owner.
    for said in [&thief.id, &owner.id] {
        let mut copy = row.clone();
        copy["pk"]["S"] = key(&thief, "sim-basic").0.into();
        copy["ownerIdentifier"]["S"] = said.as_str().into();
        copy["dueAt"]["S"] = PAST.into();
        table.put(copy).await;

        let item = until_recorded(&table, &thief, "sim-basic").await;
        assert_ne!(item["failures"]["N"], "0", "the refresh of a copy failed: {item:#}");
        // The copy can be removed, but no request is sent to the provider.
        let answer = thief.disconnect("sim-basic").expect(200).await.json();
        assert_eq!(answer["providerAccess"], "not-revoked", "{answer:#}");
    }
    for kind in [Kind::Refresh, Kind::Revocation] {
        assert_eq!(suite.providers().of_account(kind, &visit.account), [], "a copy was used at the provider");
    }

    make_due(&table, &owner, "sim-basic").await;
    assert_eq!(refreshes(&suite, &visit.account, 1).await, [RequestOutcome::Done]);
    assert_eq!(owner.connection("sim-basic").await.expect("kept")["status"], "connected");
}

/// The providers that accept a repeated refresh if the response was lost.
const FORGIVING: [&str; 5] = ["sim-basic", "sim-json", "sim-jwt", "sim-pkce", "square"];

#[contract_test]
async fn two_hundred_refreshes_at_once_survive_the_end_of_the_refresher(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let table = Table::of(&api.env);
    let mut linking = Vec::new();
    for number in 0..40 {
        let entity = Entity::new(&api, format!("many-{number}")).await;
        linking.push(tokio::spawn(async move {
            let mut accounts = Vec::new();
            for provider in FORGIVING {
                accounts.push(entity.link(provider, Choice::ALLOW).await.account);
            }
            (entity, accounts)
        }));
    }
    let mut entities = Vec::new();
    let mut accounts = Vec::new();
    for linked in linking {
        let (entity, of_entity) = linked.await.expect("it did not panic");
        entities.push(entity);
        accounts.extend(of_entity);
    }
    assert_eq!(accounts.len(), 200);

    let becoming_due: Vec<_> = entities
        .iter()
        .map(|entity| {
            let table = table.clone();
            let entity = entity.clone();
            tokio::spawn(async move {
                for provider in FORGIVING {
                    let (pk, sk) = key(&entity, provider);
                    assert!(table.set(&pk, &sk, "dueAt", PAST).await, "no function holds a new connection");
                }
            })
        })
        .collect();
    for due in becoming_due {
        due.await.expect("it did not panic");
    }
    // Make two calls in addition to the schedule's; they may die with the process.
    let refreshers = [invoke(&api), invoke(&api)].map(tokio::spawn);
    let refreshed = |account: &String| suite.providers().of_account(Kind::Refresh, account).len();
    until("some are refreshed", LONG, async || {
        (accounts.iter().filter(|account| refreshed(account) > 0).count() >= 20).then_some(())
    })
    .await;
    kill_refreshers(&bundle).await;
    // Refreshes that hold a lease may have been in progress when their function died.
    let held: BTreeSet<String> = table
        .scan()
        .await
        .iter()
        .filter(|item| !item["lease"].is_null())
        .filter_map(|item| Some(item["account"]["S"].as_str()?.to_owned()))
        .collect();
    let before = accounts.iter().filter(|account| refreshed(account) > 0).count();
    for refresher in refreshers {
        // The outcome of the call does not matter.
        refresher.await.expect("it did not panic");
    }

    until("every connection is refreshed", LONG, async || {
        let items = table.scan().await;
        let waiting = items.iter().filter(|item| item["sk"]["S"].as_str().is_some_and(|sk| sk.starts_with("PAY#")));
        let mut waiting = waiting.filter(|item| !item["lease"].is_null() || item["dueAt"]["S"] == PAST);
        waiting.next().is_none().then_some(())
    })
    .await;
    for entity in &entities {
        let connections = entity.connections().await;
        assert_eq!(connections.len(), FORGIVING.len());
        assert!(connections.iter().all(|connection| connection["status"] == "connected"), "{connections:#?}");
    }
    let outcomes = |account: &String| suite.providers().of_account(Kind::Refresh, account);
    let refused: Vec<_> = accounts
        .iter()
        .filter(|account| outcomes(account).iter().any(|outcome| *outcome != RequestOutcome::Done))
        .collect();
    assert!(
        refused.is_empty(),
        "the provider refused: {:#?}",
        refused.iter().map(|account| outcomes(account)).collect::<Vec<_>>()
    );
    let never: Vec<_> = accounts.iter().filter(|account| refreshed(account) == 0).collect();
    assert!(never.is_empty(), "never refreshed: {never:?}");
    let twice: Vec<_> = accounts.iter().filter(|account| refreshed(account) > 1).collect();
    assert!(twice.iter().all(|account| held.contains(*account)), "refreshed twice: {twice:?}, held: {held:?}");
    println!("200 refreshes, killed after {before}: {} were under way and repeated", twice.len());
    assert!(bundle.stop().await.success());
}

/// Invokes the refresher as the schedule does; returns whether the invocation succeeded.
fn invoke(api: &Api) -> impl Future<Output = bool> + Send + 'static {
    let event = fs::read_to_string(project().join("events/refresh-connections.json"))
        .expect("the refresher has a sample event");
    let request = invocation(&api.env, "refresh-connections", event);
    async move { request.send().await.is_ok_and(|answer| answer.status() == 200) }
}

async fn kill_refreshers(bundle: &Bundle) {
    bundle.process("refresh-connections").await;
    for process in bundle.processes() {
        if process.is("refresh-connections") {
            process.kill();
        }
    }
}
