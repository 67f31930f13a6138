//! Several writes in a single call: a transaction, or a batch of separate statements.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    Conditions,
    refusal::{Checked, Fault, Invalid, Refusal},
    request::Request,
    schema::Schema,
    statement::Statement,
    store::Store,
    value::object,
    write::Write,
};

/// DynamoDB's limits on the number of writes.
const MOST_IN_TRANSACTION: usize = 100;
const MOST_STATEMENTS: usize = 25;
/// How long DynamoDB remembers a transaction's token, in milliseconds.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
const TOKEN_LIFE_MS: u64 = 10 * 60 * 1000;

/// The tokens of recent transactions, with their writes. If a transaction's response was lost, the SDK repeats the
/// transaction with the same token, and it must not be carried out again.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    writes: BTreeMap<String, Value>,
    ends: VecDeque<(u64, String)>,
}

impl Tokens {
    /// The writes of the transaction with this token.
    fn find(&mut self, token: &str, now: u64) -> Option<&Value> {
        while self.ends.front().is_some_and(|(end, _)| *end <= now) {
            if let Some((_, token)) = self.ends.pop_front() {
                self.writes.remove(&token);
            }
        }
        self.writes.get(token)
    }

    fn keep(&mut self, token: &str, writes: &Value, now: u64) {
        self.writes.insert(token.to_owned(), writes.clone());
        self.ends.push_back((now + TOKEN_LIFE_MS, token.to_owned()));
    }
}

/// Handles `TransactWriteItems`.
pub(super) fn transaction(
    store: &mut Store,
    tokens: &mut Tokens,
    request: &Value,
    now: u64,
    conditions: &mut dyn Conditions,
) -> Result<Value, Refusal> {
    let request = Request::of(request, &["TransactItems", "ClientRequestToken"])?;
    let parts = request.array("TransactItems")?;
    let token = request.text("ClientRequestToken")?;
    if parts.is_empty() || parts.len() > MOST_IN_TRANSACTION {
        return Err(Invalid(format!("a transaction has between 1 and {MOST_IN_TRANSACTION} writes")).into());
    }
    let writes = parts.iter().map(|part| read_part(&store.schema, part)).collect::<Checked<Vec<_>>>()?;
    let keys: Vec<_> = writes.iter().map(|write| write.key.clone()).collect();
    if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
        let message = "Transaction request cannot include multiple operations on one item";
        return Err(Invalid(message.to_owned()).into());
    }
    let all = request.needed("TransactItems")?;
    match token.and_then(|token| tokens.find(token, now)) {
        Some(carried_out) if carried_out == all => return Ok(json!({})),
        Some(_) => return Err(Refusal::of("IdempotentParameterMismatchException", "the token had other writes")),
        None => {}
    }
    let mut reasons: Vec<_> =
        keys.iter().map(|key| conditions.throttles(key, None, true).then_some(Fault::Throttled)).collect();
    if reasons.iter().all(Option::is_none) && conditions.conflicts(&keys) {
        reasons[0] = Some(Fault::Conflict);
    }
    let mut prepared = Vec::new();
    if reasons.iter().all(Option::is_none) {
        for (write, reason) in writes.iter().zip(&mut reasons) {
            match write.prepare(store) {
                Ok(write) => prepared.push(write),
                Err(fault) => *reason = Some(fault),
            }
        }
    }
    if prepared.len() == reasons.len() {
        for (write, reason) in prepared.iter().zip(&mut reasons) {
            *reason = write.is_held_up(store, conditions).then_some(Fault::Throttled);
        }
    }
    if reasons.iter().any(Option::is_some) {
        return Err(Refusal::cancelled(&reasons));
    }
    prepared.into_iter().for_each(|write| write.commit(store, now, conditions));
    if let Some(token) = token {
        tokens.keep(token, all, now);
    }
    Ok(json!({}))
}

fn read_part<'a>(schema: &Schema, part: &'a Value) -> Checked<Write<'a>> {
    let part = Request::of(part, &["Put", "Update", "Delete"])?;
    let mut kinds = part.0.iter().filter(|(_, write)| !write.is_null());
    match (kinds.next(), kinds.next()) {
        (Some((kind, write)), None) => match kind.as_str() {
            "Put" => Write::put(schema, write, &[]),
            "Update" => Write::update(schema, write, &[]),
            _ => Write::delete(schema, write, &[]),
        },
        _ => Err(Invalid("a part of a transaction has exactly one write".to_owned())),
    }
}

/// Handles `BatchExecuteStatement`. Each statement has its own outcome.
pub(super) fn statements(
    store: &mut Store,
    request: &Value,
    now: u64,
    conditions: &mut dyn Conditions,
) -> Result<Value, Refusal> {
    let request = Request::of(request, &["Statements"])?;
    let statements = request.array("Statements")?;
    if statements.is_empty() || statements.len() > MOST_STATEMENTS {
        return Err(Invalid(format!("a batch has between 1 and {MOST_STATEMENTS} statements")).into());
    }
    // The statements borrow names from the schema while the store is changing.
    let schema = Arc::clone(&store.schema);
    let statements: Vec<_> = statements.iter().map(|statement| Statement::read(&schema, statement)).collect();
    let mut keys = BTreeSet::new();
    if !statements.iter().flatten().all(|statement| keys.insert(&statement.write.key)) {
        return Err(Invalid("Provided list of item keys contains duplicates".to_owned()).into());
    }
    let respond = |statement: &Checked<Statement<'_>>| match statement {
        Ok(statement) => carry_out(store, statement, now, conditions),
        Err(Invalid(message)) => json!({ "Error": Fault::Invalid(message.clone()).reason() }),
    };
    let responses: Vec<_> = statements.iter().map(respond).collect();
    Ok(json!({ "Responses": responses }))
}

fn carry_out(store: &mut Store, statement: &Statement<'_>, now: u64, conditions: &mut dyn Conditions) -> Value {
    match statement.write.carry_out(store, now, conditions) {
        Ok([_, after]) => {
            let mut response = json!({ "TableName": statement.table });
            if let Some(item) = after.filter(|_| statement.returns_new) {
                response["Item"] = object(&item);
            }
            response
        }
        Err(Fault::Lost(_)) if statement.inserts() => {
            let message = "Duplicate primary key exists in table";
            let error = json!({ "Code": "DuplicateItem", "Message": message });
            json!({ "TableName": statement.table, "Error": error })
        }
        Err(fault @ Fault::Invalid(_)) => json!({ "Error": fault.reason() }),
        Err(fault) => json!({ "TableName": statement.table, "Error": fault.reason() }),
    }
}
