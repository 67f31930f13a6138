//! Helpers of several tests of this crate.

use problem::Problem;

/// The fields of a Problem's violations.
pub fn fields(problem: &Problem) -> Vec<String> {
    let violations = problem.properties["violations"].as_array().expect("a list");
    violations.iter().map(|violation| violation["field"].as_str().expect("a field").to_owned()).collect()
}
