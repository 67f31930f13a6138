//! The violations that a Problem lists.

use serde_json::Value;

/// The invalid values, each as the part of the request and the pointer, such as `body/eventList/2` or `query/limit`.
pub fn invalid_values(problem: &Value) -> Vec<String> {
    let violations = problem["properties"]["violations"].as_array();
    let violations = violations.unwrap_or_else(|| panic!("a Problem without violations: {problem:#}"));
    violations.iter().map(value).collect()
}

/// A violation's invalid value; asserts that the violation has every member.
pub fn value(violation: &Value) -> String {
    let member = |name: &str| match violation[name].as_str() {
        Some(text) => text,
        None => panic!("a violation without `{name}`: {violation:#}"),
    };
    assert!(!member("code").is_empty() && !member("detail").is_empty(), "{violation:#}");
    format!("{}{}", member("in"), member("pointer"))
}
