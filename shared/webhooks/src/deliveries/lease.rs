//! For how long a delivery is left to the process that works on it, or to the message that
//! announces it.

use std::time::Duration;

/// How long a worker holds a delivery: the whole exchange and the time to record it.
pub const LEASE: Duration = Duration::from_secs(25);

/// How long after a message was sent the sweep waits before it sends another, the first time. It
/// doubles with each, so that a backlog in the queue is not made longer by the sweep.
pub const GRACE: Duration = Duration::from_secs(10);
