//! DynamoDB's protocol for the embedded database. dynoxide has a server, but that server checks no credentials,
//! responds to browser pages and supports no middleware. This module responds to well-formed requests as that server
//! does.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html>

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use dynoxide::{Database, DynoxideError};
use serde::{Serialize, de::DeserializeOwned};

use super::{faults::Faults, joined::Joined};

/// DynamoDB's limit on the size of a request.
const MAX_REQUEST: usize = 16 * 1024 * 1024;

const MEDIA_TYPE: &str = "application/x-amz-json-1.0";

/// The connections to one database. Only one request at a time uses a connection, so reads have a separate one: with
/// SQLite's write-ahead log, they continue during a write, and each read sees all earlier commits.
/// <https://www.sqlite.org/wal.html#concurrency>
#[derive(Clone)]
pub struct Connections {
    /// The connection for writes and for transactional reads.
    pub writing: Database,
    /// The connection for all other reads.
    pub reading: Database,
}

/// Performs one of these operations with the connection's method for it; `None` for any other operation.
macro_rules! carry_out {
    ($connections:expr, $operation:expr, $request:expr, $($kind:ident { $($name:literal => $method:ident,)* })*) => {
        match $operation {
            $($($name => {
                let request = read($request);
                Some(request.and_then(|request| $connections.$kind.$method(request)).and_then(|answer| write(&answer)))
            })*)*
            _ => None,
        }
    };
}

/// A router that serves the database through these connections and logs the table's faults.
pub fn router(connections: Connections, faults: Faults) -> Router {
    let state = (connections, Arc::new(faults));
    Router::new().route("/", post(call)).layer(DefaultBodyLimit::max(MAX_REQUEST)).with_state(state)
}

/// Responds to a request. The database runs on the calling thread, which belongs to the table's runtime.
async fn call(
    State((connections, faults)): State<(Connections, Arc<Faults>)>,
    headers: HeaderMap,
    request: Bytes,
) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = target.strip_prefix("DynamoDB_20120810.").unwrap_or_default();
    let outcome = carry_out!(connections, operation, &request,
        reading {
            "BatchGetItem" => batch_get_item,
            "DescribeTable" => describe_table,
            "DescribeTimeToLive" => describe_time_to_live,
            "GetItem" => get_item,
            "ListTables" => list_tables,
            "Query" => query,
            "Scan" => scan,
        }
        writing {
            "BatchExecuteStatement" => execute_joined,
            "BatchWriteItem" => batch_write_item,
            "CreateTable" => create_table,
            "DeleteItem" => delete_item,
            "DeleteTable" => delete_table,
            "ExecuteStatement" => execute_statement,
            "ExecuteTransaction" => execute_transaction,
            "PutItem" => put_item,
            "TransactGetItems" => transact_get_items,
            "TransactWriteItems" => transact_write_items,
            "UpdateItem" => update_item,
            "UpdateTable" => update_table,
            "UpdateTimeToLive" => update_time_to_live,
        }
    );
    let (status, body) = match outcome {
        Some(Ok(body)) => (StatusCode::OK, body),
        Some(Err(error)) => {
            faults.note(&error);
            (StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::BAD_REQUEST), error.to_json())
        }
        None => {
            (StatusCode::BAD_REQUEST, r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#.to_owned())
        }
    };
    (status, [(CONTENT_TYPE, MEDIA_TYPE)], body).into_response()
}

fn read<T: DeserializeOwned>(request: &[u8]) -> dynoxide::Result<T> {
    serde_json::from_slice(request).map_err(|error| {
        let said = error.to_string();
        // The request types mark errors that DynamoDB calls invalid, to distinguish them from malformed requests.
        match said.split_once(':') {
            Some((mark, why)) if mark.starts_with("VALIDATION") => DynoxideError::ValidationException(why.to_owned()),
            _ => DynoxideError::SerializationException(said),
        }
    })
}

fn write(answer: &impl Serialize) -> dynoxide::Result<String> {
    serde_json::to_string(answer).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn ask(database: &Database, operation: &str, request: &str) -> (StatusCode, Value) {
        let mut headers = HeaderMap::new();
        let target = format!("DynamoDB_20120810.{operation}");
        headers.insert("x-amz-target", target.parse().expect("a value"));
        let connections = Connections { writing: database.clone(), reading: database.clone() };
        let state = State((connections, Arc::new(Faults::new(None))));
        let answer = call(state, headers, request.to_owned().into()).await;
        let status = answer.status();
        let body = to_bytes(answer.into_body(), MAX_REQUEST).await.expect("a whole answer");
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    #[tokio::test]
    async fn operations_and_their_errors_are_answered_as_by_dynamodb() {
        let database = Database::memory().expect("a database");
        let table = json!({
            "TableName": "things", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        });
        assert_eq!(ask(&database, "CreateTable", &table.to_string()).await.0, StatusCode::OK);
        let item = json!({ "pk": { "S": "a" }, "n": { "N": "1" } });
        let put = json!({ "TableName": "things", "Item": item, "ConditionExpression": "attribute_not_exists(pk)" });
        assert_eq!(ask(&database, "PutItem", &put.to_string()).await, (StatusCode::OK, json!({})));
        let (status, error) = ask(&database, "PutItem", &put.to_string()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let kind = error["__type"].as_str().expect("a type");
        assert!(kind.ends_with("#ConditionalCheckFailedException"), "{error}");
        let get = json!({ "TableName": "things", "Key": { "pk": { "S": "a" } } });
        assert_eq!(ask(&database, "GetItem", &get.to_string()).await.1["Item"], item);

        for (operation, request, kind) in [
            ("GetItem", "{", "SerializationException"),
            ("GetItem", "", "SerializationException"),
            (
                "PutItem",
                r#"{"TableName": "things", "Item": {"pk": {"S": "a"}, "n": {"N": "x"}}}"#,
                "ValidationException",
            ),
            ("GetItem", r#"{"TableName": "none", "Key": {"pk": {"S": "a"}}}"#, "ResourceNotFoundException"),
            ("Guess", "{}", "UnknownOperationException"),
        ] {
            let (status, error) = ask(&database, operation, request).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
            assert!(error["__type"].as_str().expect("a type").ends_with(&format!("#{kind}")), "{error}");
        }
    }
}
