//! Problems (RFC 9457), and the reading of typed input, member by member, with all its violations at once.

pub mod json_body;
pub mod kind;
mod problem;
pub mod query;
mod violation;

pub use json_body::{JsonBody, Members, Violations, nothing_said};
pub use kind::ProblemKind;
pub use problem::Problem;
pub use query::Query;
pub use violation::Violation;
