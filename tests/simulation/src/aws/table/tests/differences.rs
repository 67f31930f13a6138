//! Requests that DynamoDB refuses but dynoxide accepts. The service sends no such requests; the simulated table refuses
//! them, so that a test fails if it ever does.

use serde_json::{Value, json};

use super::{
    both::{Both, with},
    request, statement,
};

fn refused_apart(operation: &str, request: &Value) {
    let both = &mut Both::new();
    let members = json!({ "Item": { "pk": "A", "sk": "HEAD", "n": 1, "entityKey": "ENT#1", "createdKey": "T1" } });
    both.answer("PutItem", &super::request(members));
    assert_eq!(both.answer_apart(operation, request)["error"], "ValidationException");
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html>: "You cannot use UpdateItem to
/// update any primary key attributes." This rule also applies to an update within a transaction.
#[test]
fn a_transaction_may_not_change_a_key() {
    let members = json!({ "Key": { "pk": "A", "sk": "HEAD" }, "UpdateExpression": "SET #n0 = :v0" });
    let part = json!({ "Update": with(members, &["pk"], json!(["x"])) });
    refused_apart("TransactWriteItems", &json!({ "TransactItems": [part] }));
}

/// Only strings, numbers and binary values can be ordered.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html>
#[test]
fn a_comparison_may_not_order_flags() {
    let members = json!({ "Key": { "pk": "A", "sk": "HEAD" }, "ConditionExpression": "#n0 < :v0" });
    refused_apart("DeleteItem", &with(members, &["n"], json!([true])));
}

/// DynamoDB checks filters like conditions, for which dynoxide refuses this as well.
#[test]
fn a_filter_may_not_have_bounds_in_the_wrong_order() {
    refused_apart("Scan", &with(json!({ "FilterExpression": "#n0 BETWEEN :v0 AND :v1" }), &["n"], json!([2, 1])));
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html>: "Global secondary index queries cannot
/// fetch attributes from the parent table."
#[test]
fn a_query_of_an_index_may_not_request_other_attributes() {
    let members = json!({
        "IndexName": "byOwner", "KeyConditionExpression": "#n0 = :v0", "ProjectionExpression": "#n1",
    });
    refused_apart("Query", &with(members, &["entityKey", "n"], json!(["ENT#1"])));
}

/// A key cannot be an empty string.
#[test]
fn a_query_may_not_have_an_empty_partition() {
    refused_apart("Query", &with(json!({ "KeyConditionExpression": "#n0 = :v0" }), &["pk"], json!([""])));
}

/// Both tables end a page before the item that exceeds a megabyte, but dynoxide counts that item as read.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Other.html>: without a filter, the number of
/// items read is the number of items found.
#[test]
fn a_page_ends_before_the_item_that_exceeds_a_megabyte() {
    let both = &mut Both::new();
    for (n, size) in [390, 200, 1, 350, 399, 399, 300, 50].into_iter().enumerate() {
        let members = json!({ "pk": "A", "sk": n.to_string(), "text": "x".repeat(size * 1000) });
        both.answer("PutItem", &request(json!({ "Item": members })));
    }
    let mut query = with(json!({ "KeyConditionExpression": "#n0 = :v0" }), &["pk"], json!(["A"]));
    for (count, end) in [(4, "3"), (2, "5")] {
        let page = both.answer_apart("Query", &query);
        assert_eq!([&page["Count"], &page["ScannedCount"]], [count, count]);
        query["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
        assert_eq!(query["ExclusiveStartKey"]["sk"]["S"], end);
    }
    assert_eq!(both.answer("Query", &query)["Count"], 2);
}

/// In a batch, only the statement with too many parameters gets an error.
#[test]
fn a_statement_may_not_have_unused_parameters() {
    let both = &mut Both::new();
    both.answer("PutItem", &request(json!({ "Item": { "pk": "A", "sk": "HEAD", "n": 1 } })));
    let text = "UPDATE \"waypost-local\" SET \"a\"=? WHERE \"pk\"=? AND \"sk\"=? AND \"n\" = ?";
    let batch = json!({ "Statements": [statement(text, json!([1, "A", "HEAD", 1, 1]))] });
    let answer = both.answer_apart("BatchExecuteStatement", &batch);
    assert_eq!(answer["Responses"][0]["Error"]["Code"], "ValidationError");
}
