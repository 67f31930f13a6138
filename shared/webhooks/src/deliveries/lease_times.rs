//! How long a delivery is left to its worker, or to the message that announces it.

use std::time::Duration;

/// How long a worker holds a delivery: longer than an exchange and its record take.
pub const LEASE: Duration = Duration::from_secs(25);

/// How much the clocks of two machines may differ.
pub const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// For how long after its publication a delivery is left to the message that carries it, whose holder needs no claim by
/// then. A crowded queue is slower, and then an attempt is claimed.
pub const CARRIED: Duration = Duration::from_secs(3);

/// So long after its publication an attempt that was begun without a claim is over or claimed, since one that lasts for a
/// second is claimed then. Before that only the message that carries the delivery may lead to an attempt.
pub const SETTLED: Duration = Duration::from_secs(7);

/// How long the sweep waits after the first message of an attempt before it sends another. It doubles with each, so
/// that the sweep does not lengthen a backlog in the queue.
pub const GRACE: Duration = Duration::from_secs(10);

/// The longest delay of a message. A delivery that is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
