#![doc = include_str!("../README.md")]

pub mod allowance;
pub mod aws;
pub mod idempotency;
pub mod sealing;
pub mod secrets;
pub mod table;

pub use allowance::{Allowance, Allowances};
pub use idempotency::{
    Answered, Changed, IdempotencyError, IdempotencyKey, IdempotencyStore, IdempotentRequest, Once, Record, Sender,
};
pub use sealing::{KeyRing, KeyRings, SealError};
pub use secrets::{SecretBytes, SecretError, SecretSettings, SecretText, Secrets};
pub use table::{Table, TableError, Written};
