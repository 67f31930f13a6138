#![doc = include_str!("../README.md")]

pub mod files;
pub mod origin;
pub mod page;

// The linker runs in the build script, which has no tests.
#[cfg(test)]
#[path = "../build/linker.rs"]
mod linker;
