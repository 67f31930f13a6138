#![doc = include_str!("../README.md")]

pub mod caller;
pub mod desk;
pub mod prompts;
pub mod resources;
pub mod tool;
pub mod tools;
