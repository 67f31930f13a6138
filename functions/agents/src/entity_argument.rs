//! The argument by which a call names its managing entity: the same for all tools that act for one.

use auth::Entities;
use problem::Problem;
use serde_json::{Map, Value, json};

use crate::caller::MANAGING_ENTITY;

/// The most managing entities that a schema lists.
const MOST_LISTED: usize = 100;

/// A tool's schema with this argument, for a caller who may act for these entities: it may be absent where there is one.
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

const fn description(may_choose: bool) -> &'static str {
    if may_choose {
        "The managing entity that the call is about, such as a hotel."
    } else {
        "The managing entity that the call is about. There is one, so that it need not be named."
    }
}

/// Takes the argument out of a call's.
///
/// # Errors
/// 400 where it is no text.
pub fn take(arguments: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    match arguments.remove(MANAGING_ENTITY) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(entity)) => Ok(Some(entity)),
        Some(_) => Err(Problem::invalid_value(MANAGING_ENTITY, "must be a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_that_is_null_is_one_that_is_not_named() {
        let taken = |value: Value| take(&mut Map::from_iter([(MANAGING_ENTITY.to_owned(), value)]));
        assert_eq!(taken(Value::Null).expect("none"), None);
        assert_eq!(taken(json!("hotel")).expect("a name").as_deref(), Some("hotel"));
        assert!(taken(json!(7)).is_err());
    }

    #[test]
    fn an_application_of_several_entities_names_one_and_an_application_of_one_need_not() {
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
