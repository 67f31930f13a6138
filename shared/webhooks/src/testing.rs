//! Helpers of several tests of this crate.

use crate::events::{catalogue, type_details};
use problem::Problem;
use serde_json::Value;

/// The fields of a Problem's violations.
pub fn fields(problem: &Problem) -> Vec<String> {
    let violations = problem.properties["violations"].as_array().expect("a list");
    violations.iter().map(|violation| violation["field"].as_str().expect("a field").to_owned()).collect()
}

/// Panics unless data conform to the schema of their type.
pub fn assert_conforms(kind: &str, data: &str) {
    let kind = catalogue::find(kind).expect("a type of the catalogue");
    let schema: Value = serde_json::from_str(&type_details::schema(kind)).expect("JSON");
    let schema = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema");
    let data = serde_json::from_str(data).expect("JSON");
    let faults: Vec<_> = schema.iter_errors(&data).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{}: {faults:#?}", kind.value);
}
