#![doc = include_str!("../README.md")]

mod access;
mod calls;
mod condition;
mod decision;
mod expression;
mod grant;
mod names;
mod partiql;
mod pattern;
mod policies;
mod review;
mod rights;
mod statement;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use calls::{Call, CallError, Request, accesses, of_mappings};
pub use decision::{Decision, Use};
pub use grant::Grant;
pub use names::Deployed;
pub use review::{IDENTIFIER, Misfit, Review};
pub use rights::{FunctionRights, Rights, RightsError};
pub use statement::StatementError;
