//! The changes that an update makes to an item.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{
    Item,
    decimal::Decimal,
    parser::{Parser, Token},
    refusal::{Checked, Invalid},
    value::{Path, stored},
};

/// A change to one attribute, or to part of it.
#[derive(Debug, PartialEq)]
pub(super) struct Action<'a> {
    pub path: Path<'a>,
    effect: Effect<'a>,
}

#[derive(Debug, PartialEq)]
enum Effect<'a> {
    Set(Value),
    SetIfAbsent(Path<'a>, Value),
    Add(Value),
    Remove,
}

/// Reads an update expression.
pub(super) fn read_expression<'a>(parser: &mut Parser<'a, '_>) -> Checked<Vec<Action<'a>>> {
    let mut actions = Vec::new();
    let mut read = Vec::new();
    loop {
        let clause = parser.next()?;
        if read.contains(&clause) {
            return Err(parser.unknown("second clause of the same kind"));
        }
        read.push(clause);
        let one = match clause {
            Token::End if !actions.is_empty() => break,
            Token::Word("SET") => set,
            Token::Word("ADD") => add,
            Token::Word("REMOVE") => remove,
            _ => return Err(parser.unknown("clause of an update")),
        };
        actions.push(one(parser)?);
        while parser.takes(Token::Sign(","))? {
            actions.push(one(parser)?);
        }
    }
    distinct(actions)
}

/// Reads a statement's changes, each of which is a separate clause.
pub(super) fn read_clauses<'a>(parser: &mut Parser<'a, '_>) -> Checked<Vec<Action<'a>>> {
    let mut actions = Vec::new();
    loop {
        if parser.takes(Token::Word("SET"))? {
            actions.push(set(parser)?);
        } else if parser.takes(Token::Word("REMOVE"))? {
            actions.push(remove(parser)?);
        } else {
            return distinct(actions);
        }
    }
}

fn set<'a>(parser: &mut Parser<'a, '_>) -> Checked<Action<'a>> {
    let path = parser.path()?;
    parser.sign("=")?;
    if !parser.takes(Token::Word("if_not_exists"))? {
        return Ok(Action { path, effect: Effect::Set(stored(parser.value()?)?) });
    }
    parser.sign("(")?;
    let present = parser.path()?;
    parser.sign(",")?;
    let value = stored(parser.value()?)?;
    parser.sign(")")?;
    Ok(Action { path, effect: Effect::SetIfAbsent(present, value) })
}

fn add<'a>(parser: &mut Parser<'a, '_>) -> Checked<Action<'a>> {
    let path = parser.path()?;
    let value = stored(parser.value()?)?;
    if value.get("N").is_none() {
        return Err(Invalid::unknown("value to add", value));
    }
    Ok(Action { path, effect: Effect::Add(value) })
}

fn remove<'a>(parser: &mut Parser<'a, '_>) -> Checked<Action<'a>> {
    Ok(Action { path: parser.path()?, effect: Effect::Remove })
}

fn distinct(actions: Vec<Action<'_>>) -> Checked<Vec<Action<'_>>> {
    for (position, action) in actions.iter().enumerate() {
        if actions[..position].iter().any(|earlier| earlier.path.overlaps(&action.path)) {
            return Err(Invalid(format!("Two document paths overlap with each other: {}", action.path.root)));
        }
    }
    Ok(actions)
}

/// Applies these changes. Each change sees the item as it was before all of them.
pub(super) fn apply(actions: &[Action<'_>], before: &Item) -> Checked<Item> {
    let mut item = before.clone();
    let mut removed = Vec::new();
    for Action { path, effect } in actions {
        match effect {
            Effect::Set(value) => path.set(&mut item, value.clone())?,
            Effect::SetIfAbsent(present, value) => {
                path.set(&mut item, present.of(before).unwrap_or(value).clone())?;
            }
            Effect::Add(value) => {
                let sum = match path.of(before) {
                    Some(number) => sum(number, value)?,
                    None => value.clone(),
                };
                path.set(&mut item, sum)?;
            }
            Effect::Remove => removed.push(path),
        }
    }
    // Remove elements from the ends of the lists first, so that the positions of the others stay valid.
    removed.sort_by_key(|path| Reverse(path.position().unwrap_or(usize::MAX)));
    removed.into_iter().try_for_each(|path| path.remove(&mut item))?;
    Ok(item)
}

fn sum(number: &Value, value: &Value) -> Checked<Value> {
    let read = |number: &Value| number.get("N").and_then(Value::as_str).and_then(Decimal::read);
    let (Some(number), Some(value)) = (read(number), read(value)) else {
        return Err(Invalid("An operand in the update expression has an incorrect data type".to_owned()));
    };
    let sum = number.plus(value).ok_or_else(|| Invalid("Number overflow".to_owned()))?;
    Ok(json!({ "N": sum.to_string() }))
}
