//! The state that all sandboxes, tenants and endpoints in one history share.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::Time;
use fastrand::Rng;
use queue::Queues;

use crate::{
    aws::{
        QUICK, REGION, SLOW,
        table::{self, Conditions, ItemKey, Refusal, Schema, Table},
    },
    bundle::entity_id,
    clock::{SeededRandom, TrueClock},
    draws::{self, Draws},
    endpoints::Endpoints,
    faults::{Chances, Coverage, Fault},
    geo_ip::GeoIp,
    journal::{Actor, Journal},
    plan::apart::TROUBLED,
    providers::Played,
    sandbox::{Function, Sandbox},
};

/// The shared state of a history.
pub struct World {
    /// The true time.
    pub clock: TrueClock,
    /// The history's choices.
    pub draws: Draws,
    /// The simulated SQS, as in `make run`.
    pub queues: Queues,
    state: Mutex<State>,
}

/// The part of the state that calls change.
pub struct State {
    /// The simulated DynamoDB.
    pub table: Table,
    /// The partitions that refuse all requests, each with the end of this period in milliseconds.
    pub throttled: BTreeMap<String, u64>,
    /// The periods when a partition refused all requests, in milliseconds.
    pub throttles: Vec<(String, u64, u64)>,
    /// In a history with trouble for only one tenant, the probability that a request to this tenant's partitions is
    /// throttled, in parts per 10 000.
    pub troubled: Option<u16>,
    /// The table's responses to invalid requests.
    pub invalid: Vec<String>,
    /// The panics of use cases.
    pub panics: Vec<String>,
    /// The invocations that died, were frozen or were ended.
    pub interrupted: BTreeSet<u64>,
    /// When sweeps were interrupted, in milliseconds.
    pub interrupted_sweeps: Vec<u64>,
    /// The invocations in which a call to AWS failed, was slow or got no response.
    pub hindered: BTreeSet<u64>,
    /// The probabilities of faults; there are none once the history is quiet.
    pub chances: Chances,
    /// Where faults occurred.
    pub coverage: Coverage,
    /// The published geo-IP databases, and their providers.
    pub geo_ip: GeoIp,
    /// When Secrets Manager responds again, in milliseconds.
    pub secrets_away_until: u64,
    /// The webhooks' endpoints, and the requests that they received.
    pub endpoints: Endpoints,
    /// The payment providers.
    pub providers: Played,
    /// The history's record, for the log and the fingerprint.
    pub journal: Journal,
    /// The last numbers that were assigned to sandboxes, invocations and calls.
    pub numbers: Numbers,
}

/// The last numbers that were assigned.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The last sandbox's number.
    pub sandbox: u64,
    /// The last invocation's number.
    pub invocation: u64,
    /// The last number of a call to AWS or a connection to an endpoint.
    pub call: u64,
}

impl World {
    /// The world of a history that begins now.
    pub fn new(schema: Schema, draws: Draws, chances: Chances, journal: Journal) -> Arc<Self> {
        let clock = TrueClock::start();
        let random = Arc::new(SeededRandom::new(draws.about(&"queues")));
        let queues = Queues::new("http://sqs.simulated", REGION, "000000000000", Arc::new(clock), random);
        let attributes = BTreeMap::from([("VisibilityTimeout".to_owned(), "180".to_owned())]);
        for queue in [QUICK, SLOW] {
            queues.create(queue, &attributes).expect("the names and the attribute are valid");
        }
        let state = State {
            table: Table::new(schema),
            throttled: BTreeMap::new(),
            throttles: Vec::new(),
            troubled: None,
            invalid: Vec::new(),
            panics: Vec::new(),
            interrupted: BTreeSet::new(),
            interrupted_sweeps: Vec::new(),
            hindered: BTreeSet::new(),
            chances,
            coverage: Coverage::default(),
            geo_ip: GeoIp::default(),
            secrets_away_until: 0,
            endpoints: Endpoints::default(),
            providers: Played::default(),
            journal,
            numbers: Numbers::default(),
        };
        Arc::new(Self { clock, draws, queues, state: Mutex::new(state) })
    }

    /// Locks the state. No task may wait while holding the lock.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what happened.
    pub fn note(&self, what: impl FnOnce() -> String) {
        self.note_of(Actor::World, what);
    }

    /// Records what an actor did.
    pub fn note_of(&self, who: Actor, what: impl FnOnce() -> String) {
        let now = self.now();
        self.state().journal.note(now, who, what);
    }

    /// Adds a line to a history's log, if it has one.
    pub fn explain(&self, who: Actor, what: impl FnOnce() -> String) {
        let now = self.now();
        self.state().journal.explain(now, who, what);
    }

    /// Records that a sandbox's current invocation was interrupted.
    pub fn interrupted(&self, sandbox: &Sandbox) {
        let now = self.clock.millis();
        let mut state = self.state();
        state.interrupted.insert(sandbox.invocation());
        if matches!(sandbox.function, Function::SweepDeliveries) {
            state.interrupted_sweeps.push(now);
        }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }
}

impl State {
    /// Performs an operation on the table.
    pub fn call_table(
        &mut self,
        operation: &str,
        request: &serde_json::Value,
        now: u64,
        at: At<'_>,
        rng: &mut Rng,
    ) -> Result<serde_json::Value, Refusal> {
        let troubled = self.troubled.map(|chance| (chance, troubled_partitions(&self.table, operation, request)));
        let mut conditions = Draw {
            troubled,
            throttled: &mut self.throttled,
            throttles: &mut self.throttles,
            chances: &self.chances,
            coverage: &mut self.coverage,
            journal: &self.journal,
            now,
            at,
            rng,
        };
        self.table.call(operation, request, now, &mut conditions)
    }
}

/// The origin of an operation on the table: the sandbox and its await point.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The calling sandbox.
    pub sandbox: &'a Sandbox,
    /// The await point of the call.
    pub point: &'a str,
}

/// The troubled tenant's partitions that a request may name.
fn troubled_partitions(table: &Table, operation: &str, request: &serde_json::Value) -> BTreeSet<String> {
    let tenant = entity_id(TROUBLED);
    let entity = format!("ENT#{tenant}");
    let is_troubled = |partition: &String| {
        let event = partition.strip_prefix("EVT#").unwrap_or_default();
        let mut items = (0..16).filter_map(|shard| table.item(&(format!("EVENTS#{shard}"), event.to_owned())));
        items.any(|item| item.get("ownerIdentifier").is_some_and(|owner| owner["S"] == tenant.as_str()))
    };
    let (_, keys) = Table::touched(operation, request);
    let deliveries = keys.into_iter().map(|(partition, _)| partition).filter(is_troubled);
    deliveries.chain([format!("byEntity/{entity}"), format!("byEntity/UNDELIVERED#{tenant}"), entity]).collect()
}

/// The choices about one operation on the table.
struct Draw<'a> {
    /// If only one tenant has trouble, its partitions and the probability that they are throttled.
    troubled: Option<(u16, BTreeSet<String>)>,
    throttled: &'a mut BTreeMap<String, u64>,
    throttles: &'a mut Vec<(String, u64, u64)>,
    chances: &'a Chances,
    coverage: &'a mut Coverage,
    journal: &'a Journal,
    now: u64,
    at: At<'a>,
    rng: &'a mut Rng,
}

impl Draw<'_> {
    /// Whether this partition belongs to the only troubled tenant and is throttled from now on.
    fn is_troubled(&mut self, partition: &str) -> bool {
        let Some((chance, partitions)) = &self.troubled else { return false };
        let is_troubled = partitions.contains(partition) && draws::occurs(self.rng, *chance);
        if is_troubled {
            self.injected(Fault::Throttled);
        }
        is_troubled
    }

    fn occurs(&mut self, fault: Fault) -> bool {
        let occurs = self.chances.occurs(fault, self.rng);
        if occurs {
            self.injected(fault);
        }
        occurs
    }

    fn injected(&mut self, fault: Fault) {
        self.coverage.injected(self.at.sandbox.function, self.at.point, fault);
        let now = Time::from_millis(i64::try_from(self.now).unwrap_or_default());
        self.journal.explain(now, self.at.sandbox.actor(), || format!("! {}", fault.name()));
    }
}

impl Conditions for Draw<'_> {
    fn throttles(&mut self, (partition, _): &ItemKey, index: Option<&str>, _write: bool) -> bool {
        let partition = match index {
            Some(index) => format!("{index}/{partition}"),
            None => partition.clone(),
        };
        if self.throttled.get(&partition).is_some_and(|until| self.now < *until) {
            self.injected(Fault::Throttled);
            return true;
        }
        if self.occurs(Fault::Throttled) || self.is_troubled(&partition) {
            // Throttling is usually short, but can last up to a minute.
            let seconds = 60.0 * self.rng.f64().powi(4);
            let until = self.now + Duration::from_secs_f64(seconds).as_millis() as u64;
            self.throttles.push((partition.clone(), self.now, until));
            self.throttled.insert(partition, until);
            return true;
        }
        false
    }

    fn conflicts(&mut self, _keys: &[ItemKey]) -> bool {
        self.occurs(Fault::Conflict)
    }

    fn leaves_out(&mut self) -> bool {
        self.occurs(Fault::LeftOut)
    }

    fn lag(&mut self, copy: table::Copy) -> u64 {
        match copy {
            table::Copy::Replica if self.occurs(Fault::OldRead) => self.rng.u64(1..1_000),
            table::Copy::Replica => 0,
            table::Copy::Index if self.occurs(Fault::IndexLag) => self.rng.u64(1_000..60_000),
            table::Copy::Index => self.rng.u64(5..200),
        }
    }
}
