//! The receiver in Rust of docs/receiving-webhooks.md.
#![expect(clippy::disallowed_methods, reason = "a receiver is no part of the service, and reads its own environment")]

include!(concat!(env!("OUT_DIR"), "/receiver.rs"));
