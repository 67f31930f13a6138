//! What each function may do on AWS, and whether a call is within it.
//!
//! [`Rights`] reads the policies of every function from template.yaml, with those that SAM adds. [`accesses`] says what a call
//! asks of IAM: which actions, on which resources, with which partition keys. [`FunctionRights::decide`] decides as IAM does.
//! Everything is pure: text in, values out. What cannot be read is an error and never a permission.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-basics.html>

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
mod rights;
mod statement;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use calls::{Call, CallError, accesses, sees_absence};
pub use decision::{Decision, Use};
pub use grant::Grant;
pub use names::Deployed;
pub use rights::{FunctionRights, Rights, RightsError};
pub use statement::StatementError;
