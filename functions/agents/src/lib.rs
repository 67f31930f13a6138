#![doc = include_str!("../README.md")]

pub mod arguments;
pub mod caller;
mod entity_argument;
pub mod prompts;
pub mod protocol;
mod registration;
pub mod resources;
pub mod schemas;
mod selection;
pub mod tool;
mod tool_call;
mod tool_list;
pub mod tools;
pub mod untrusted;
pub mod use_cases;
mod waypost;
mod words;
