//! A measurement, run by `cargo test speed -- --ignored --nocapture`.

use std::time::Instant;

use serde_json::json;

use super::{Given, request, table};

#[test]
#[ignore = "a measurement"]
fn speed_of_calls() {
    const CALLS: u32 = 100_000;
    let mut table = table();
    let mut given = Given { replica_lag: 20, index_lag: 50, ..Given::default() };
    for n in 0..1_000 {
        let members = json!({
            "pk": format!("DLV#{n}"), "sk": "HEAD", "status": "pending", "attemptCount": 1, "dueShard": "DUE#1",
            "dueAt": "2026-11-25T10:00:00Z", "entityKey": "ENT#1", "createdKey": "2026-11-25T10:00:00Z#1",
            "webhookIdentifier": "a-webhook", "type": "order.created", "webhook": { "url": "https://example.org", "version": 3 },
        });
        table.call("PutItem", &request(json!({ "Item": members })), 1, &mut given).expect("put");
    }
    let key = json!({ "pk": "DLV#500", "sk": "HEAD" });
    let get = request(json!({ "Key": key, "ConsistentRead": false }));
    let update = request(json!({
        "Key": key, "UpdateExpression": "SET #n0 = :v0, #n1 = if_not_exists(#n1, :v1) ADD #n2 :v2 REMOVE #n3",
        "ConditionExpression": "attribute_exists(#n4) AND (attribute_not_exists(#n3) OR #n3 <= :v3)",
        "ExpressionAttributeNames": { "#n0": "status", "#n1": "since", "#n2": "attemptCount", "#n3": "resumeAt", "#n4": "pk" },
        "ExpressionAttributeValues": { ":v0": "retrying", ":v1": 1, ":v2": 1, ":v3": 5 },
        "ReturnValues": "ALL_NEW",
    }));
    let batch = request(json!({
        "IndexName": "byDue", "KeyConditionExpression": "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2", "Limit": 10,
        "ExpressionAttributeNames": { "#n0": "dueShard", "#n1": "dueAt" },
        "ExpressionAttributeValues": { ":v0": "DUE#1", ":v1": "0", ":v2": "3" },
    }));
    for (operation, request) in [("GetItem", get), ("UpdateItem", update), ("Query", batch)] {
        let started = Instant::now();
        for n in 0..CALLS {
            table.call(operation, &request, 1_000 + 100 * u64::from(n), &mut given).expect("an answer");
        }
        println!("{operation}: {} ns", started.elapsed().as_nanos() / u128::from(CALLS));
    }
}
