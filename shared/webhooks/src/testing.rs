//! Helpers shared by several of this crate's tests.

use crate::events::{catalogue, type_details};
use problem::{Problem, Violation};
use serde_json::Value;

/// The names of the values that a Problem refuses.
pub fn refused(problem: &Problem) -> Vec<String> {
    problem.violations().iter().map(Violation::name).collect()
}

/// Panics unless the data conforms to its type's schema.
pub fn assert_conforms(kind: &str, data: &str) {
    let kind = catalogue::find(kind).expect("a type of the catalogue");
    let schema: Value = serde_json::from_str(&type_details::schema(kind)).expect("JSON");
    let schema = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema");
    let data = serde_json::from_str(data).expect("JSON");
    let faults: Vec<_> = schema.iter_errors(&data).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{}: {faults:#?}", kind.value);
}
