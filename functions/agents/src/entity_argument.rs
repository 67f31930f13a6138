//! The argument for a call's managing entity, shared by all tools that act for one.

use auth::Entities;
use problem::{Problem, Rule, Violation};
use serde_json::{Map, Value, json};

use crate::caller::MANAGING_ENTITY;

/// The maximum number of managing entities in a schema.
const MOST_LISTED: usize = 100;

/// Adds the argument to a tool's schema, for a caller that may act for these entities. It is optional if there is only
/// one entity.
pub fn added_to(mut schema: Value, entities: &Entities) -> Value {
    let covered: Vec<&str> = entities.iter().collect();
    let may_choose = covered.len() != 1 || covered == [Entities::EVERY];
    let mut property = json!({"type": "string", "description": description(may_choose)});
    if !covered.contains(&Entities::EVERY) && covered.len() <= MOST_LISTED {
        property["enum"] = json!(covered);
    }
    schema["properties"][MANAGING_ENTITY] = property;
    if may_choose {
        match schema["required"].as_array_mut() {
            Some(required) => required.push(MANAGING_ENTITY.into()),
            None => schema["required"] = json!([MANAGING_ENTITY]),
        }
    }
    schema
}

/// A tool's arguments as any caller may send them: its schema with this optional argument.
pub fn beside(mut schema: Value) -> Value {
    schema["properties"][MANAGING_ENTITY] = json!({ "type": "string" });
    schema
}

const fn description(may_choose: bool) -> &'static str {
    if may_choose {
        "The call's managing entity, such as a hotel."
    } else {
        "The call's managing entity. Optional, since there is only one."
    }
}

/// Takes the argument out of a call's arguments.
///
/// # Errors
/// 400 if it is not a string.
pub fn take(arguments: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    match arguments.remove(MANAGING_ENTITY) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(entity)) => Ok(Some(entity)),
        Some(_) => Err(Violation::body(MANAGING_ENTITY, Rule::InvalidType, "must be a string").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_entity_counts_as_absent() {
        let taken = |value: Value| take(&mut Map::from_iter([(MANAGING_ENTITY.to_owned(), value)]));
        assert_eq!(taken(Value::Null).expect("none"), None);
        assert_eq!(taken(json!("hotel")).expect("a name").as_deref(), Some("hotel"));
        assert!(taken(json!(7)).is_err());
    }

    #[test]
    fn the_argument_is_required_unless_the_token_covers_one_entity() {
        let schema = |entities: &[&str]| {
            let entities = Entities::new(entities.iter().map(|entity| (*entity).to_owned()));
            added_to(json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}), &entities)
        };
        let one = schema(&["hotel"]);
        assert_eq!((&one["required"], &one["properties"][MANAGING_ENTITY]["enum"]), (&json!(["a"]), &json!(["hotel"])));
        let two = schema(&["hotel", "inn"]);
        assert_eq!(two["required"], json!(["a", MANAGING_ENTITY]));
        assert_eq!(two["properties"][MANAGING_ENTITY]["enum"], json!(["hotel", "inn"]));
        let every = schema(&["*"]);
        assert_eq!(every["required"], json!(["a", MANAGING_ENTITY]));
        assert!(every["properties"][MANAGING_ENTITY].get("enum").is_none());
    }
}
