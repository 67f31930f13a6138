#![doc = include_str!("../README.md")]

mod components;
mod document;
mod guide;
mod markdown;
mod operation;
mod page;
mod problems;
mod schema;

pub use guide::{GUIDE_FILES, Guide, guide};
pub use page::content;
pub use problems::{ProblemUse, problem_uses};
