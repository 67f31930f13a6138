//! Time limits that claims, messages and the sweep share.

use std::time::Duration;

/// The longest time of a claim. A message whose claim takes longer is received again.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(5);

/// The longest exchange: the limit of `outbound::Limits::default`.
const EXCHANGE: Duration = Duration::from_secs(15);

/// The least time for which the record of an attempt is repeated while the table throttles it.
const RECORD: Duration = Duration::from_secs(22);

/// The greatest difference between the clocks of two machines.
pub const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// The lease of a worker, from the beginning of its claim. The longest claim, the longest exchange and a record that
/// the table throttles for 20 s fit into it, so that no other worker sends the event meanwhile.
pub const LEASE: Duration = Duration::from_secs(45);

/// The latest start of an exchange within the lease: the rest must suffice for the exchange and its record.
pub const BEGIN_LIMIT: Duration = LEASE.saturating_sub(EXCHANGE).saturating_sub(RECORD);

/// How long the sweep waits after the first message of an attempt before it sends another. The wait doubles with each
/// message, so that the sweep does not lengthen a backlog in the queue.
pub const GRACE: Duration = Duration::from_secs(10);

/// The age at which the sweep opens the deliveries of an event that no worker has claimed. It is longer than a publication
/// takes and than clocks differ: an event that is written later opens its deliveries itself.
pub const OPENS_AFTER: Duration = Duration::from_secs(20);

/// The longest delay of a message. A delivery that is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
