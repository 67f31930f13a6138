//! Batched writes in PartiQL: one round trip for up to 25 concurrent writes, each with a separate condition and
//! outcome, at the price of single writes.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html>

use super::{
    condition::{Condition, is_new},
    error::TableError,
    key::Item,
    retry::TableResponse::{self, Decided},
    value::Path,
    write::{Assignment, Change, Put, Write, Written},
};
use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeValue, BatchStatementErrorCodeEnum, BatchStatementRequest, BatchStatementResponse,
        ReturnValuesOnConditionCheckFailure,
    },
};
use base::batcher::Calls;

const WRITING: &str = "writing items";

/// A conditional write of one item in PartiQL.
#[derive(Debug, Clone)]
pub struct Statement {
    verb: Verb,
    /// Whether an update returns its item. An item that is not needed would take time to send and to parse.
    read: bool,
    pk: String,
    sk: String,
    changes: String,
    conditions: String,
    changed: Vec<AttributeValue>,
    compared: Vec<AttributeValue>,
    /// The item's key as one string; a batch may contain it only once.
    exclusive_key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Insert,
    Update,
}

impl Statement {
    /// The write of an item that must not exist yet.
    pub fn insert(item: Item) -> Self {
        let key = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
        let mut statement = Self::new(Verb::Insert, key("pk"), key("sk"), false);
        let mut members: Vec<_> = item.into_iter().collect();
        members.sort_by(|(one, _), (other, _)| one.cmp(other)); // equal shapes get the same text
        let names: Vec<_> = members.iter().map(|(name, _)| format!("'{name}': ?")).collect();
        statement.changes = names.join(", ");
        statement.changed = members.into_iter().map(|(_, value)| value).collect();
        statement
    }

    fn new(verb: Verb, pk: String, sk: String, read: bool) -> Self {
        let exclusive_key = format!("{pk}\n{sk}");
        let changes = String::new();
        let conditions = String::new();
        let changed = Vec::new();
        let compared = Vec::new();
        Self { verb, read, pk, sk, changes, conditions, changed, compared, exclusive_key }
    }

    /// A write in PartiQL; `None` for writes that are sent alone: additions, attributes set only if absent, removals of
    /// items, puts unless their only condition is that the item is new, and changes without a condition. An UPDATE
    /// would not create a missing item.
    pub(super) fn of(write: &Write, read: bool) -> Option<Self> {
        match write {
            Write::Put(Put { item, conditions }) if *conditions == [is_new()] => Some(Self::insert(item.clone())),
            Write::Change(Change { key, assignments, conditions }) if !conditions.is_empty() => {
                let mut statement = Self::new(Verb::Update, key.partition.clone(), key.sort.clone(), read);
                // PartiQL requires all SETs before all REMOVEs.
                let (removals, sets): (Vec<_>, Vec<_>) =
                    assignments.iter().partition(|assignment| matches!(assignment, Assignment::Remove(_)));
                for assignment in sets.into_iter().chain(removals) {
                    match assignment {
                        Assignment::Set(path, value) => {
                            statement.changes.push_str(&format!(" SET {}=?", quoted(path)));
                            statement.changed.push(value.0.clone());
                        }
                        Assignment::Remove(path) => statement.changes.push_str(&format!(" REMOVE {}", quoted(path))),
                        Assignment::SetIfAbsent(..) | Assignment::Add(..) => return None,
                    }
                }
                for condition in conditions {
                    let text = statement.condition(condition);
                    statement.conditions.push_str(&format!(" AND {text}"));
                }
                Some(statement)
            }
            Write::Put(_) | Write::Change(_) | Write::Delete(_) => None,
        }
    }

    fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Is(path, comparison, value) => {
                self.compared.push(value.0.clone());
                format!("{} {} ?", quoted(path), comparison.sign())
            }
            Condition::BeginsWith(path, prefix) => {
                self.compared.push(prefix.0.clone());
                format!("begins_with({}, ?)", quoted(path))
            }
            Condition::Absent(path) => format!("{} IS MISSING", quoted(path)),
            Condition::Present(path) => format!("{} IS NOT MISSING", quoted(path)),
            Condition::Any(conditions) => self.group(conditions, " OR "),
            Condition::All(conditions) => self.group(conditions, " AND "),
        }
    }

    fn group(&mut self, conditions: &[Condition], word: &str) -> String {
        let parts: Vec<_> = conditions.iter().map(|condition| self.condition(condition)).collect();
        format!("({})", parts.join(word))
    }

    fn request(&self, table: &str) -> Result<BatchStatementRequest, TableError> {
        let (text, parameters) = match self.verb {
            Verb::Insert => (format!("INSERT INTO \"{table}\" VALUE {{{}}}", self.changes), self.changed.clone()),
            Verb::Update => {
                let key = [&self.pk, &self.sk].map(|part| AttributeValue::S(part.clone()));
                let returning = if self.read { " RETURNING ALL NEW *" } else { "" };
                let text = format!(
                    "UPDATE \"{table}\"{} WHERE \"pk\"=? AND \"sk\"=?{}{returning}",
                    self.changes, self.conditions
                );
                (text, self.changed.iter().cloned().chain(key).chain(self.compared.iter().cloned()).collect())
            }
        };
        let request = BatchStatementRequest::builder().statement(text).set_parameters(Some(parameters));
        let on_loss = self.read.then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        let request = request.set_return_values_on_condition_check_failure(on_loss);
        request.build().map_err(TableError::unbuilt(WRITING))
    }
}

/// A path as PartiQL spells it.
fn quoted(path: &Path) -> String {
    path.spelt(|name| format!("\"{name}\""))
}

/// Batched writes.
pub struct Writes {
    /// A client without retries.
    pub(super) client: Client,
    pub(super) table: String,
}

impl Calls for Writes {
    type Request = Statement;
    /// The item after an update, or the existing item if a condition did not hold; empty or `None` unless the statement
    /// returns it.
    type Response = TableResponse<Written<Item>>;
    const LIMIT: usize = 25;
    const STAGE: &'static str = "calls: writes";

    async fn call(&self, statements: Vec<Statement>) -> Vec<Self::Response> {
        match self.send(&statements).await {
            Ok(responses) => {
                let mut responses: Vec<_> = responses.into_iter().map(response).collect();
                let missing = || Decided(Err(TableError::Missing("a statement's response")));
                responses.resize_with(statements.len(), missing);
                responses
            }
            Err(error) => statements.iter().map(|_| TableResponse::failed(error.clone())).collect(),
        }
    }

    fn exclusive_key(statement: &Statement) -> Option<&str> {
        Some(&statement.exclusive_key)
    }
}

impl Writes {
    async fn send(&self, statements: &[Statement]) -> Result<Vec<BatchStatementResponse>, TableError> {
        let requests = statements.iter().map(|statement| statement.request(&self.table)).collect::<Result<_, _>>()?;
        let response = self.client.batch_execute_statement().set_statements(Some(requests)).send().await;
        Ok(response.map_err(TableError::sdk(WRITING))?.responses.unwrap_or_default())
    }
}

fn response(response: BatchStatementResponse) -> TableResponse<Written<Item>> {
    use BatchStatementErrorCodeEnum::{ConditionalCheckFailed, DuplicateItem};
    let Some(error) = response.error else { return Decided(Ok(Written::Done(response.item.unwrap_or_default()))) };
    match error.code {
        Some(ConditionalCheckFailed | DuplicateItem) => Decided(Ok(Written::Lost(error.item))),
        code => TableResponse::refused(WRITING, code.as_ref().map_or("no code", |code| code.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::value::Value;
    use crate::table::{
        condition::{absent, at_most, is},
        write::Delete,
    };

    fn text(value: &str) -> AttributeValue {
        Value::text(value).0
    }

    fn number(value: u32) -> AttributeValue {
        Value::number(value).0
    }

    #[test]
    fn a_change_becomes_a_statement_with_its_conditions() {
        let change = Change::of((String::from("DLV#1"), String::from("HEAD")))
            .remove("dueAt")
            .set("status", "retrying")
            .only_if(is("attemptCount", 1_u32))
            .only_if(absent("resumeAt").or(at_most("resumeAt", 5_u32)));
        let change = change.into();
        for (read, returning, lost) in
            [(false, "", None), (true, " RETURNING ALL NEW *", Some(ReturnValuesOnConditionCheckFailure::AllOld))]
        {
            let request = Statement::of(&change, read).expect("PartiQL").request("table").expect("a request");
            let update = "UPDATE \"table\" SET \"status\"=? REMOVE \"dueAt\" WHERE \"pk\"=? AND \"sk\"=? \
                          AND \"attemptCount\" = ? AND (\"resumeAt\" IS MISSING OR \"resumeAt\" <= ?)";
            assert_eq!(request.statement(), format!("{update}{returning}"));
            assert_eq!(request.parameters(), [text("retrying"), text("DLV#1"), text("HEAD"), number(1), number(5)]);
            assert_eq!(request.return_values_on_condition_check_failure().cloned(), lost);
        }
    }

    #[test]
    fn a_write_that_partiql_cannot_express_is_not_batched() {
        let key = || (String::from("W#1"), String::from("HEAD"));
        let known = || Change::of(key()).only_if(is("version", 1_u32));
        let is_batched = |write: Write| Statement::of(&write, false).is_some();
        assert!(is_batched(known().set("a", "b").into()));
        assert!(!is_batched(known().add("count", 1_u32).into()));
        assert!(!is_batched(known().set_if_absent("since", 1_u32).into()));
        assert!(!is_batched(Delete::of(key()).into()));
        // An UpdateItem without a condition would create the item; PartiQL's UPDATE would not.
        assert!(!is_batched(Change::of(key()).set("a", "b").into()));
    }

    #[test]
    fn an_insertion_names_every_attribute() {
        let item = [("sk", "HEAD"), ("pk", "DLV#1")].map(|(name, value)| (name.to_owned(), text(value)));
        let request = Statement::insert(item.into()).request("table").expect("a request");
        assert_eq!(request.statement(), "INSERT INTO \"table\" VALUE {'pk': ?, 'sk': ?}");
        assert_eq!(request.parameters(), [text("DLV#1"), text("HEAD")]);
    }
}
