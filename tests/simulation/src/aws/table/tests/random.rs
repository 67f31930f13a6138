//! Random sequences of requests to the simulated table and to dynoxide.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    both::{Both, with},
    item, request, statement,
};

const SETS: [&str; 4] = [
    "SET #n0 = :v0, #n1 = if_not_exists(#n1, :v1) ADD #n2 :v2 REMOVE #n3",
    "SET #n0 = :v0, #n1 = :v1 ADD #n2 :v2 REMOVE #n3",
    "SET #n3.#n0 = :v0, #n1 = :v1 ADD #n2 :v2",
    "SET #n0 = :v0, #n3 = :v1 ADD #n1 :v2 REMOVE #n2",
];
const CONDITIONS: [&str; 5] = [
    "attribute_exists(#n4)",
    "attribute_not_exists(#n4)",
    "attribute_exists(#n4) AND (attribute_not_exists(#n1) OR #n1 <= :v3)",
    "attribute_exists(#n4) AND #n2 >= :v3",
    "begins_with(#n4, :v4) AND (#n2 = :v3 OR #n1 > :v3)",
];
const CHANGES: [&str; 3] = [" SET \"count\"=?", " SET \"dueAt\"=? REMOVE \"status\"", " SET \"map\".\"m\"=?"];
const WHERE: [&str; 4] = [
    " AND \"count\" = ?",
    " AND (\"since\" IS MISSING OR \"since\" <= ?)",
    " AND \"pk\" IS NOT MISSING AND (\"count\" > ? AND \"since\" IS NOT MISSING)",
    " AND \"count\" < ? RETURNING ALL NEW *",
];

/// The choices for a request, each selecting from a list by its remainder.
type Choices = [u8; 6];

fn one_of<T: Clone>(all: &[T], choice: u8) -> T {
    all[usize::from(choice) % all.len()].clone()
}

fn key(choice: u8) -> Value {
    json!({ "pk": one_of(&["A", "B", "C"], choice), "sk": one_of(&["HEAD", "K#1", "K#2"], choice / 3) })
}

fn whole(choices: Choices) -> Value {
    let mut whole = key(choices[1]);
    for (bit, name, value) in [
        (1, "dueShard", json!("DUE#1")),
        (2, "dueAt", json!(one_of(&["1", "5", "9"], choices[3]))),
        (4, "entityKey", json!("ENT#1")),
        (8, "createdKey", json!(one_of(&["T1", "T2"], choices[3]))),
        (16, "webhookKey", json!("WHK#1")),
        (32, "map", json!({ "n": choices[3] })),
        (64, "count", json!(choices[3] % 4)),
        (128, "since", json!(choices[4] % 4)),
    ] {
        if choices[2] & bit != 0 {
            whole[name] = value;
        }
    }
    whole
}

/// A write with the expressions' placeholders that it uses.
fn written(mut members: Value, text: &str, choices: Choices) -> Value {
    let names = ["status", "since", "count", "map", "pk"];
    let number = || json!(choices[4] % 4);
    let all = [json!("open"), number(), json!(1), number(), json!(one_of(&["A", "B"], choices[5]))];
    let used = |placeholder: String| text.contains(&placeholder);
    members = with(members, &names, Value::Array(all.into()));
    for (member, sign) in [("ExpressionAttributeNames", "#n"), ("ExpressionAttributeValues", ":v")] {
        let kept = members[member].as_object().into_iter().flatten();
        let kept = kept.filter(|(name, _)| used(format!("{sign}{}", &name[2..])));
        let kept: serde_json::Map<_, _> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        match kept.is_empty() {
            true => members.as_object_mut().expect("members").remove(member),
            false => members.as_object_mut().expect("members").insert(member.to_owned(), Value::Object(kept)),
        };
    }
    members
}

fn write(choices: Choices, alone: bool) -> (&'static str, Value) {
    let condition = one_of(&CONDITIONS, choices[2]);
    let mut members = json!({});
    let mut text = String::new();
    if !choices[3].is_multiple_of(4) {
        condition.clone_into(&mut text);
        members["ConditionExpression"] = json!(condition);
    }
    if alone {
        members["ReturnValuesOnConditionCheckFailure"] = json!(one_of(&["NONE", "ALL_OLD"], choices[5]));
    }
    let operation = match choices[0] % 3 {
        0 => {
            members["Item"] = whole(choices);
            "Put"
        }
        1 => {
            let update = one_of(&SETS, choices[5]);
            members["Key"] = key(choices[1]);
            members["UpdateExpression"] = json!(update);
            if alone {
                members["ReturnValues"] = json!("ALL_NEW");
            }
            text.push_str(update);
            "Update"
        }
        _ => {
            members["Key"] = key(choices[1]);
            "Delete"
        }
    };
    (operation, written(members, &text, choices))
}

fn in_partiql(choices: Choices) -> Value {
    if choices[0].is_multiple_of(3) {
        let whole = whole(choices);
        let whole = whole.as_object().expect("members");
        let names: Vec<_> = whole.keys().map(|name| format!("'{name}': ?")).collect();
        let text = format!("INSERT INTO \"waypost-local\" VALUE {{{}}}", names.join(", "));
        return statement(&text, whole.values().cloned().collect());
    }
    let change = one_of(&CHANGES, choices[2]);
    let rest = one_of(&WHERE, choices[3]);
    let set = if change.contains("dueAt") { json!(one_of(&["1", "5"], choices[4])) } else { json!(choices[4] % 4) };
    let key = key(choices[1]);
    let text = format!("UPDATE \"waypost-local\"{change} WHERE \"pk\"=? AND \"sk\"=?{rest}");
    let mut statement = statement(&text, json!([set, key["pk"], key["sk"], choices[5] % 4]));
    if choices[5] & 4 != 0 {
        statement["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
    }
    statement
}

fn read(choices: Choices) -> (&'static str, Value) {
    let keys = [
        ("", "pk", "sk", "A"),
        ("byDue", "dueShard", "dueAt", "DUE#1"),
        ("byOwner", "entityKey", "createdKey", "ENT#1"),
    ];
    let (index, partition, sort, value) = one_of(&keys, choices[1]);
    let range =
        one_of(&["", " AND #n1 >= :v1", " AND begins_with(#n1, :v1)", " AND #n1 BETWEEN :v1 AND :v2"], choices[2]);
    let mut members =
        json!({ "KeyConditionExpression": format!("#n0 = :v0{range}"), "ScanIndexForward": choices[3] & 1 == 0 });
    if !index.is_empty() {
        members["IndexName"] = json!(index);
    }
    if choices[3] & 2 != 0 {
        members["Limit"] = json!(choices[4] % 4 + 1);
    }
    if choices[3] & 4 != 0 {
        members["Select"] = json!("COUNT");
    }
    let names = if range.is_empty() { vec![partition] } else { vec![partition, sort] };
    let values: Vec<_> = [value, one_of(&["K", "5", "T1", "A"], choices[4]), "Z"]
        .into_iter()
        .take(1 + range.matches(":v").count())
        .collect();
    ("Query", with(members, &names, json!(values)))
}

fn call(choices: Choices, more: &[Choices]) -> (&'static str, Value) {
    match choices[0] / 8 % 8 {
        0..=2 => match write(choices, true) {
            ("Put", members) => ("PutItem", members),
            ("Update", members) => ("UpdateItem", members),
            (_, members) => ("DeleteItem", members),
        },
        3 => {
            let all = [&[choices], more].concat();
            let parts: Vec<_> = all.into_iter().map(|choices| write(choices, false)).collect();
            let parts: Vec<_> = parts.into_iter().map(|(kind, members)| json!({ kind: members })).collect();
            ("TransactWriteItems", json!({ "TransactItems": parts }))
        }
        4 | 5 => {
            let all = [&[choices], more].concat();
            let statements: Vec<_> = all.into_iter().map(in_partiql).collect();
            ("BatchExecuteStatement", json!({ "Statements": statements }))
        }
        6 => read(choices),
        _ => {
            let keys = [item(key(choices[1])), item(key(choices[2]))];
            let batch = json!({ "waypost-local": { "Keys": keys, "ConsistentRead": choices[3] & 1 == 0 } });
            match choices[3] & 2 {
                0 => ("BatchGetItem", json!({ "RequestItems": batch })),
                _ => ("GetItem", request(json!({ "Key": key(choices[1]) }))),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_tables_answer_any_sequence_alike(calls in prop::collection::vec((any::<Choices>(), prop::collection::vec(any::<Choices>(), 0..3)), 1..40)) {
        let mut both = Both::new();
        for (choices, more) in calls {
            let (operation, request) = call(choices, &more);
            both.answer(operation, &request);
        }
        both.compare();
        let differences = both.take_differences();
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}
