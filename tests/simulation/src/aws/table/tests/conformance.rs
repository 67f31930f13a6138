//! The same requests to the simulated table and to dynoxide, whose responses have been checked against DynamoDB.

use serde_json::{Value, json};

use super::{
    both::{Both, with},
    item, request, statement,
};

fn put(both: &mut Both, members: Value) {
    assert_eq!(both.answer("PutItem", &request(json!({ "Item": members }))), json!({}));
}

fn head() -> Value {
    json!({ "pk": "W#1", "sk": "HEAD" })
}

fn change(update: &str, names: &[&str], values: Value) -> Value {
    with(json!({ "Key": head(), "UpdateExpression": update, "ReturnValues": "ALL_NEW" }), names, values)
}

fn conditional(condition: &str, names: &[&str], values: Value) -> Value {
    let members = json!({
        "Item": { "pk": "W#1", "sk": "HEAD", "version": 3, "n": 2 }, "ConditionExpression": condition,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    with(members, names, values)
}

#[test]
fn updates_have_the_same_outcome() {
    let both = &mut Both::new();
    let all = "SET #n0 = :v0, #n1 = if_not_exists(#n1, :v1) ADD #n2 :v2 REMOVE #n3";
    let names = ["status", "since", "count", "lease"];
    for n in [1, 2, 3] {
        both.answer("UpdateItem", &change(all, &names, json!(["open", n, n])));
    }
    let nested = ["lastUsed", "key.1"];
    for (update, names, values) in [
        ("SET #n0.#n1 = :v0", &nested[..], json!(["2026-11-20"])),
        ("REMOVE #n0.#n1", &nested, json!([])),
        ("SET #n0 = :v0", &nested[..1], json!([{ "other": 1 }])),
        ("SET #n0.#n1 = :v0", &nested, json!(["2026-11-20"])),
        ("SET #n0.#n1 = if_not_exists(#n0.#n1, :v0)", &nested, json!(["x"])),
        ("ADD #n0.#n1 :v0", &nested, json!([1])),
        ("SET #n0.#n1 = :v0", &["count", "x"], json!(["2026-11-20"])),
        ("REMOVE #n0.#n1", &nested, json!([])),
        ("REMOVE #n0.#n1", &nested, json!([])),
        ("ADD #n0 :v0", &["count"], json!([-100])),
        ("ADD #n0 :v0", &["count"], json!([0.125])),
        ("ADD #n0 :v0", &["status"], json!([1])),
        ("ADD #n0 :v0", &["status"], json!(["x"])),
        ("SET #n0 = :v0", &["list"], json!([[{ "sealed": "x" }, { "sealed": "y" }, 3]])),
        ("SET #n0[1].#n1 = :v0", &["list", "sealed"], json!(["z"])),
        ("SET #n0[7].#n1 = :v0", &["list", "sealed"], json!(["z"])),
        ("SET #n0[7] = :v0", &["list"], json!(["z"])),
        ("REMOVE #n0[0], #n0[2]", &["list"], json!([])),
        ("REMOVE #n0[9]", &["list"], json!([])),
        ("SET #n0 = :v0, #n0 = :v0", &["list"], json!([1])),
        ("SET #n0 = :v0 REMOVE #n0.#n1", &nested, json!([1])),
        ("SET #n0 = :v0", &["pk"], json!(["x"])),
        ("SET #n0 = :v0, #n1 = :v1", &["a", "b"], json!([null, true])),
        ("SET #n0 = :v0", &["dueShard"], json!([5])),
        ("SET #n0 = :v0", &["dueShard"], json!([""])),
        ("SET #n0 = :v0", &["dueShard"], json!([null])),
        ("SET #n0 = :v0, #n1 = :v1", &["dueShard", "dueAt"], json!(["DUE#1", "5"])),
        ("REMOVE #n0", &["dueShard"], json!([])),
        ("SET #n0 = :v0", &["a"], json!([1, 2])),
        ("SET #n0 = :v0", &["a", "unused"], json!([1])),
        ("SET #n0 = :v0", &["a"], json!([1e3])),
        ("SET #n0 = :v0", &["a"], json!([1.50])),
        ("SET #n0 = :v0 SET #n0 = :v0", &["a"], json!([1])),
        ("", &[], json!([])),
    ] {
        both.answer("UpdateItem", &change(update, names, values));
        both.compare();
    }
    both.answer("UpdateItem", &request(json!({ "Key": { "pk": "NEW", "sk": "HEAD" } })));
    both.answer("UpdateItem", &request(json!({ "Key": { "pk": "NEW" } })));
    both.answer("UpdateItem", &request(json!({ "Key": { "pk": "", "sk": "HEAD" } })));
    both.compare();
}

#[test]
fn conditions_have_the_same_outcome() {
    let both = &mut Both::new();
    both.answer("PutItem", &conditional("attribute_exists(#n0)", &["pk"], json!([])));
    both.answer("PutItem", &conditional("attribute_not_exists(#n0)", &["pk"], json!([])));
    let secrets = json!([{ "sealed": "w" }, { "sealed": "x" }]);
    let members = json!({
        "pk": "W#1", "sk": "HEAD", "version": 10, "text": "10", "flag": true, "none": null, "secrets": secrets, "map": { "n": 1.0 },
    });
    for (condition, names, values) in [
        ("attribute_not_exists(#n0)", &["pk"][..], json!([])),
        ("attribute_not_exists(#n0)", &["none"], json!([])),
        (
            "attribute_exists(#n0) AND (attribute_not_exists(#n1) OR #n1 <= :v0) AND #n2 = :v1",
            &["pk", "until", "version"],
            json!([5, 10]),
        ),
        ("attribute_not_exists(#n0) OR #n0 <= :v0", &["version"], json!([9])),
        (
            "(begins_with(#n0, :v0) OR begins_with(#n0, :v1)) AND (#n1[1].#n2 = :v2 AND #n3 > :v3)",
            &["sk", "secrets", "sealed", "version"],
            json!(["HE", "PAY#", "x", 9]),
        ),
        ("#n0 > :v0", &["version"], json!([9])),
        ("#n0 > :v0", &["version"], json!([9.99])),
        ("#n0 < :v0", &["version"], json!([1e2])),
        ("#n0 > :v0", &["version"], json!(["9"])),
        ("#n0 > :v0", &["text"], json!(["9"])),
        ("#n0 = :v0", &["version"], json!(["10"])),
        ("#n0 = :v0", &["none"], json!([null])),
        ("#n0 = :v0", &["flag"], json!([false])),
        ("#n0 = :v0", &["map"], json!([{ "n": 1 }])),
        ("#n0 = :v0", &["secrets"], json!([[{ "sealed": "w" }, { "sealed": "x" }]])),
        ("#n0 >= :v0", &["missing"], json!([1])),
        ("begins_with(#n0, :v0)", &["version"], json!(["1"])),
        ("begins_with(#n0, :v0)", &["text"], json!([1])),
        ("begins_with(#n0, :v0)", &["text"], json!([""])),
        ("#n0 BETWEEN :v0 AND :v1", &["version"], json!([10, 11])),
        ("attribute_exists(#n0) AND attribute_exists(#n1) OR attribute_exists(#n1)", &["x", "pk"], json!([])),
        ("(#n0 = :v0", &["version"], json!([10])),
    ] {
        put(both, members.clone());
        both.answer("PutItem", &conditional(condition, names, values.clone()));
        let scan = json!({ "ConsistentRead": true, "FilterExpression": condition });
        both.answer("Scan", &with(scan, names, values.clone()));
        let delete = json!({ "Key": head(), "ConditionExpression": condition, "ReturnValues": "ALL_OLD" });
        both.answer("DeleteItem", &with(delete, names, values));
        both.compare();
    }
}

fn fill(both: &mut Both) {
    for n in 0..8 {
        put(
            both,
            json!({
                "pk": "A", "sk": format!("K#{n}"), "until": n, "entityKey": "ENT#1", "createdKey": format!("T{}", n / 2),
                "listedStatus": if n % 2 == 0 { "open" } else { "done" }, "hidden": n,
            }),
        );
    }
    put(both, json!({ "pk": "A", "sk": "K", "createdKey": "T9" }));
    put(both, json!({ "pk": "A", "sk": "L#1", "entityKey": "ENT#1" }));
    put(both, json!({ "pk": "B", "sk": "K#1" }));
}

#[test]
fn queries_have_the_same_pages() {
    let both = &mut Both::new();
    fill(both);
    let index = json!({ "IndexName": "byOwner" });
    let table = json!({ "ConsistentRead": true });
    let owner = ["entityKey", "createdKey", "listedStatus"];
    let own = ["pk", "sk", "until"];
    for (base, names, values, from) in [(&index, owner, "ENT#1", "T1"), (&table, own, "A", "K#2")] {
        for (range, last) in [
            ("", &[][..]),
            (" AND #n1 BETWEEN :v1 AND :v2", &["K#5", "T3"]),
            (" AND #n1 BETWEEN :v1 AND :v2", &["A", "A"]),
            (" AND #n1 >= :v1", &[]),
            (" AND #n1 > :v1", &[]),
            (" AND #n1 <= :v1", &[]),
            (" AND #n1 < :v1", &[]),
            (" AND #n1 = :v1", &[]),
            (" AND begins_with(#n1, :v1)", &[]),
        ] {
            for forward in [true, false] {
                for limit in [1, 3, 4, 50] {
                    let mut members = base.clone();
                    members["KeyConditionExpression"] = json!(format!("#n0 = :v0{range}"));
                    members["ScanIndexForward"] = json!(forward);
                    members["Limit"] = json!(limit);
                    let taken = if range.is_empty() { 1 } else { 2 };
                    let bounds: Vec<_> =
                        [values, from].into_iter().take(taken).chain(last.iter().take(1).copied()).collect();
                    pages(both, &with(members, &names[..taken], json!(bounds)));
                }
            }
        }
    }
}

/// Reads all pages, and their counts.
fn pages(both: &mut Both, query: &Value) {
    let mut query = query.clone();
    for _ in 0..20 {
        let page = both.answer("Query", &query);
        let mut count = query.clone();
        count["Select"] = json!("COUNT");
        both.answer("Query", &count);
        match page.get("LastEvaluatedKey") {
            Some(end) => query["ExclusiveStartKey"] = end.clone(),
            None => return,
        }
    }
    panic!("no end of {query}");
}

#[test]
fn queries_filter_and_project_and_check_their_positions_alike() {
    let both = &mut Both::new();
    fill(both);
    let partition = |filter: &str, more: Value, names: &[&str], values: Value| {
        let mut members = json!({ "KeyConditionExpression": "#n0 = :v0" });
        if !filter.is_empty() {
            members["FilterExpression"] = json!(filter);
        }
        members.as_object_mut().expect("members").extend(more.as_object().cloned().unwrap_or_default());
        with(members, names, values)
    };
    let owner = |filter: &str, mut more: Value, names: &[&str], values: Value| {
        more["IndexName"] = json!("byOwner");
        partition(filter, more, names, values)
    };
    for query in [
        partition("#n1 > :v1", json!({ "Limit": 4 }), &["pk", "until"], json!(["A", 2])),
        partition("#n1 = :v1", json!({}), &["pk", "sk"], json!(["A", "K"])),
        partition("", json!({ "ProjectionExpression": "#n1, #n2" }), &["pk", "sk", "until"], json!(["A"])),
        partition("", json!({ "ProjectionExpression": "#n1, #n1" }), &["pk", "sk"], json!(["A"])),
        owner("#n1 = :v1", json!({ "Limit": 3 }), &["entityKey", "listedStatus"], json!(["ENT#1", "open"])),
        owner("#n1 = :v1", json!({}), &["entityKey", "createdKey"], json!(["ENT#1", "open"])),
        owner("#n1 >= :v1", json!({}), &["entityKey", "sk"], json!(["ENT#1", "K#4"])),
        owner("attribute_exists(#n1)", json!({}), &["entityKey", "hidden"], json!(["ENT#1"])),
        owner("", json!({ "ProjectionExpression": "#n1" }), &["entityKey", "pk"], json!(["ENT#1"])),
        owner("", json!({ "ConsistentRead": true }), &["entityKey"], json!(["ENT#1"])),
        owner("", json!({ "ConsistentRead": false }), &["entityKey"], json!(["ENT#1"])),
        partition("", json!({ "IndexName": "none" }), &["entityKey"], json!(["ENT#1"])),
        partition("", json!({ "Limit": 0 }), &["pk"], json!(["A"])),
        partition("", json!({}), &["pk"], json!([1])),
        partition("", json!({}), &["until"], json!(["A"])),
    ] {
        both.answer("Query", &query);
    }
    for start in [
        json!({ "pk": "A", "sk": "K#3" }),
        json!({ "pk": "A", "sk": "K#3x" }),
        json!({ "pk": "A", "sk": "A" }),
        json!({ "pk": "A", "sk": "Z" }),
        json!({ "pk": "B", "sk": "K#3" }),
        json!({ "pk": "A" }),
        json!({ "pk": "A", "sk": "K#3", "until": 3 }),
    ] {
        for forward in [true, false] {
            let members = json!({ "KeyConditionExpression": "pk = :v0 AND begins_with(sk, :v1)", "ScanIndexForward": forward, "ExclusiveStartKey": start });
            both.answer("Query", &with(members, &[], json!(["A", "K"])));
        }
        both.answer("Scan", &request(json!({ "ConsistentRead": true, "ExclusiveStartKey": { "pk": "none" } })));
    }
    for start in [
        json!({ "pk": "A", "sk": "K#3", "entityKey": "ENT#1", "createdKey": "T1" }),
        json!({ "pk": "A", "sk": "none", "entityKey": "ENT#1", "createdKey": "T1x" }),
        json!({ "pk": "A", "sk": "K#3", "entityKey": "ENT#2", "createdKey": "T1" }),
        json!({ "pk": "A", "sk": "K#3", "entityKey": "ENT#1", "createdKey": "T9" }),
        json!({ "pk": "A", "sk": "K#3" }),
        json!({ "entityKey": "ENT#1", "createdKey": "T1" }),
    ] {
        let members = json!({ "IndexName": "byOwner", "KeyConditionExpression": "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2", "ExclusiveStartKey": start });
        both.answer("Query", &with(members, &["entityKey", "createdKey"], json!(["ENT#1", "T0", "T2"])));
    }
}

#[test]
fn batches_and_transactions_have_the_same_outcome() {
    let both = &mut Both::new();
    fill(both);
    let insert = "INSERT INTO \"waypost-local\" VALUE {'n': ?, 'pk': ?, 'sk': ?}";
    let update =
        |changes: &str, rest: &str| format!("UPDATE \"waypost-local\"{changes} WHERE \"pk\"=? AND \"sk\"=?{rest}");
    let head = "K#1";
    for (text, parameters) in [
        (insert.to_owned(), json!([1, "C", "HEAD"])),
        (insert.to_owned(), json!([2, "C", "HEAD"])),
        (insert.to_owned(), json!([2, "", "HEAD"])),
        (insert.to_owned(), json!([2, "D"])),
        (
            update(
                " SET \"status\"=? REMOVE \"dueAt\"",
                " AND \"until\" = ? AND (\"resumeAt\" IS MISSING OR \"resumeAt\" <= ?)",
            ),
            json!(["retrying", "A", head, 1, 5]),
        ),
        (update(" SET \"status\"=? REMOVE \"dueAt\"", " AND \"until\" = ?"), json!(["retrying", "A", head, 2])),
        (update(" SET \"status\"=?", " AND \"until\" IS NOT MISSING"), json!(["x", "A", "none"])),
        (update(" SET \"status\"=?", " AND \"pk\" IS NOT MISSING RETURNING ALL NEW *"), json!(["x", "A", head])),
        (update(" SET \"status\"=?", " AND \"pk\" IS MISSING RETURNING ALL NEW *"), json!(["x", "A", "none"])),
        (
            update(" SET \"map\"=? SET \"a\"=?", " AND begins_with(\"status\", ?) RETURNING ALL NEW *"),
            json!([{ "n": 1 }, null, "A", head, "x"]),
        ),
        (
            update(" SET \"map\".\"m\"=? REMOVE \"a\"", " AND (\"map\".\"n\" >= ? AND \"a\" = ?) RETURNING ALL NEW *"),
            json!([2, "A", head, 1, null]),
        ),
        (update(" SET \"no\".\"m\"=?", " AND \"until\" = ?"), json!([2, "A", head, 1])),
        (update(" REMOVE \"no\".\"m\"", " AND \"until\" = ?"), json!(["A", head, 1])),
        (update(" REMOVE \"map\"", " AND \"until\" = ? RETURNING ALL NEW *"), json!(["A", head, 1])),
        (update(" REMOVE \"map\"", " AND \"until\" = ?"), json!(["A", head, 1])),
        (update(" SET \"entityKey\"=?", " AND \"until\" = ?"), json!([5, "A", head, 1])),
        (update(" SET \"sk\"=?", " AND \"until\" = ?"), json!(["x", "A", head, 1])),
        (update(" SET \"a\"=? SET \"a\"=?", " AND \"until\" = ?"), json!([1, 2, "A", head, 1])),
        (update(" SET \"a\"=?", " AND \"until\" < ?"), json!([1, "A", head, true])),
        (update(" SET \"a\"=?", ""), json!([1, "A", head])),
        (update("", " AND \"until\" = ?"), json!(["A", head, 1])),
    ] {
        for returns in [false, true] {
            let mut one = statement(&text, parameters.clone());
            if returns {
                one["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
            }
            let other = statement(insert, json!([1, "E", format!("{text}{returns}{parameters}")]));
            both.answer("BatchExecuteStatement", &json!({ "Statements": [one, other] }));
            both.compare();
        }
    }
    let twice = statement(insert, json!([1, "F", "HEAD"]));
    both.answer("BatchExecuteStatement", &json!({ "Statements": [twice, twice] }));
    both.answer("BatchExecuteStatement", &json!({ "Statements": [] }));

    let put = |pk: &str, condition: &str| json!({ "Put": with(json!({ "Item": { "pk": pk, "sk": "HEAD" }, "ConditionExpression": condition }), &["pk"], json!([])) });
    let update = |update: &str, name: &str, value: Value| json!({ "Update": with(json!({ "Key": { "pk": "A", "sk": head }, "UpdateExpression": update }), &[name], json!([value])) });
    let delete = |pk: &str| json!({ "Delete": request(json!({ "Key": { "pk": pk, "sk": "HEAD" } })) });
    let new = "attribute_not_exists(#n0)";
    for parts in [
        json!([put("G", new), update("SET #n0 = :v0", "a", json!(5)), delete("C")]),
        json!([put("G", new), put("H", new), put("A", "attribute_exists(#n0)")]),
        json!([put("H", new), put("H", new)]),
        json!([put("H", new), update("SET #n0.x = :v0", "none", json!(5))]),
        json!([put("H", new), update("SET #n0 = :v0", "entityKey", json!(5))]),
        json!([put("H", new), delete("none")]),
        json!([]),
    ] {
        both.answer("TransactWriteItems", &json!({ "TransactItems": parts }));
        both.compare();
    }
    let keys = |keys: &[[&str; 2]]| keys.iter().map(|[pk, sk]| item(json!({ "pk": pk, "sk": sk }))).collect::<Vec<_>>();
    for keys in [keys(&[["A", head], ["none", "HEAD"], ["G", "HEAD"]]), keys(&[["A", head], ["A", head]]), keys(&[])] {
        for consistent in [true, false] {
            both.answer(
                "BatchGetItem",
                &json!({ "RequestItems": { "waypost-local": { "Keys": keys, "ConsistentRead": consistent } } }),
            );
        }
    }
    both.answer("GetItem", &request(json!({ "Key": { "pk": "A", "sk": head }, "ConsistentRead": false })));
    both.answer("GetItem", &request(json!({ "Key": { "pk": "none", "sk": head }, "ConsistentRead": true })));
    both.answer("GetItem", &request(json!({ "Key": { "pk": "A" } })));
    both.answer(
        "PutItem",
        &request(json!({ "Item": { "pk": "A", "sk": "BIG", "text": "x".repeat(400 * 1024 - 11) } })),
    );
    both.answer(
        "PutItem",
        &request(json!({ "Item": { "pk": "A", "sk": "BIG", "text": "x".repeat(400 * 1024 - 12) } })),
    );
}
