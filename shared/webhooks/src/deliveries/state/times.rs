//! Time limits that claims, messages and the sweep share.

use std::time::Duration;

/// Time limit for a claim. If a claim takes longer, its message is delivered again.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(5);

/// The longest exchange: the limit in `outbound::Limits::default`.
const EXCHANGE: Duration = Duration::from_secs(15);

/// Minimum time for recording an attempt, including retries while the table throttles it.
const RECORD: Duration = Duration::from_secs(22);

/// Assumed maximum difference between the clocks of two machines.
pub const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// A worker's lease, counted from the start of its claim. It covers the longest claim, the longest exchange and a
/// record that is throttled for 20 s, so that no other worker sends the event in the meantime.
pub const LEASE: Duration = Duration::from_secs(45);

/// The latest start of an exchange within the lease: the exchange and its record must fit into the rest of the lease.
pub const BEGIN_LIMIT: Duration = LEASE.saturating_sub(EXCHANGE).saturating_sub(RECORD);

/// How long the sweep waits after the first message of an attempt before it sends another. The wait doubles with each
/// message.
pub const GRACE: Duration = Duration::from_secs(10);

/// The age of an event at which the sweep opens its deliveries: longer than a publication takes, plus the clock skew. A
/// slower publication opens its deliveries itself.
pub const OPENS_AFTER: Duration = Duration::from_secs(20);

/// The age of an event at which its deliveries are opened while the queue is crowded. Before that, their messages are
/// probably still on the queue: opening each would cost three units and a second message, and add to the backlog.
pub const CROWDED_OPENS_AFTER: Duration = Duration::from_secs(160);

/// How often the sweep runs: the schedule of `sweep-deliveries` in template.yaml.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The longest delay of an SQS message. A delivery that is due later waits in the table, where the sweep finds it.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html>
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);
