#![doc = include_str!("../README.md")]

pub mod entity;
pub mod jws;
pub mod keys;
pub mod public_key;
pub mod refusal;
pub mod revocations;
pub mod scope;
pub mod signing;
pub mod token;
pub mod verifier;
