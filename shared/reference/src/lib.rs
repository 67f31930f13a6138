#![doc = include_str!("../README.md")]

mod document;
mod markdown;
mod page;
mod problems;
mod schema;

pub use page::content;
pub use problems::{ProblemUse, problem_uses};
