//! Transactions and batches of statements.

use serde_json::{Value, json};

use super::{Given, item, key, request, statement, table};

fn put(pk: &str, n: u32) -> Value {
    let members = json!({
        "Item": { "pk": pk, "sk": "HEAD", "n": n }, "ConditionExpression": "attribute_not_exists(#n0)",
        "ExpressionAttributeNames": { "#n0": "pk" },
    });
    json!({ "Put": request(members) })
}

fn codes(body: &Value) -> Vec<&str> {
    let reasons = body["CancellationReasons"].as_array().expect("reasons");
    reasons.iter().map(|reason| reason["Code"].as_str().expect("a code")).collect()
}

#[test]
fn a_transaction_writes_all_or_nothing_and_says_why() {
    let mut table = table();
    let write = |pks: &[&str]| json!({ "TransactItems": pks.iter().map(|pk| put(pk, 1)).collect::<Vec<_>>() });
    table.call("TransactWriteItems", &write(&["A"]), 1, &mut Given::default()).expect("written");
    let mut attempt = |mut given: Given| {
        let refusal = table.call("TransactWriteItems", &write(&["B", "A"]), 2, &mut given).expect_err("cancelled");
        assert_eq!(refusal.body["__type"], "com.amazonaws.dynamodb.v20120810#TransactionCanceledException");
        codes(&refusal.body).join(" ")
    };
    assert_eq!(attempt(Given::default()), "None ConditionalCheckFailed");
    assert_eq!(attempt(Given { throttled: Some(("A", None)), ..Given::default() }), "None ThrottlingError");
    assert_eq!(attempt(Given { conflict: Some("A"), ..Given::default() }), "TransactionConflict None");
    assert_eq!(table.items().count(), 1);
}

#[test]
fn a_repeated_transaction_with_its_token_is_carried_out_once() {
    let mut table = table();
    let write = |pk: &str| json!({ "TransactItems": [put(pk, 1)], "ClientRequestToken": "t" });
    let mut given = Given::default();
    table.call("TransactWriteItems", &write("A"), 0, &mut given).expect("written");
    table.call("TransactWriteItems", &write("A"), 599_999, &mut given).expect("known");
    let other = table.call("TransactWriteItems", &write("B"), 599_999, &mut given).expect_err("another one");
    assert_eq!(other.body["__type"], "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException");
    let forgotten = table.call("TransactWriteItems", &write("A"), 600_000, &mut given).expect_err("carried out");
    assert_eq!(codes(&forgotten.body), ["ConditionalCheckFailed"]);
    assert_eq!(table.versions().len(), 1);
}

#[test]
fn each_statement_has_its_own_outcome() {
    let mut table = table();
    let insert = "INSERT INTO \"T\" VALUE {'pk': ?, 'sk': ?, 'n': ?}";
    let update = "UPDATE \"T\" SET \"n\"=? WHERE \"pk\"=? AND \"sk\"=? AND \"n\" < ?";
    let batch = json!({ "Statements": [statement(insert, json!(["A", "HEAD", 1])), statement(insert, json!(["C", "HEAD", 1]))] });
    let answer = table.call("BatchExecuteStatement", &batch, 1, &mut Given::default()).expect("an answer");
    assert_eq!(answer, json!({ "Responses": [{ "TableName": "T" }, { "TableName": "T" }] }));

    let returning = format!("{update} RETURNING ALL NEW *");
    let mut asking = statement(update, json!([5, "C", "HEAD", 1]));
    asking["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
    let batch = json!({ "Statements": [
        statement(&returning, json!([2, "A", "HEAD", 2])),
        statement(update, json!([2, "B", "HEAD", 2])),
        asking,
        statement(insert, json!(["D", "HEAD", 1])),
        statement(insert, json!(["E", "HEAD", 1])),
        statement("SELECT * FROM \"T\"", json!([])),
    ] });
    let mut given = Given { throttled: Some(("D", None)), conflict: Some("E"), ..Given::default() };
    let answer = table.call("BatchExecuteStatement", &batch, 2, &mut given).expect("an answer");
    let responses = answer["Responses"].as_array().expect("responses");
    assert_eq!(responses[0]["Item"], item(json!({ "pk": "A", "sk": "HEAD", "n": 2 })));
    let codes: Vec<_> = responses[1..].iter().map(|response| &response["Error"]["Code"]).collect();
    let lost = "ConditionalCheckFailed";
    assert_eq!(codes, [lost, lost, "ThrottlingError", "TransactionConflict", "ValidationError"]);
    assert_eq!(responses[2]["Error"]["Item"], item(json!({ "pk": "C", "sk": "HEAD", "n": 1 })));
    assert_eq!(table.item(&key("A", "HEAD")).map(|item| &item["n"]["N"]), Some(&json!("2")));
}

/// DynamoDB would act on any of these members.
#[test]
fn unknown_parts_of_requests_are_refused_by_name() {
    let key = json!({ "pk": "A", "sk": "HEAD" });
    let values = json!({ ":a": 1 });
    for (operation, members, name) in [
        ("GetItem", json!({ "Key": key, "AttributesToGet": ["n"] }), "AttributesToGet"),
        ("PutItem", json!({ "Item": key, "ReturnValues": "UPDATED_NEW" }), "UPDATED_NEW"),
        ("PutItem", json!({ "Item": { "pk": "A", "sk": "HEAD", "s": { "SS": ["a"] } }, "Expected": {} }), "Expected"),
        (
            "UpdateItem",
            json!({ "Key": key, "UpdateExpression": "SET a = a + :a", "ExpressionAttributeValues": values }),
            "value: before",
        ),
        (
            "UpdateItem",
            json!({ "Key": key, "UpdateExpression": "DELETE a :a", "ExpressionAttributeValues": values }),
            "clause of an update",
        ),
        (
            "DeleteItem",
            json!({ "Key": key, "ConditionExpression": "contains(a, :a)", "ExpressionAttributeValues": values }),
            "comparison or function",
        ),
        (
            "DeleteItem",
            json!({ "Key": key, "ConditionExpression": "a <> :a", "ExpressionAttributeValues": values }),
            "comparison or function",
        ),
        (
            "DeleteItem",
            json!({ "Key": key, "ConditionExpression": "a = :a", "ExpressionAttributeValues": { ":a": 1, ":b": 1 } }),
            ":b",
        ),
        (
            "Query",
            json!({ "KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": { ":a": "A" }, "Select": "ALL_ATTRIBUTES" }),
            "ALL_ATTRIBUTES",
        ),
        ("Scan", json!({ "Segment": 1 }), "Segment"),
    ] {
        let refusal = table().call(operation, &request(members), 1, &mut Given::default()).expect_err("refused");
        assert_eq!(refusal.body["__type"], "com.amazonaws.dynamodb.v20120810#ValidationException");
        assert!(refusal.body["message"].as_str().expect("a message").contains(name), "{refusal:?}");
    }
    let other = table().call("BatchWriteItem", &json!({}), 1, &mut Given::default()).expect_err("refused");
    assert_eq!(other.body["__type"], "com.amazon.coral.service#UnknownOperationException");
}
