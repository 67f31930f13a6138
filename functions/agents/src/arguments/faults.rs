//! Arguments that do not conform to their tool's schema, each as a violation with its requirement.

use std::collections::BTreeSet;

use problem::{Problem, ProblemKind, Rule, Violation, Violations, near};
use serde_json::{Map, Value};

use crate::schemas::{self, allows};

/// The message about an argument that the schema does not have.
const UNKNOWN: &str = "is not an argument of this tool";

/// Refuses members of the contract that tools leave out, and that the use case would accept.
///
/// # Errors
/// 400 if there is one.
pub fn check_left_out(arguments: &Map<String, Value>) -> Result<(), Problem> {
    let mut violations = Violations::default();
    for name in arguments.keys().filter(|name| schemas::is_left_out(name)) {
        violations.add(name.as_str(), Rule::Unknown, UNKNOWN);
    }
    violations.check()
}

/// Adds the other arguments that do not conform to the tool's schema to a Problem about invalid arguments. A call first
/// reads its managing entity and identifiers, and the use case reads the rest, so the model would otherwise learn about
/// the faults one at a time. For an unknown argument, the Problem lists the schema's arguments.
pub fn with_other_faults(problem: Problem, arguments: &Map<String, Value>, schema: &Value) -> Problem {
    if problem.kind != ProblemKind::InvalidRequest {
        return problem;
    }
    let names: Vec<_> = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let found = problem.violations();
    // `/eventList/2` and `/headers/Host` are faults of `eventList` and `headers`.
    let known: BTreeSet<String> = found.iter().filter_map(|violation| violation.pointer.steps().next()).collect();
    // Only a limited number of violations is kept.
    let mut violations = Violations::default();
    found.into_iter().for_each(|violation| violations.push(violation));
    for violation in faults(arguments, schema) {
        if violation.pointer.steps().next().is_none_or(|argument| !known.contains(&argument)) {
            violations.push(violation);
        }
    }
    let mut violations = violations.into_list();
    for (position, violation) in violations.iter_mut().filter(|found| is_unknown(found)).enumerate() {
        let compared = if position < near::MAX_COMPARED { &names[..] } else { &[] };
        violation.detail = format!("{UNKNOWN}{}", near::hint(&violation.name(), compared));
    }
    let Problem { detail, properties, .. } = Problem::invalid(violations);
    Problem { detail, properties, ..problem }
}

/// Whether a violation is about an unknown argument, rather than about a member within an argument.
fn is_unknown(violation: &Violation) -> bool {
    violation.rule == Rule::Unknown && violation.pointer.steps().count() == 1
}

/// The arguments that do not conform to a tool's schema, each with its requirement.
fn faults(arguments: &Map<String, Value>, schema: &Value) -> Vec<Violation> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !arguments.contains_key(*name));
    let missing = missing.map(|name| Violation::body(name, Rule::Required, "is missing"));
    let of_value = |(name, value): (&String, &Value)| match &schema["properties"][name] {
        Value::Null => Some(Violation::body(name.as_str(), Rule::Unknown, UNKNOWN)),
        schema => fault(value, schema).map(|Fault { rule, detail }| Violation::body(name.as_str(), rule, detail)),
    };
    missing.chain(arguments.iter().filter_map(of_value)).collect()
}

/// The requirement that a value violates.
struct Fault {
    rule: Rule,
    detail: String,
}

/// The requirement that a value violates: its type, its permitted values or its range.
fn fault(value: &Value, schema: &Value) -> Option<Fault> {
    let kinds = [
        ("string", "a string", value.is_string()),
        ("integer", "a whole number", value.is_i64() || value.is_u64()),
        ("boolean", "true or false", value.is_boolean()),
        ("array", "an array", value.is_array()),
        ("object", "an object", value.is_object()),
    ];
    if value.is_null() && allows(schema, "null") {
        return None;
    }
    let schema = schemas::besides_null(schema);
    if let Some((_, what, _)) = kinds.iter().find(|(name, _, is_so)| allows(schema, name) && !is_so) {
        return Some(Fault { rule: Rule::InvalidType, detail: format!("must be {what}") });
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
        return Some(Fault { rule: Rule::UnknownValue, detail: format!("must be one of {}", allowed.join(", ")) });
    }
    let is_beyond = |number: i64| {
        schema["minimum"].as_i64().is_some_and(|least| number < least)
            || schema["maximum"].as_i64().is_some_and(|most| number > most)
    };
    if value.as_i64().is_some_and(is_beyond) {
        let detail = match schema["maximum"].as_i64() {
            Some(most) => format!("must be {} to {most}", schema["minimum"].as_i64().unwrap_or_default()),
            None => format!("must be {} or more", schema["minimum"]),
        };
        return Some(Fault { rule: Rule::OutOfRange, detail });
    }
    value.as_array().into_iter().flatten().find_map(|item| fault(item, &schema["items"]))
}

#[cfg(test)]
mod tests {
    use problem::Pointer;
    use serde_json::json;

    use super::*;
    use crate::tools;

    #[test]
    fn a_problem_names_all_arguments_that_do_not_conform() {
        let fields = |problem: &Problem| problem.violations().iter().map(Violation::name).collect::<Vec<_>>();
        let of = |problem: Problem, tool: &str, arguments: Value| {
            let schema = (tools::find(tool).expect("a tool").input)();
            with_other_faults(problem, arguments.as_object().expect("an object"), &schema)
        };
        let missing = || Violation::body("managingEntity", Rule::Required, "is missing").into();
        let arguments = json!({ "name": 1, "eventList": "x", "headers": {}, "enabled": "yes", "z": 1 });
        let all = of(missing(), "create_webhook", arguments);
        assert_eq!(fields(&all), ["managingEntity", "enabled", "eventList", "name", "z"]);
        let arguments = json!({ "status": ["failed", "gone"], "limit": 101, "type": "x", "createdUntil": 1 });
        let all = of(missing(), "list_deliveries", arguments);
        assert_eq!(fields(&all), ["managingEntity", "createdUntil", "limit", "status"]);
        let limit = Violation::body("limit", Rule::OutOfRange, "must be 1 to 100");
        assert!(all.violations().contains(&limit), "{all:?}");
        let arguments = json!({ "webhookIdentifier": "whk_1", "maxAttemptsPerSecond": 101, "eventFilter": 1 });
        let all = of(missing(), "change_webhook", arguments);
        assert_eq!(fields(&all), ["managingEntity", "eventFilter", "maxAttemptsPerSecond"]);
        let limit = Violation::body("maxAttemptsPerSecond", Rule::OutOfRange, "must be 1 to 100");
        assert!(all.violations().contains(&limit), "{all:?}");
        // Violations that the use case found are not listed again.
        let found = Violation::body(Pointer::from("eventList").at(0), Rule::UnknownValue, "must be a type").into();
        let all = of(found, "create_webhook", json!({ "name": "n", "eventUrl": "x", "eventList": [1] }));
        assert_eq!(fields(&all), ["eventList[0]"]);
        // The names are those of the schema, regardless of the use case.
        let unknown = "is not a member of this operation; it accepts entity";
        let unknown = Violation::body("filter", Rule::Unknown, unknown).into();
        let all = of(unknown, "change_webhook", json!({ "webhookIdentifier": "whk_1", "filter": 1 }));
        assert_eq!(all.detail, "`filter` is not an argument of this tool (did you mean eventFilter?).");
        let left_out = check_left_out(json!({ "entity": {} }).as_object().expect("an object")).expect_err("refused");
        let all = of(left_out, "change_webhook", json!({ "webhookIdentifier": "whk_1", "entity": {} }));
        assert!(all.detail.contains("it accepts") && all.detail.contains("webhookIdentifier"), "{}", all.detail);
        let other = of(Problem::internal("a test"), "create_webhook", json!({}));
        assert_eq!(other.kind, ProblemKind::InternalError);
    }

    #[test]
    fn thousands_of_unknown_arguments_get_a_short_answer() {
        let schema = (tools::find("list_webhooks").expect("a tool").input)();
        let arguments: Map<_, _> = (0..50_000).map(|number| (format!("u{number}"), json!(1))).collect();
        let missing = Violation::body("managingEntity", Rule::Required, "is missing");
        let problem = with_other_faults(missing.into(), &arguments, &schema);
        assert!((10..=200).contains(&problem.violations().len()));
    }
}
