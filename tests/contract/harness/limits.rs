//! Requests refused by a limit.

use serde_json::json;

use super::ApiResponse;

/// Asserts that this limit refused a request, according to the Problem and the headers, and returns the number of
/// seconds to wait.
pub fn is_limited(answer: &ApiResponse, name: &str, limit: usize, window: u64) -> u64 {
    let expected = json!({ "limitName": name, "limit": limit, "windowSeconds": window });
    assert_eq!((answer.status, &answer.json()["properties"]), (429, &expected), "{}", answer.exchange);
    let wait: u64 = answer.header("retry-after").parse().expect("a number of seconds");
    assert_eq!(answer.header("ratelimit"), format!("\"{name}\";r=0;t={wait}"), "{}", answer.exchange);
    assert_eq!(answer.header("ratelimit-policy"), format!("\"{name}\";q={limit};w={window}"), "{}", answer.exchange);
    wait
}
