//! The faults in a history, their probabilities, and where they occurred.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::{draws::occurs, sandbox::Function};

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $name:literal, $most:literal;)*) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// All kinds of faults.
            pub const ALL: &[Self] = &[$(Self::$fault),*];

            /// The fault's name in tables and options.
            pub fn name(self) -> &'static str {
                match self { $(Self::$fault => $name),* }
            }

            /// The kind of fault with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|fault| fault.name() == name)
            }

            /// The highest probability in a history, in parts per 10 000 occasions.
            fn most(self) -> u16 {
                match self { $(Self::$fault => $most),* }
            }
        }
    };
}

faults! {
    /// A call takes up to 3 s.
    Slow = "slow", 400;
    /// AWS responds to a call with 500 and does not carry it out.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
    Refused = "refused", 300;
    /// A call does not reach AWS.
    Unreached = "unreached", 200;
    /// AWS carries out a call, but its response is lost: the connection breaks, or nothing arrives.
    AnswerLost = "answer-lost", 300;
    /// An event's write takes effect up to a minute after its caller gave up.
    EventLate = "event-late", 300;
    /// The sandbox dies before a call takes effect.
    KilledBefore = "killed-before", 60;
    /// The sandbox dies after a call has taken effect, but before the response.
    KilledAfter = "killed-after", 60;
    /// The sandbox is frozen before a call, for a period between a second and an hour.
    FrozenBefore = "frozen-before", 25;
    /// The sandbox is frozen after a call.
    FrozenAfter = "frozen-after", 25;
    /// A partition of the table refuses all requests for a period between a second and a minute.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html>
    Throttled = "throttled", 80;
    /// A write conflicts with a transaction on the same item.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling>
    Conflict = "conflict", 200;
    /// A batch read omits items, or a page of a query ends early.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
    LeftOut = "left-out", 200;
    /// An eventually consistent read returns values that are up to a second old.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.ReadConsistency.html>
    OldRead = "old-read", 3_000;
    /// An index shows a write up to a minute later, usually within 200 ms.
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.Writes>
    IndexLag = "index-lag", 500;
    /// SQS delivers a message twice, perhaps to two sandboxes concurrently.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html>
    MessageTwice = "message-twice", 1_000;
    /// A message arrives up to five minutes late, perhaps after later ones.
    MessageLate = "message-late", 600;
    /// A message never arrives.
    MessageLost = "message-lost", 600;
    /// An endpoint refuses a connection, or accepts it late.
    NotConnected = "not-connected", 300;
    /// A sandbox's clock jumps, staying within a second of the true time.
    ClockJump = "clock-jump", 400;
    /// Secrets Manager does not respond.
    SecretsAway = "secrets-away", 800;
}

/// Whether an await point is a call to AWS, in which case it begins with the operation's name.
pub fn is_call(point: &str) -> bool {
    point.starts_with(|first: char| first.is_ascii_uppercase())
}

impl Fault {
    /// Whether this kind of fault can occur at an await point. Index lag is excluded, since it affects only some
    /// writes.
    pub fn can_occur_at(self, point: &str) -> bool {
        let operation = point.split(' ').next().unwrap_or_default();
        let is_call = is_call(point);
        let writes = ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchExecuteStatement"];
        let pages = ["Query", "Scan", "BatchGetItem"];
        match self {
            Self::Slow | Self::Refused | Self::Unreached | Self::AnswerLost => is_call,
            Self::KilledBefore | Self::KilledAfter | Self::FrozenBefore | Self::FrozenAfter => is_call,
            Self::Throttled => operation == "GetItem" || writes.contains(&operation) || pages.contains(&operation),
            Self::Conflict | Self::OldRead => writes.contains(&operation),
            Self::EventLate => ["PUT EVENTS/", "INSERT EVENTS/"].iter().any(|write| point.contains(write)),
            Self::LeftOut => pages.contains(&operation),
            Self::SecretsAway => operation.ends_with("SecretValue"),
            Self::NotConnected => point == "connect to an endpoint",
            Self::MessageTwice | Self::MessageLate | Self::MessageLost => point == "message",
            Self::IndexLag | Self::ClockJump => false,
        }
    }
}

/// The probability of each fault in a history. Most histories have only some kinds of faults, so that frequent kinds do
/// not hide the consequences of rare ones ("swarm testing", <https://users.cs.utah.edu/~regehr/papers/swarm12.pdf>).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chances(BTreeMap<Fault, u16>);

impl Chances {
    /// Random probabilities.
    pub fn draw(rng: &mut Rng) -> Self {
        let share = rng.f64();
        let of = |fault: &Fault| {
            let occurs = rng.f64() < share;
            let chance = (f64::from(fault.most()) * rng.f64().powi(2)) as u16;
            occurs.then_some((*fault, chance.max(1)))
        };
        Self(Fault::ALL.iter().filter_map(of).collect())
    }

    /// All kinds of faults, each at its maximum frequency.
    pub fn all() -> Self {
        Self(Fault::ALL.iter().map(|fault| (*fault, fault.most())).collect())
    }

    /// These probabilities multiplied by this factor.
    pub fn times(self, factor: u16) -> Self {
        Self(self.0.into_iter().map(|(fault, chance)| (fault, chance.saturating_mul(factor))).collect())
    }

    /// Only this fault, on every occasion.
    pub fn always(fault: Fault) -> Self {
        Self([(fault, 10_000)].into())
    }

    /// No faults.
    pub fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// The kinds that can occur.
    pub fn kinds(&self) -> impl Iterator<Item = Fault> {
        self.0.keys().copied()
    }

    /// These probabilities, but without one kind of fault.
    pub fn without(&self, fault: Fault) -> Self {
        let mut rest = self.0.clone();
        rest.remove(&fault);
        Self(rest)
    }

    /// These probabilities, but only for these kinds of faults.
    pub fn only(&self, kinds: &[Fault]) -> Self {
        Self(self.0.iter().filter(|(kind, _)| kinds.contains(kind)).map(|(kind, chance)| (*kind, *chance)).collect())
    }

    /// Whether this fault occurs now.
    pub fn occurs(&self, fault: Fault, rng: &mut Rng) -> bool {
        // Draw a number even if the probability is zero, so that later choices do not depend on the other kinds of
        // faults in a history.
        let chance = self.0.get(&fault).copied().unwrap_or_default();
        occurs(rng, chance)
    }
}

/// The number of faults at each await point of each function.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// How often each await point was reached.
    pub points: BTreeMap<(Function, String), u64>,
    /// How often each fault occurred at each await point.
    pub faults: BTreeMap<(Function, String, Fault), u64>,
}

impl Coverage {
    /// Counts an await point as reached.
    pub fn reached(&mut self, function: Function, point: &str) {
        *self.points.entry((function, point.to_owned())).or_default() += 1;
    }

    /// Counts a fault.
    pub fn injected(&mut self, function: Function, point: &str, fault: Fault) {
        *self.faults.entry((function, point.to_owned(), fault)).or_default() += 1;
    }

    /// Adds the counts of another history.
    pub fn add(&mut self, other: &Self) {
        for (point, count) in &other.points {
            *self.points.entry(point.clone()).or_default() += count;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(fault.clone()).or_default() += count;
        }
    }
}
