//! The Rust receiver in docs/receivers.md, which verifies with a public key.
#![expect(clippy::disallowed_methods, reason = "the receiver is not part of the service and reads its own environment")]

include!(concat!(env!("OUT_DIR"), "/public_key_receiver.rs"));
