//! The caller's choices: throttling, conflicts, delays and incomplete responses.

use serde_json::{Value, json};

use super::{
    super::{Refusal, Table},
    Given, item, key, request, table,
};

fn call(table: &mut Table, operation: &str, members: Value, now: u64, given: &mut Given) -> Result<Value, Refusal> {
    table.call(operation, &request(members), now, given)
}

fn kind(outcome: Result<Value, Refusal>) -> String {
    let refusal = outcome.expect_err("refused");
    assert_eq!(refusal.status, 400);
    refusal.body["__type"].as_str().and_then(|kind| kind.split_once('#')).expect("a kind").1.to_owned()
}

fn put(table: &mut Table, members: Value, now: u64, given: &mut Given) {
    call(table, "PutItem", json!({ "Item": members }), now, given).expect("put");
}

fn get(table: &mut Table, pk: &str, consistent: bool, now: u64) -> Option<i64> {
    let members = json!({ "Key": { "pk": pk, "sk": "HEAD" }, "ConsistentRead": consistent });
    let found = call(table, "GetItem", members, now, &mut Given::default()).expect("an answer");
    found["Item"]["n"]["N"].as_str().map(|number| number.parse().expect("a number"))
}

fn due(now: u64, given: &mut Given, table: &mut Table) -> Value {
    let members = json!({
        "IndexName": "byDue", "KeyConditionExpression": "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2",
        "ExpressionAttributeNames": { "#n0": "dueShard", "#n1": "dueAt" },
        "ExpressionAttributeValues": { ":v0": "DUE#1", ":v1": "0", ":v2": "9" },
    });
    call(table, "Query", members, now, given).expect("a page")
}

#[test]
fn a_throttled_partition_takes_nothing_and_the_others_continue() {
    let mut table = table();
    let mut busy = Given { throttled: Some(("A", None)), ..Given::default() };
    let key_of = |pk: &str| json!({ "pk": pk, "sk": "HEAD" });
    for operation in ["GetItem", "DeleteItem", "UpdateItem"] {
        let outcome = call(&mut table, operation, json!({ "Key": key_of("A") }), 1, &mut busy);
        assert_eq!(kind(outcome), "ThrottlingException");
    }
    put(&mut table, key_of("B"), 1, &mut busy);
    let query = json!({ "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": { ":pk": "A" } });
    assert_eq!(kind(call(&mut table, "Query", query, 1, &mut busy)), "ThrottlingException");

    let batch = |keys: &[&str]| json!({ "RequestItems": { "T": { "Keys": keys.iter().map(|pk| item(key_of(pk))).collect::<Vec<_>>() } } });
    let found = table.call("BatchGetItem", &batch(&["A", "B"]), 1, &mut busy).expect("a part");
    assert_eq!(found["Responses"]["T"], json!([item(key_of("B"))]));
    assert_eq!(found["UnprocessedKeys"]["T"]["Keys"], json!([item(key_of("A"))]));
    assert_eq!(
        kind(table.call("BatchGetItem", &batch(&["A"]), 1, &mut busy)),
        "ProvisionedThroughputExceededException"
    );
    assert_eq!(table.versions().len(), 1);
}

#[test]
fn a_throttled_partition_of_an_index_throttles_its_readers_and_writers() {
    let mut table = table();
    let mut busy = Given { throttled: Some(("DUE#1", Some("byDue"))), ..Given::default() };
    let due = json!({ "pk": "A", "sk": "HEAD", "dueShard": "DUE#1", "dueAt": "5" });
    assert_eq!(kind(call(&mut table, "PutItem", json!({ "Item": due }), 1, &mut busy)), "ThrottlingException");
    let query = json!({
        "IndexName": "byDue", "KeyConditionExpression": "dueShard = :s", "ExpressionAttributeValues": { ":s": "DUE#1" },
    });
    assert_eq!(kind(call(&mut table, "Query", query, 1, &mut busy)), "ThrottlingException");
    put(&mut table, json!({ "pk": "A", "sk": "HEAD" }), 1, &mut busy);
}

#[test]
fn a_write_conflicts_with_a_transaction_in_progress() {
    let mut table = table();
    let mut taken = Given { conflict: Some("A"), ..Given::default() };
    let members = json!({ "Item": { "pk": "A", "sk": "HEAD" } });
    assert_eq!(kind(call(&mut table, "PutItem", members, 1, &mut taken)), "TransactionConflictException");
    assert!(table.items().next().is_none());
}

#[test]
fn an_eventually_consistent_read_sees_a_write_after_the_lag() {
    let mut table = table();
    let version = |n: u32| json!({ "pk": "A", "sk": "HEAD", "n": n });
    put(&mut table, version(1), 100, &mut Given { replica_lag: 50, ..Given::default() });
    assert_eq!((get(&mut table, "A", true, 100), get(&mut table, "A", false, 149)), (Some(1), None));
    put(&mut table, version(2), 149, &mut Given { replica_lag: 30, ..Given::default() });
    assert_eq!(get(&mut table, "A", false, 150), Some(1));
    // A later write does not overtake an earlier one.
    put(&mut table, version(3), 151, &mut Given::default());
    assert_eq!((get(&mut table, "A", true, 151), get(&mut table, "A", false, 178)), (Some(3), Some(1)));
    assert_eq!(get(&mut table, "A", false, 179), Some(3));
    assert_eq!(table.store.kept(), (1, 0), "older versions are dropped");
    let delete = json!({ "Key": { "pk": "A", "sk": "HEAD" } });
    call(&mut table, "DeleteItem", delete, 200, &mut Given { replica_lag: 5, ..Given::default() }).expect("removed");
    assert_eq!((get(&mut table, "A", true, 204), get(&mut table, "A", false, 204)), (None, Some(3)));
    assert_eq!((get(&mut table, "A", false, 205), table.store.kept()), (None, (0, 0)));
    let log: Vec<_> = table.versions().iter().map(|version| (version.at, version.item.is_some())).collect();
    assert_eq!(log, [(100, true), (149, true), (151, true), (200, false)]);
    table.forget_before(151);
    assert_eq!(table.versions().len(), 2);
}

#[test]
fn an_index_sees_a_write_after_the_lag() {
    let mut table = table();
    let slow = || Given { index_lag: 50, ..Given::default() };
    let version = |due: &str| json!({ "pk": "A", "sk": "HEAD", "dueShard": "DUE#1", "dueAt": due, "attemptCount": 1, "other": 1 });
    put(&mut table, version("5"), 100, &mut slow());
    assert_eq!(due(149, &mut Given::default(), &mut table)["Count"], 0);
    let entry = item(json!({ "pk": "A", "sk": "HEAD", "dueShard": "DUE#1", "dueAt": "5", "attemptCount": 1 }));
    assert_eq!(due(150, &mut Given::default(), &mut table)["Items"], json!([entry]));
    put(&mut table, version("7"), 160, &mut slow());
    assert_eq!(due(209, &mut Given::default(), &mut table)["Items"][0]["dueAt"]["S"], "5");
    assert_eq!(due(210, &mut Given::default(), &mut table)["Items"][0]["dueAt"]["S"], "7");
    put(&mut table, json!({ "pk": "A", "sk": "HEAD" }), 220, &mut slow());
    assert_eq!(due(269, &mut Given::default(), &mut table)["Count"], 1);
    assert_eq!(due(270, &mut Given::default(), &mut table)["Count"], 0);
    assert_eq!(table.store.kept(), (1, 0), "no entry of the index is kept for it");
}

#[test]
fn a_batch_leaves_items_out_and_a_page_ends_early() {
    let mut table = table();
    for n in 1..=4 {
        let members = json!({ "pk": format!("A{n}"), "sk": "HEAD", "dueShard": "DUE#1", "dueAt": n.to_string() });
        put(&mut table, members, 1, &mut Given::default());
    }
    let keys: Vec<_> = (1..=4).map(|n| item(json!({ "pk": format!("A{n}"), "sk": "HEAD" }))).collect();
    let batch = json!({ "RequestItems": { "T": { "Keys": keys, "ConsistentRead": true } } });
    let mut given = Given { left_out: vec![0, 2], ..Given::default() };
    let found = table.call("BatchGetItem", &batch, 1, &mut given).expect("a part");
    assert_eq!(found["Responses"]["T"].as_array().map(Vec::len), Some(2));
    let rest = json!({ "T": { "Keys": [keys[0], keys[2]], "ConsistentRead": true } });
    assert_eq!(found["UnprocessedKeys"], rest);

    let page = due(1, &mut Given { left_out: vec![1], ..Given::default() }, &mut table);
    assert_eq!(page["Count"], 2);
    let end = item(json!({ "pk": "A2", "sk": "HEAD", "dueShard": "DUE#1", "dueAt": "2" }));
    assert_eq!(page["LastEvaluatedKey"], end);
}

#[test]
fn a_lost_condition_returns_the_item_if_asked() {
    let mut table = table();
    put(&mut table, json!({ "pk": "A", "sk": "HEAD", "n": 1 }), 1, &mut Given::default());
    let attempt = |returns: &str, pk: &str| {
        json!({
            "Key": { "pk": pk, "sk": "HEAD" }, "UpdateExpression": "SET #n0 = :v0", "ConditionExpression": "#n0 > :v1",
            "ExpressionAttributeNames": { "#n0": "n" }, "ExpressionAttributeValues": { ":v0": 5, ":v1": 1 },
            "ReturnValuesOnConditionCheckFailure": returns,
        })
    };
    for (returns, pk, found) in [
        ("ALL_OLD", "A", item(json!({ "pk": "A", "sk": "HEAD", "n": 1 }))),
        ("ALL_OLD", "B", Value::Null),
        ("NONE", "A", Value::Null),
    ] {
        let lost = call(&mut table, "UpdateItem", attempt(returns, pk), 2, &mut Given::default()).expect_err("lost");
        assert_eq!(lost.body["__type"], "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException");
        assert_eq!(lost.body["Item"], found);
    }
}

#[test]
fn expired_items_are_removed_late() {
    let mut table = table();
    put(&mut table, json!({ "pk": "A", "sk": "HEAD", "expiresAt": 10 }), 1, &mut Given::default());
    put(&mut table, json!({ "pk": "B", "sk": "HEAD" }), 1, &mut Given::default());
    table.remove_expired(15_000, 5_000);
    assert!(table.item(&key("A", "HEAD")).is_some());
    table.remove_expired(15_001, 5_000);
    assert_eq!((table.item(&key("A", "HEAD")), table.items().count()), (None, 1));
}
