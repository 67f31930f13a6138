//! Limits, as a refused client sees them: in the Problem, and in the headers of
//! [draft-ietf-httpapi-ratelimit-headers-10](https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-10).

use http::HeaderName;
use serde_json::Value;

use crate::{Problem, ProblemKind};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// A limit per window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The name for programs. docs/reference.md lists all names.
    pub name: &'static str,
    /// How many requests, or other counted things, a window allows.
    pub limit: u32,
    /// A window's length, in seconds.
    pub window: u32,
}

impl Problem {
    /// 429: the limit is reached, and the next window begins in this many seconds.
    pub fn rate_limited(kind: ProblemKind, detail: impl Into<String>, reached: RateLimit, wait: u64) -> Self {
        let RateLimit { name, limit, window } = reached;
        Self::new(kind, detail)
            .with_limit(name, limit)
            .with_property("windowSeconds", window)
            .with_header(RATE_LIMIT, format!("\"{name}\";r=0;t={wait}"))
            .with_header(RATE_LIMIT_POLICY, format!("\"{name}\";q={limit};w={window}"))
            .with_retry_after(wait)
    }

    /// Adds the limit that refuses the request.
    pub fn with_limit(self, name: &'static str, limit: impl Into<Value>) -> Self {
        self.with_property("limitName", name).with_property("limit", limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refused_client_learns_the_limit_and_when_to_try_again() {
        let reached = RateLimit { name: "recoveries", limit: 20, window: 60 };
        let problem = Problem::rate_limited(ProblemKind::TooManyRequests, "Wait.", reached, 17);
        let expected = json!({ "limitName": "recoveries", "limit": 20, "windowSeconds": 60 });
        assert_eq!(Some(&problem.properties), expected.as_object());
        let headers: Vec<_> =
            problem.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("a text"))).collect();
        let expected = [
            ("ratelimit", "\"recoveries\";r=0;t=17"),
            ("ratelimit-policy", "\"recoveries\";q=20;w=60"),
            ("retry-after", "17"),
        ];
        assert_eq!(headers, expected);
    }
}
