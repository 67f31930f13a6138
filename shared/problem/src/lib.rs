#![doc = include_str!("../README.md")]

pub mod canonical;
mod duplicates;
pub mod json_body;
pub mod kind;
mod limit;
mod members;
mod metadata;
pub mod name;
pub mod near;
pub mod overlap;
mod private_names;
mod problem;
pub mod query;
mod removed;
mod strings;
pub mod surrogates;
mod time;
pub mod unseen;
mod violation;
mod violations;

pub use json_body::{JsonBody, no_input, plain_integer};
pub use kind::ProblemKind;
pub use limit::RateLimit;
pub use members::Members;
pub use metadata::Metadata;
pub use problem::{Explanation, Link, Problem};
pub use query::Query;
pub use removed::Removed;
pub use violation::{InputPart, MAX_POINTER, Pointer, Rule, Violation, cut};
pub use violations::Violations;
