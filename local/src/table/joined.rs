//! Running the statements of one call in one SQLite transaction. By default, the database runs each statement of a
//! batch in a separate transaction, which costs more than the statement. A transaction is stricter than a DynamoDB
//! batch, since all its statements must succeed. If one fails, the original batch runs instead, and each statement has
//! its own outcome.

use dynoxide::{
    Database,
    actions::{
        batch_execute_statement::{
            BatchExecuteStatementRequest, BatchExecuteStatementResponse, BatchStatementRequest, BatchStatementResponse,
        },
        execute_transaction::{ExecuteTransactionRequest, ParameterizedStatement},
    },
};

/// A database that runs a batch as one transaction if the result is the same.
pub trait Joined {
    /// Runs a batch.
    fn execute_joined(&self, batch: BatchExecuteStatementRequest) -> dynoxide::Result<BatchExecuteStatementResponse>;
}

impl Joined for Database {
    fn execute_joined(&self, batch: BatchExecuteStatementRequest) -> dynoxide::Result<BatchExecuteStatementResponse> {
        if let Some((transaction, answer)) = joined(&batch)
            && self.execute_transaction(transaction).is_ok()
        {
            return Ok(answer);
        }
        self.batch_execute_statement(batch)
    }
}

/// The transaction that has the same effect as a batch, and the batch's response if every statement succeeds. `None`
/// for a batch with one statement, for a batch that reads or returns items, and if the consumed capacity is requested,
/// since it would differ.
fn joined(batch: &BatchExecuteStatementRequest) -> Option<(ExecuteTransactionRequest, BatchExecuteStatementResponse)> {
    if batch.statements.len() < 2 || batch.return_consumed_capacity.is_some() {
        return None;
    }
    let responses = batch.statements.iter().map(|statement| {
        let mut response = BatchStatementResponse::default();
        response.table_name = Some(written_table(statement)?.to_owned());
        Some(response)
    });
    let answer =
        BatchExecuteStatementResponse { responses: responses.collect::<Option<_>>()?, consumed_capacity: None };
    let statements = batch.statements.iter().map(|statement| ParameterizedStatement {
        statement: statement.statement.clone(),
        parameters: statement.parameters.clone(),
        return_values_on_condition_check_failure: None,
    });
    let transaction = ExecuteTransactionRequest { transact_statements: statements.collect(), ..Default::default() };
    Some((transaction, answer))
}

/// The table that a statement writes to, unless the statement returns an item.
fn written_table(statement: &BatchStatementRequest) -> Option<&str> {
    let text = statement.statement.as_str();
    let table =
        ["INSERT INTO \"", "UPDATE \"", "DELETE FROM \""].into_iter().find_map(|verb| text.strip_prefix(verb))?;
    if text.contains(" RETURNING ") { None } else { table.split('"').next() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn database() -> Database {
        let database = Database::memory().expect("a database");
        let table = json!({
            "TableName": "things", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        });
        database.create_table(serde_json::from_value(table).expect("a table")).expect("made");
        database
    }

    fn all_of(database: &Database) -> Value {
        let scan = serde_json::from_value(json!({ "TableName": "things" })).expect("a scan");
        serde_json::to_value(database.scan(scan).expect("items")).expect("JSON")
    }

    fn insert(pk: &str, n: u32) -> Value {
        let parameters = json!([{ "S": pk }, { "N": n.to_string() }]);
        json!({ "Statement": "INSERT INTO \"things\" VALUE {'pk': ?, 'n': ?}", "Parameters": parameters })
    }

    fn update(pk: &str, n: u32, returning: &str) -> Value {
        let statement = format!("UPDATE \"things\" SET \"n\"=? WHERE \"pk\"=? AND \"n\" < ?{returning}");
        let parameters = json!([{ "N": n.to_string() }, { "S": pk }, { "N": n.to_string() }]);
        json!({ "Statement": statement, "Parameters": parameters, "ReturnValuesOnConditionCheckFailure": "ALL_OLD" })
    }

    #[test]
    fn a_joined_batch_has_the_same_outcome_and_effect_as_separate_statements() {
        let one = database();
        let other = database();
        let counted = |mut batch: Value| {
            batch["ReturnConsumedCapacity"] = "TOTAL".into();
            batch
        };
        for (is_joined, batch) in [
            (true, json!({ "Statements": [insert("a", 1), insert("b", 1)] })),
            (true, json!({ "Statements": [update("a", 2, ""), insert("c", 1)] })),
            // Some statements in this batch fail, and the others succeed.
            (true, json!({ "Statements": [insert("a", 9), insert("d", 1)] })),
            (true, json!({ "Statements": [update("a", 1, ""), update("b", 5, ""), update("none", 5, "")] })),
            (true, json!({ "Statements": [insert("e", 1), insert("e", 2)] })),
            (
                true,
                json!({ "Statements": [insert("f", 1), { "Statement": "INSERT INTO \"none\" VALUE {'pk': 'x'}" }] }),
            ),
            (false, json!({ "Statements": [insert("g", 1)] })),
            (false, json!({ "Statements": [update("a", 7, " RETURNING ALL NEW *"), insert("h", 1)] })),
            (
                false,
                json!({ "Statements": [{ "Statement": "SELECT * FROM \"things\" WHERE \"pk\" = 'a'" }, insert("i", 1)] }),
            ),
            (false, counted(json!({ "Statements": [insert("j", 1), insert("k", 1)] }))),
        ] {
            let read = || serde_json::from_value::<BatchExecuteStatementRequest>(batch.clone()).expect("a batch");
            assert_eq!(joined(&read()).is_some(), is_joined, "{batch}");
            let answer_of = |outcome: dynoxide::Result<BatchExecuteStatementResponse>| match outcome {
                Ok(answer) => serde_json::to_value(answer).expect("JSON"),
                Err(error) => error.to_json().into(),
            };
            let joined_answer = answer_of(one.execute_joined(read()));
            assert_eq!(joined_answer, answer_of(other.batch_execute_statement(read())), "{batch}");
            assert_eq!(all_of(&one), all_of(&other), "{batch}");
        }
    }
}
