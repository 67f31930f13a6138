//! How long a delivery is left to its worker, or to the message that announces it.

use std::time::Duration;

/// How long a worker holds a delivery: longer than an exchange and its record take.
pub const LEASE: Duration = Duration::from_secs(25);

/// How long the sweep waits after the first message of an attempt before it sends another. It doubles with each, so
/// that the sweep does not lengthen a backlog in the queue.
pub const GRACE: Duration = Duration::from_secs(10);
