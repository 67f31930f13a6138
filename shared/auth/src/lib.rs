//! Callers and their rights: access tokens, the keys that vouch for them, revocations, scopes, managing entities.

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
