//! The labels of requests.

use serde_json::{Value, json};

use super::{super::Table, item, key, request, statement};

fn label(operation: &str, members: Value) -> String {
    Table::touched(operation, &members).0
}

#[test]
fn a_label_names_the_kinds_of_items_that_a_request_touches() {
    let head = || json!({ "pk": "DLV#1", "sk": "HEAD" });
    assert_eq!(label("GetItem", request(json!({ "Key": head() }))), "GetItem DLV/HEAD");
    let put = json!({ "Put": request(json!({ "Item": { "pk": "ATT#1", "sk": "1" } })) });
    let update = json!({ "Update": request(json!({ "Key": head() })) });
    let transaction = json!({ "TransactItems": [put, update] });
    assert_eq!(label("TransactWriteItems", transaction.clone()), "TransactWriteItems PUT ATT+UPDATE DLV/HEAD");
    assert_eq!(Table::touched("TransactWriteItems", &transaction).1, [key("ATT#1", "1"), key("DLV#1", "HEAD")]);

    let text = "UPDATE \"T\" SET \"n\"=? WHERE \"pk\"=? AND \"sk\"=? AND \"n\" = ?";
    let updates = [1, 2].map(|n| statement(text, json!([1, format!("DLV#{n}"), "HEAD", 1])));
    assert_eq!(
        label("BatchExecuteStatement", json!({ "Statements": updates })),
        "BatchExecuteStatement UPDATE DLV/HEAD"
    );
    let keys = [item(json!({ "pk": "WHK#1", "sk": "A#1" })), item(head())];
    let batch = json!({ "RequestItems": { "T": { "Keys": keys } } });
    assert_eq!(label("BatchGetItem", batch), "BatchGetItem DLV/HEAD+WHK/A");
}

#[test]
fn the_label_of_a_query_names_its_partition_and_the_kind_of_its_range() {
    let values = |pk: &str, sk: &str| json!({ ":a": pk, ":b": sk });
    let table = request(json!({
        "KeyConditionExpression": "pk = :a AND begins_with(sk, :b)", "ExpressionAttributeValues": values("OWN#1", "WHK#"),
    }));
    assert_eq!(label("Query", table), "Query OWN/WHK");
    let index = request(json!({
        "IndexName": "byDue", "KeyConditionExpression": "#n0 = :a AND #n1 >= :b",
        "ExpressionAttributeNames": { "#n0": "dueShard", "#n1": "dueAt" }, "ExpressionAttributeValues": values("DUE#3", "2"),
    }));
    assert_eq!(Table::touched("Query", &index), ("Query byDue DUE".to_owned(), vec![key("DUE#3", "")]));
    assert_eq!(label("Scan", json!({ "TableName": "T" })), "Scan");
}
