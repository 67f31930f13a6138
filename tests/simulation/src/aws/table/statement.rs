//! PartiQL statements that insert or update one item.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html>

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    condition::Condition,
    parser::{Parser, Placeholders, Token},
    refusal::{Checked, Invalid},
    request::Request,
    schema::Schema,
    update,
    value::Path,
    write::{Change, Write, check_actions, returns_lost},
};

/// A statement.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    pub table: &'a str,
    pub write: Write<'a>,
    /// Whether the response includes the updated item.
    pub returns_new: bool,
}

impl<'a> Statement<'a> {
    pub fn read(schema: &'a Schema, request: &'a Value) -> Checked<Self> {
        let request = Request::of(request, &["Statement", "Parameters", "ReturnValuesOnConditionCheckFailure"])?;
        let parameters = request.member("Parameters").map(|_| request.array("Parameters")).transpose()?;
        let mut placeholders = Placeholders::parameters(parameters.unwrap_or_default());
        let text = request.text("Statement")?.unwrap_or_default();
        let mut parser = Parser::new(text, &mut placeholders);
        let mut statement = match parser.next()? {
            Token::Word("INSERT") => Self::insert(schema, &mut parser)?,
            Token::Word("UPDATE") => Self::update(schema, &mut parser)?,
            _ => return Err(Invalid::unknown("statement", text)),
        };
        parser.end()?;
        placeholders.finish()?;
        statement.write.returns_lost = returns_lost(request)?;
        Ok(statement)
    }

    /// `INSERT INTO "table" VALUE {'name': ?}`
    fn insert(schema: &'a Schema, parser: &mut Parser<'a, '_>) -> Checked<Self> {
        parser.words(&["INTO"])?;
        let table = table(parser)?;
        parser.words(&["VALUE"])?;
        parser.sign("{")?;
        let mut members = Map::new();
        loop {
            let Token::Literal(name) = parser.next()? else { return Err(parser.unknown("name of a member")) };
            parser.sign(":")?;
            if members.insert(name.to_owned(), parser.value()?.clone()).is_some() {
                return Err(parser.unknown("second member of the same name"));
            }
            if !parser.takes(Token::Sign(","))? {
                break;
            }
        }
        parser.sign("}")?;
        let (key, item) = schema.whole_item(&members)?;
        schema.check(&item)?;
        let condition = Some(Condition::Absent(Path { root: &schema.partition, steps: Vec::new() }));
        let write = Write { key, change: Change::Put(Arc::new(item)), condition, returns_lost: false };
        Ok(Self { table, write, returns_new: false })
    }

    /// `UPDATE "table" SET "name"=? REMOVE "name" WHERE "pk"=? AND "sk"=? AND … RETURNING ALL NEW *`
    fn update(schema: &'a Schema, parser: &mut Parser<'a, '_>) -> Checked<Self> {
        let table = table(parser)?;
        let actions = update::read_clauses(parser)?;
        if actions.is_empty() {
            return Err(parser.unknown("clause of an update"));
        }
        check_actions(schema, &actions)?;
        parser.words(&["WHERE"])?;
        let mut conditions = Condition::read(parser)?.parts();
        let mut key_part = |name: &str| {
            let position = conditions.iter().position(|condition| condition.demanded(name).is_some());
            let part = position.and_then(|position| conditions.remove(position).demanded(name));
            part.ok_or_else(|| {
                Invalid("Where clause does not contain a mandatory equality on all key attributes".to_owned())
            })
        };
        let partition = key_part(&schema.partition)?;
        let sort = key_part(&schema.sort)?;
        let key = schema.key_of(|name| {
            let part = if name == schema.partition { partition } else { sort };
            Some(part)
        })?;
        // Unlike the operation `UpdateItem`, the statement changes only an existing item.
        conditions.push(Condition::Present(Path { root: &schema.partition, steps: Vec::new() }));
        let returns_new = parser.takes(Token::Word("RETURNING"))?;
        if returns_new {
            parser.words(&["ALL", "NEW"])?;
            parser.sign("*")?;
        }
        let condition = Some(Condition::All(conditions));
        let write = Write { key, change: Change::Update(actions), condition, returns_lost: false };
        Ok(Self { table, write, returns_new })
    }

    /// Whether the statement inserts an item; if so, the error is different when the item exists.
    pub fn inserts(&self) -> bool {
        matches!(self.write.change, Change::Put(_))
    }
}

fn table<'a>(parser: &mut Parser<'a, '_>) -> Checked<&'a str> {
    match parser.next()? {
        Token::Quoted(table) => Ok(table),
        _ => Err(parser.unknown("name of a table")),
    }
}
