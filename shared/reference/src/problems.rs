//! The uses of each kind of Problem.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::document::{component, list, members, operations, resolved, text};

/// The part of an address before the kind.
const BEFORE: &str = "/problems/";

/// The minimum number of operations that return a common error.
const COMMON: usize = 12;

/// The names of the common errors.
pub fn common_errors(document: &Value) -> BTreeSet<&str> {
    let mut uses = BTreeMap::<&str, usize>::new();
    for (_, name) in references(document) {
        *uses.entry(name).or_default() += 1;
    }
    uses.into_iter().filter(|(_, count)| *count >= COMMON).map(|(name, _)| name).collect()
}

/// Operations' references to errors, each with its status and name.
pub fn references(document: &Value) -> Vec<(&str, &str)> {
    let of_operations = operations(document).into_iter().flat_map(|operation| members(operation.declared, "responses"));
    of_operations
        .filter(|(status, _)| status.starts_with(['4', '5']))
        .filter_map(|(status, response)| Some((status, component(response)?)))
        .collect()
}

/// A kind's uses in the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProblemUse {
    /// A Problem of this kind, as indented JSON, if the document has one.
    pub example: Option<String>,
    /// The operations that return the kind: the identifier and the summary.
    pub operations: Vec<(String, String)>,
}

/// The uses of each kind that the document names.
pub fn problem_uses(document: &Value) -> BTreeMap<String, ProblemUse> {
    let mut uses = BTreeMap::<String, ProblemUse>::new();
    for operation in operations(document) {
        let mut of_operation = BTreeSet::new();
        for (_, response) in members(operation.declared, "responses") {
            let response = resolved(document, response);
            of_operation.extend(kinds(response));
            for (kind, example) in examples(response) {
                let known = &mut uses.entry(kind).or_default().example;
                // Writing a value as JSON cannot fail.
                *known = known.take().or_else(|| serde_json::to_string_pretty(example).ok());
            }
        }
        for kind in of_operation {
            let operation = (operation.id.to_owned(), operation.summary().to_owned());
            uses.entry(kind).or_default().operations.push(operation);
        }
    }
    uses
}

/// The kinds that a response names: in `x-problem-kinds`, in the pattern of a `type`, or in examples.
pub fn kinds(response: &Value) -> BTreeSet<String> {
    match response {
        Value::Array(elements) => elements.iter().flat_map(kinds).collect(),
        Value::Object(all) => {
            let listed = list(response, "x-problem-kinds").iter().filter_map(Value::as_str).map(str::to_owned);
            let kind = response.get("type");
            let address = kind.and_then(|kind| kind.as_str().or_else(|| text(kind, "pattern")));
            let named = address.into_iter().flat_map(|address| address.split(BEFORE).skip(1)).flat_map(named);
            listed.chain(named).chain(all.values().flat_map(kinds)).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The kinds at the beginning of a string: one, or several in the form of a pattern.
fn named(text: &str) -> Vec<String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let several = match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((several, _)) => several,
        None => text.split(|letter| !is_name(letter)).next().unwrap_or_default(),
    };
    several.split('|').filter(|kind| !kind.is_empty() && kind.chars().all(is_name)).map(str::to_owned).collect()
}

/// The examples of Problems in a response, by kind.
fn examples(response: &Value) -> impl Iterator<Item = (String, &Value)> {
    members(response, "content").flat_map(|(_, content)| members(content, "examples")).filter_map(|(_, example)| {
        let value = example.get("value")?;
        let (_, kind) = text(value, "type")?.split_once(BEFORE)?;
        Some((kind.to_owned(), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_found_in_patterns_and_examples() {
        let of = |text: &str| {
            kinds(&json!({ "a": [{ "type": { "pattern": text } }, { "detail": "see /problems/typo" }] }))
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(of("/problems/not-found$"), ["not-found"]);
        assert_eq!(of("/problems/(key-limit|key-exists)$"), ["key-exists", "key-limit"]);
        let listed = json!({ "content": { "application/problem+json": { "x-problem-kinds": ["gone"] } } });
        assert_eq!(kinds(&listed).into_iter().collect::<Vec<_>>(), ["gone"]);
        assert_eq!(kinds(&json!({ "type": "https://a.example/problems/gone" })).len(), 1);
        assert_eq!(of("https://api.example.com/problems/unauthorized"), ["unauthorized"]);
        assert!(of("/problems/[a-z]+(-[a-z]+)*$").is_empty() && of("/problems/").is_empty());
    }

    #[test]
    fn a_kind_has_an_example_and_its_operations() {
        let example = json!({ "type": "https://a.example/problems/gone", "status": 404 });
        let document = json!({
            "paths": { "/a": {
                "get": { "operationId": "show", "summary": "Show", "responses": { "404": { "$ref": "#/components/responses/Gone" } } },
                "delete": { "operationId": "remove", "responses": { "404": { "$ref": "#/components/responses/Gone" } } },
            } },
            "components": { "responses": { "Gone": { "content": { "application/problem+json": {
                "examples": { "gone": { "value": example } },
            } } } } },
        });
        let uses = problem_uses(&document);
        let gone = &uses["gone"];
        assert_eq!(gone.operations, [("show".into(), "Show".into()), ("remove".into(), "remove".to_owned())]);
        let shown: Value = serde_json::from_str(gone.example.as_deref().expect("an example")).expect("it is JSON");
        assert_eq!(shown, example);
    }
}
