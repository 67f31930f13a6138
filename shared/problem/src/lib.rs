#![doc = include_str!("../README.md")]

pub mod explanation;
pub mod json_body;
pub mod kind;
pub mod name;
pub mod near;
pub mod overlap;
mod problem;
pub mod query;
mod time;
pub mod unseen;
mod violation;

pub use explanation::{Explanation, Link};
pub use json_body::{JsonBody, Members, Violations, nothing_said};
pub use kind::ProblemKind;
pub use problem::Problem;
pub use query::Query;
pub use violation::Violation;
