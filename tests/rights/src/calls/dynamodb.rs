//! The actions, resources and partition keys of DynamoDB's operations.
//! <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html>

use serde_json::{Map, Value};

use super::{CallError, list, text};
use crate::{access::Access, expression, partiql, rights::Rights};

/// Operations on an entire table, which have no partition keys.
const OF_A_TABLE: [&str; 4] = ["DescribeTable", "DescribeTimeToLive", "UpdateTable", "Scan"];

/// The parts of a transaction, each with the single operation whose rights it needs.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html>
const PARTS: [(&str, &str); 5] = [
    ("Get", "GetItem"),
    ("Put", "PutItem"),
    ("Update", "UpdateItem"),
    ("Delete", "DeleteItem"),
    ("ConditionCheck", "ConditionCheckItem"),
];

pub fn accesses(rights: &Rights, operation: &str, request: &Value) -> Result<Vec<Access>, CallError> {
    match operation {
        "GetItem" | "PutItem" | "UpdateItem" | "DeleteItem" => Ok(vec![single(rights, operation, request)?]),
        "Query" => Ok(vec![query(rights, request)?]),
        "BatchGetItem" => batch(rights, operation, request, |of_table| {
            list(of_table, "Keys")?.iter().map(|key| partition_key(rights, key)).collect()
        }),
        "BatchWriteItem" => batch(rights, operation, request, |of_table| {
            let writes = of_table.as_array().ok_or(CallError::Member("RequestItems"))?;
            let item = |write: &Value| match write.get("PutRequest") {
                Some(put) => partition_key(rights, &put["Item"]),
                None => partition_key(rights, &write["DeleteRequest"]["Key"]),
            };
            writes.iter().map(item).collect()
        }),
        "TransactGetItems" | "TransactWriteItems" => {
            list(request, "TransactItems")?.iter().map(|part| of_transaction(rights, part)).collect()
        }
        // The required rights are those of the statements.
        // <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html>
        "ExecuteStatement" => Ok(vec![statement(rights, request)?]),
        "BatchExecuteStatement" => list(request, "Statements")?.iter().map(|part| statement(rights, part)).collect(),
        "ExecuteTransaction" => {
            list(request, "TransactStatements")?.iter().map(|part| statement(rights, part)).collect()
        }
        _ if OF_A_TABLE.contains(&operation) => {
            let resource = resource(rights, text(request, "TableName")?, request["IndexName"].as_str());
            Ok(vec![Access::new(action(operation), resource)])
        }
        _ => Err(CallError::Operation(format!("dynamodb:{operation}"))),
    }
}

fn action(operation: &str) -> String {
    format!("dynamodb:{operation}")
}

fn resource(rights: &Rights, table: &str, index: Option<&str>) -> String {
    let table = rights.deployed.table_arn(table);
    index.map_or(table.clone(), |index| format!("{table}/index/{index}"))
}

/// The attribute that serves as the partition key of the table or an index.
fn key_name(rights: &Rights, index: Option<&str>) -> Result<String, CallError> {
    rights.partition_keys.get(&index.map(str::to_owned)).cloned().ok_or(CallError::Member("IndexName"))
}

fn partition_key(rights: &Rights, attributes: &Value) -> Result<String, CallError> {
    expression::key_text(&attributes[key_name(rights, None)?]).ok_or(CallError::Member("the partition key"))
}

fn single(rights: &Rights, operation: &str, request: &Value) -> Result<Access, CallError> {
    let attributes = request.get("Key").unwrap_or(&request["Item"]);
    let access = Access::new(action(operation), resource(rights, text(request, "TableName")?, None));
    Ok(access.with_keys(vec![partition_key(rights, attributes)?]))
}

fn query(rights: &Rights, request: &Value) -> Result<Access, CallError> {
    let index = request["IndexName"].as_str();
    let key = expression::partition(request, &key_name(rights, index)?);
    let key = key.ok_or(CallError::Member("KeyConditionExpression"))?;
    Ok(Access::new(action("Query"), resource(rights, text(request, "TableName")?, index)).with_keys(vec![key]))
}

fn batch(
    rights: &Rights,
    operation: &str,
    request: &Value,
    keys: impl Fn(&Value) -> Result<Vec<String>, CallError>,
) -> Result<Vec<Access>, CallError> {
    let tables: &Map<String, Value> = request["RequestItems"].as_object().ok_or(CallError::Member("RequestItems"))?;
    let access = |(table, of_table): (&String, &Value)| {
        Ok(Access::new(action(operation), resource(rights, table, None)).with_keys(keys(of_table)?))
    };
    tables.iter().map(access).collect()
}

fn of_transaction(rights: &Rights, part: &Value) -> Result<Access, CallError> {
    let found = PARTS.iter().find_map(|(name, operation)| Some((operation, part.get(name)?)));
    let (operation, request) = found.ok_or(CallError::Member("TransactItems"))?;
    single(rights, operation, request)
}

fn statement(rights: &Rights, request: &Value) -> Result<Access, CallError> {
    let statement = partiql::Statement::read(text(request, "Statement")?, &request["Parameters"])?;
    let resource = resource(rights, &statement.table, statement.index.as_deref());
    let leading_keys = statement.partitions(&key_name(rights, statement.index.as_deref())?)?;
    Ok(Access { leading_keys, ..Access::new(action(statement.action), resource) })
}
