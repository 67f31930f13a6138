//! Fakes of third parties, for tests and demos: a webhook receiver, a payment provider, a provider of geo-IP databases,
//! and a proxy in front of table and queue, all of which misbehave on request; an AWS emulator; made-up bookings; and
//! the keys of stored events and deliveries.
//!
//! The fakes share no code with the service, so that they do not share its bugs either.

mod aws_protocol;
mod aws_signature;
mod booking;
mod clock;
mod http;
mod interposer;
mod metered;
mod ministack;
mod name_server;
pub mod provider;
mod receiver;
mod steps;
pub mod stored;
mod tls;
pub mod update_server;
mod wait;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use aws_protocol::AwsCall;
pub use aws_signature::AwsCaller;
pub use booking::booking;
pub use http::Received;
pub use interposer::{Held, Interposer, Moment};
pub use metered::{Metered, in_a_row};
pub use ministack::Ministack;
pub use name_server::{NameAnswer, NameServer};
pub use receiver::Receiver;
pub use steps::{Behaviour, Gate};
pub use tls::{Authority, Identity, TlsFront};
pub use update_server::UpdateServer;
pub use wait::{LONG, until};

/// Locks a mutex, even if a test panicked while holding the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
