//! The request that runs the task over HTTP.

use problem::{JsonBody, Problem};
use storage::SecretText;

/// A request to run the task, as it came over HTTP. It has no `Debug`, since the key is a secret.
pub struct TaskRequest {
    pub(super) key: SecretText,
    pub(super) environment: String,
    pub(super) live: bool,
}

impl TaskRequest {
    /// Reads a request's body, and the values that its query has for `live`.
    pub fn read(body: &[u8], live: &[&str]) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let (key, environment) = (body.required_text("key"), body.required_text("environment"));
        let live = match live {
            [] | ["false"] => false,
            ["true"] => true,
            _ => {
                body.violations.add("live", "must be true or false, and come once");
                false
            }
        };
        body.finish()?;
        // A missing text is a violation.
        Ok(Self { key: SecretText::new(key.unwrap_or_default()), environment: environment.unwrap_or_default(), live })
    }
}
