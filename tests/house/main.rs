//! The shape of the code: which crate may use which, that no files of one crate use each other in a circle, and that
//! the documents are true of it.

mod circles;
mod crates;
mod documents;
