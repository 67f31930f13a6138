//! The shape of the code: which crate may use which, and that no files of one crate use each other in a circle.

mod circles;
mod crates;
