//! The items that a request names, with a short label for its effect on them, for the coverage tables.

use serde_json::Value;

use super::{
    ItemKey,
    condition::Condition,
    parser::{Parser, Placeholders},
    range::Range,
    schema::Schema,
    statement::Statement,
    value::text,
};

/// The attributes that form the table's key, by the service's convention.
const PARTITION: &str = "pk";
const SORT: &str = "sk";

/// A request's label and its items. A query names its partition with an empty sort key.
pub(super) fn touched(operation: &str, request: &Value) -> (String, Vec<ItemKey>) {
    let mut parts = Vec::new();
    match operation {
        "GetItem" | "UpdateItem" | "DeleteItem" => parts.push(("", key(&request["Key"]))),
        "PutItem" => parts.push(("", key(&request["Item"]))),
        "BatchGetItem" => {
            let tables = request["RequestItems"].as_object().into_iter().flatten();
            let keys = tables.filter_map(|(_, table)| table["Keys"].as_array()).flatten();
            parts.extend(keys.map(|part| ("", key(part))));
        }
        "TransactWriteItems" => {
            let writes = request["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object);
            parts.extend(writes.flatten().filter(|(_, write)| !write.is_null()).map(|(kind, write)| {
                let key = key(if kind == "Put" { &write["Item"] } else { &write["Key"] });
                match kind.as_str() {
                    "Put" => ("PUT ", key),
                    "Update" => ("UPDATE ", key),
                    "Delete" => ("DELETE ", key),
                    _ => ("", key),
                }
            }));
        }
        "BatchExecuteStatement" => {
            let schema = schema();
            for statement in request["Statements"].as_array().into_iter().flatten() {
                let Ok(statement) = Statement::read(&schema, statement) else { continue };
                parts.push((if statement.inserts() { "INSERT " } else { "UPDATE " }, statement.write.key));
            }
        }
        "Query" => return queried(request),
        _ => {}
    }
    let mut labels: Vec<_> = parts.iter().map(|(verb, key)| format!("{verb}{}", kind(key))).collect();
    // A batch has no particular order; in a transaction, the order is that of the code.
    if operation.starts_with("Batch") {
        labels.sort_unstable();
        labels.dedup();
    }
    let label = if labels.is_empty() { operation.to_owned() } else { format!("{operation} {}", labels.join("+")) };
    (label, parts.into_iter().map(|(_, key)| key).collect())
}

/// A query's label and its partition. In a query on the table, the sort keys are part of the label; in an index, they
/// are nearly always times.
fn queried(request: &Value) -> (String, Vec<ItemKey>) {
    let index = request["IndexName"].as_str();
    let range = request.as_object().and_then(|request| {
        let mut placeholders = Placeholders::of(request).ok()?;
        let key = request.get("KeyConditionExpression")?.as_str()?;
        let condition = Condition::read(&mut Parser::new(key, &mut placeholders)).ok()?;
        let attributes = condition.attributes();
        let sort = attributes.get(1).copied().unwrap_or_default();
        Range::of(condition, attributes.first()?, sort).ok()
    });
    let Some(range) = range else { return (String::from("Query"), Vec::new()) };
    let sort = if index.is_none() { range.from } else { String::new() };
    let index = index.map(|index| format!(" {index}")).unwrap_or_default();
    let partition = range.partition.to_owned();
    let label = format!("Query{index} {}", kind(&(partition.clone(), sort)));
    (label, vec![(partition, String::new())])
}

fn key(members: &Value) -> ItemKey {
    let part = |name: &str| text(&members[name]).unwrap_or_default().to_owned();
    (part(PARTITION), part(SORT))
}

/// The kind of an item: the prefix of its partition key, and the letters at the beginning of its sort key.
fn kind((partition, sort): &ItemKey) -> String {
    let partition = partition.split('#').next().unwrap_or_default();
    let sort = sort.split(|sign: char| sign == '#' || sign.is_ascii_digit()).next().unwrap_or_default();
    // The sort key of a pointer to an application is the application's identifier; guesses and lines have a hash.
    let sort = if ["APPS", "GUESSES", "LINE"].contains(&partition) { "" } else { sort };
    if sort.is_empty() { partition.to_owned() } else { format!("{partition}/{sort}") }
}

fn schema() -> Schema {
    Schema { partition: PARTITION.to_owned(), sort: SORT.to_owned(), indexes: Vec::new(), expiry: String::new() }
}
