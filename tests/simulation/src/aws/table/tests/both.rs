//! Comparing the simulated table with dynoxide.

use dynoxide::{Database, DynoxideError};
use serde_json::{Value, json};

use super::{
    super::{Refusal, Table},
    Given, definition, request, table,
};

/// Both tables, which must respond to every request identically.
pub(super) struct Both {
    played: Table,
    database: Database,
    differences: Vec<String>,
}

/// Dropping the tables fails the test with all differences together.
impl Drop for Both {
    fn drop(&mut self) {
        assert!(self.differences.is_empty() || std::thread::panicking(), "{}", self.differences.join("\n"));
    }
}

macro_rules! carry_out {
    ($database:expr, $operation:expr, $request:expr, $($name:literal => $method:ident,)*) => {
        match $operation {
            $($name => match serde_json::from_value($request) {
                Ok(request) => $database.$method(request).map(|answer| serde_json::to_value(answer).expect("JSON")),
                Err(error) => Err(DynoxideError::ValidationException(error.to_string())),
            },)*
            other => panic!("{other}"),
        }
    };
}

impl Both {
    pub fn new() -> Self {
        let database = Database::memory().expect("a database");
        database.create_table(serde_json::from_value(definition()).expect("a request")).expect("a table");
        Self { played: table(), database, differences: Vec::new() }
    }

    /// The response of both tables, without the parts that may differ.
    pub fn answer(&mut self, operation: &str, request: &Value) -> Value {
        let played = self.played.call(operation, request, 1, &mut Given::default());
        let played = plain(operation, played.map_err(|Refusal { body, .. }| body));
        let real = carry_out!(self.database, operation, request.clone(),
            "GetItem" => get_item,
            "BatchGetItem" => batch_get_item,
            "Query" => query,
            "Scan" => scan,
            "PutItem" => put_item,
            "UpdateItem" => update_item,
            "DeleteItem" => delete_item,
            "TransactWriteItems" => transact_write_items,
            "BatchExecuteStatement" => batch_execute_statement,
        );
        let real = real.map_err(|error| serde_json::from_str(&error.to_json()).expect("JSON"));
        let said = format!("{real:?}");
        let real = plain(operation, real);
        if played != real {
            let (said, body) = (&said[..said.len().min(300)], request.to_string());
            let body = &body[..body.len().min(600)];
            self.differences.push(format!("{operation} {body}\n  played {played}\n  real   {real}\n  {said}"));
        }
        played
    }

    /// The simulated table's response to a request that dynoxide is known to handle differently.
    pub fn answer_apart(&mut self, operation: &str, request: &Value) -> Value {
        let played = self.answer(operation, request);
        let differences = self.take_differences();
        assert_eq!(differences.len(), 1, "dynoxide answers as DynamoDB now: {operation} {request}");
        played
    }

    /// The differences so far, which then no longer fail the test.
    pub fn take_differences(&mut self) -> Vec<String> {
        std::mem::take(&mut self.differences)
    }

    /// Compares everything in the tables and their indexes.
    pub fn compare(&mut self) {
        self.answer("Scan", &request(json!({ "ConsistentRead": true })));
        for (index, attribute, partition) in
            [("byOwner", "entityKey", "ENT#1"), ("byDue", "dueShard", "DUE#1"), ("byWebhook", "webhookKey", "WHK#1")]
        {
            self.answer(
                "Query",
                &request(json!({
                    "IndexName": index, "KeyConditionExpression": "#n0 = :v0",
                    "ExpressionAttributeNames": { "#n0": attribute }, "ExpressionAttributeValues": { ":v0": partition },
                })),
            );
        }
    }
}

/// A response without its messages, and with its unordered parts sorted.
fn plain(operation: &str, outcome: Result<Value, Value>) -> Value {
    let mut answer = match outcome {
        Ok(answer) => answer,
        Err(body) => {
            let kind = body["__type"].as_str().and_then(|kind| kind.split_once('#')).expect("a kind").1;
            json!({ "error": kind, "Item": body["Item"], "reasons": body["CancellationReasons"] })
        }
    };
    let by_text = |items: &mut Value| {
        if let Some(items) = items.as_array_mut() {
            items.sort_by_key(Value::to_string);
        }
    };
    match operation {
        "Scan" => answer.get_mut("Items").map(by_text),
        "BatchGetItem" => answer.pointer_mut("/Responses/waypost-local").map(by_text),
        _ => None,
    };
    for response in answer.get_mut("Responses").and_then(Value::as_array_mut).into_iter().flatten() {
        // For some invalid statements, dynoxide's response names the table.
        if response["Error"]["Code"] == "ValidationError" {
            response["TableName"].take();
        }
    }
    without_messages(&mut answer);
    answer
}

fn without_messages(answer: &mut Value) {
    match answer {
        Value::Object(members) => {
            members.remove("Message");
            members.values_mut().for_each(without_messages);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_messages),
        _ => {}
    }
}

/// A request with the placeholders that the expressions of the crate `storage` use.
pub(super) fn with(mut members: Value, names: &[&str], values: Value) -> Value {
    if !names.is_empty() {
        let names = names.iter().enumerate().map(|(n, name)| (format!("#n{n}"), json!(name)));
        members["ExpressionAttributeNames"] = Value::Object(names.collect());
    }
    let values = values.as_array().cloned().unwrap_or_default();
    if !values.is_empty() {
        let values = values.into_iter().enumerate().map(|(n, value)| (format!(":v{n}"), value));
        members["ExpressionAttributeValues"] = Value::Object(values.collect());
    }
    request(members)
}
