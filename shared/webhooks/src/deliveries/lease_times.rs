//! How long a delivery is left to its worker, or to the message that announces it.

use std::time::Duration;

/// The longest time of a claim. A message whose claim takes longer comes again.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(5);

/// The longest exchange: the limit of `outbound::Limits::default`.
const EXCHANGE: Duration = Duration::from_secs(15);

/// For how long the record of an attempt is repeated while the table throttles it, at least.
const RECORD: Duration = Duration::from_secs(22);

/// How much the clocks of two machines may differ.
pub const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// How long a worker holds a delivery, from the beginning of its claim. The longest claim, the longest exchange and a
/// record that the table throttles for 20 s fit into it, so that no other worker sends the event meanwhile.
pub const LEASE: Duration = Duration::from_secs(45);

/// After this much of its lease a worker begins no exchange: the rest must suffice for the exchange and its record.
pub const BEGIN_LIMIT: Duration = LEASE.saturating_sub(EXCHANGE).saturating_sub(RECORD);

/// How long the sweep waits after the first message of an attempt before it sends another. It doubles with each, so
/// that the sweep does not lengthen a backlog in the queue.
pub const GRACE: Duration = Duration::from_secs(10);

/// The longest delay of a message. A delivery that is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
