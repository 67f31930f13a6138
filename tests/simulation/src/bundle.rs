//! The functions' use cases in one sandbox, created as the functions create them.

mod geo_ip;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use auth::{AuthorizedEntity, EntityId};
use base::{SharedClock, SharedRandom, environment};
use outbound::{AddressRules, Outbound, SystemResolver};
use storage::{
    IdempotencyStore, KeyRings, Table,
    aws::{Aws, AwsSettings},
    secrets::Secrets,
};
use tempfile::TempDir;
use webhooks::{
    deliveries::{
        Deliveries,
        dispatch::dispatcher::Dispatcher,
        feed::Feeds,
        jobs::{Jobs, Worker},
        queue::{Queue, QueueSettings},
        requests::{cancel::Cancelling, erase::Erasing, recover::Recovery, replay::Replaying, resend::Resending},
        state::schedule::ScheduleSettings,
        sweep::Sweeper,
    },
    events::{
        ingest::Ingestion,
        outbox::Outbox,
        publish::{Publisher, UnmatchedEvents},
        rejected::RejectedEvents,
        subject::SubjectMembers,
        validation::{DataValidator, EventValidation},
    },
    subscriptions::{
        Webhooks,
        endpoint::rotate::Rotation,
        health::{Healths, breaker::BreakerSettings, resume::Pauses},
        request_limits::RequestLimits,
        test_event::Testing,
        webhook::{change::Changing, pausing::Pausing, register::Registration, remove::Removal, show::Showing},
    },
};

use crate::{
    aws::{QUICK, REGION, SLOW, TABLE, Wire},
    clock::SeededRandom,
    endpoints::Wires,
    oauth, providers,
    sandbox::Sandbox,
    world::World,
};

/// The retry schedule in all histories, which is short so that a history reaches its end.
pub const SCHEDULE: &str = "0s,5s,30s,2m,10m";

/// The use cases in one sandbox.
pub struct Bundle {
    pub(crate) aws: Aws,
    pub(crate) table: Table,
    pub(crate) clock: SharedClock,
    pub(crate) random: SharedRandom,
    pub(crate) rings: KeyRings,
    pub(crate) outbound: Outbound,
    sandbox: Arc<Sandbox>,
    /// The token issuer's use cases.
    pub(crate) oauth: oauth::UseCases,
    /// The use cases for payment providers.
    pub(crate) providers: providers::UseCases,
    queue: OnceLock<Queue>,
    dispatcher: OnceLock<Dispatcher>,
    sweeper: OnceLock<Sweeper>,
    feeds: OnceLock<Feeds>,
    world: Arc<World>,
    /// The folder for temporary files.
    disk: OnceLock<TempDir>,
}

fn schedule() -> ScheduleSettings {
    environment::read_from(|name| (name == "RETRY_SCHEDULE").then(|| SCHEDULE.to_owned()))
        .expect("the schedule of the simulation is valid")
}

fn queues() -> QueueSettings {
    environment::read_from(|name| match name {
        "QUEUE_URL" => Some(format!("http://sqs.simulated/000000000000/{QUICK}")),
        "SLOW_QUEUE_URL" => Some(format!("http://sqs.simulated/000000000000/{SLOW}")),
        _ => None,
    })
    .expect("both addresses are set")
}

/// Settings that let a history open and close breakers within minutes, and that disable a webhook after it has been
/// failing for a quarter of an hour.
fn breaker() -> BreakerSettings {
    BreakerSettings { threshold: 4, disable_after: Duration::from_secs(15 * 60), ..BreakerSettings::default() }
}

/// The rules for endpoint addresses.
pub fn rules() -> AddressRules {
    let loopback = "127.0.0.0/8".parse().expect("a network");
    AddressRules { allowed_networks: vec![loopback], allow_http: true }
}

/// A tenant's entity, as a token authorizes it.
pub fn entity(tenant: usize) -> AuthorizedEntity {
    AuthorizedEntity::by_operator(entity_id(tenant))
}

/// A tenant's identifier.
pub fn entity_id(tenant: usize) -> EntityId {
    EntityId::parse(&format!("hotel-{tenant}")).expect("a valid identifier")
}

impl Bundle {
    /// The use cases in a new sandbox.
    pub fn start(world: &Arc<World>, sandbox: &Arc<Sandbox>) -> Self {
        let settings = AwsSettings {
            region: REGION.to_owned(),
            access_key_id: "simulation".to_owned(),
            secret_access_key: "simulation".to_owned(),
            session_token: None,
            dynamodb_endpoint: Some("http://dynamodb.simulated".to_owned()),
            sqs_endpoint: Some("http://sqs.simulated".to_owned()),
            secrets_manager_endpoint: Some("http://secrets.simulated".to_owned()),
            s3_endpoint: Some(crate::aws::bucket::ORIGIN.to_owned()),
            authorities: Default::default(),
        };
        let wire = Wire { world: Arc::clone(world), sandbox: Arc::clone(sandbox) };
        let aws = Aws::over(settings, wire.clone()).in_sandbox(wire);
        let table = Table::new(aws.dynamodb(), TABLE);
        let clock: SharedClock = Arc::new(sandbox.clock.clone());
        let rng = world.draws.about(&("sandbox", sandbox.function, sandbox.id));
        let random: SharedRandom = Arc::new(SeededRandom::new(rng));
        let rings = KeyRings::new(Secrets::connect(&aws, crate::aws::SECRETS_PREFIX), clock.clone());
        let network = Arc::new(Wires { world: Arc::clone(world), sandbox: Arc::clone(sandbox) });
        let outbound = Outbound::at(rules(), Arc::new(SystemResolver), clock.clone()).on(network);
        Self {
            aws,
            table,
            clock,
            random,
            rings,
            outbound,
            sandbox: Arc::clone(sandbox),
            oauth: oauth::UseCases::default(),
            providers: providers::UseCases::default(),
            queue: OnceLock::new(),
            dispatcher: OnceLock::new(),
            sweeper: OnceLock::new(),
            feeds: OnceLock::new(),
            world: Arc::clone(world),
            disk: OnceLock::new(),
        }
    }

    /// The sandbox's clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The sandbox, and its current invocation.
    pub fn place(&self) -> (u64, u64) {
        (self.sandbox.id, self.sandbox.invocation())
    }

    fn queue(&self) -> Queue {
        self.queue.get_or_init(|| Queue::connect(&self.aws, &queues())).clone()
    }

    fn webhooks(&self) -> Webhooks {
        Webhooks::new(self.table.clone())
    }

    /// The store of deliveries.
    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.table.clone())
    }

    pub(crate) fn sealed_answers(&self) -> IdempotencyStore {
        IdempotencyStore::sealed(self.table.clone(), self.rings.clone(), self.random.clone())
    }

    fn answers(&self) -> IdempotencyStore {
        IdempotencyStore::new(self.table.clone())
    }

    fn limits(&self) -> RequestLimits {
        RequestLimits::new(self.table.clone())
    }

    /// The use case that publishes clients' events.
    pub fn publisher(&self) -> Publisher {
        let clock_and_random = (self.clock.clone(), self.random.clone());
        let publisher =
            Publisher::new(&self.table, self.queue(), (schedule(), SubjectMembers::default()), clock_and_random);
        publisher.with_unmatched(UnmatchedEvents { keep: true })
    }

    /// The use case that publishes events from the bus.
    pub fn ingestion(&self) -> Ingestion {
        let rejected = RejectedEvents::connect(&self.aws, format!("http://sqs.simulated/000000000000/{SLOW}"));
        let environment = "simulation".to_owned();
        Ingestion { publisher: self.publisher(), validator: self.validator(), rejected, environment }
    }

    fn validator(&self) -> DataValidator {
        DataValidator::new(EventValidation::Off, "simulation", self.clock.clone())
    }

    /// The use case that makes attempts.
    pub fn dispatcher(&self) -> &Dispatcher {
        self.dispatcher.get_or_init(|| {
            Dispatcher::connect(
                &self.aws,
                self.table.clone(),
                (queues(), schedule(), breaker()),
                self.outbound.clone(),
                self.rings.clone(),
                "simulation".to_owned(),
                (self.clock.clone(), self.random.clone()),
            )
        })
    }

    /// The use case that sweeps.
    pub fn sweeper(&self) -> &Sweeper {
        self.sweeper.get_or_init(|| Sweeper {
            outbox: Outbox::new(self.table.clone()),
            publisher: self.publisher(),
            deliveries: self.deliveries(),
            worker: Worker {
                jobs: Jobs::new(self.table.clone()),
                deliveries: self.deliveries(),
                webhooks: self.webhooks(),
                clock: self.clock.clone(),
                random: self.random.clone(),
            },
            webhooks: self.webhooks(),
            queue: self.queue(),
            clock: self.clock.clone(),
            environment: "simulation".to_owned(),
        })
    }

    /// The use case that reads feeds and records readers' answers.
    pub fn feeds(&self) -> &Feeds {
        let clock_and_random = || (self.clock.clone(), self.random.clone());
        self.feeds.get_or_init(|| Feeds::new(&self.table, (schedule(), breaker()), clock_and_random()))
    }

    /// The use case that registers webhooks.
    pub fn registration(&self) -> Registration {
        Registration {
            webhooks: self.webhooks(),
            answers: self.sealed_answers(),
            rings: self.rings.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    /// The use case that changes webhooks.
    pub fn changing(&self) -> Changing {
        Changing {
            showing: Showing::new(&self.table),
            pauses: Pauses::new(&self.table),
            rules: rules(),
            rings: self.rings.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    /// The use case that removes webhooks.
    pub fn removal(&self) -> Removal {
        Removal {
            webhooks: self.webhooks(),
            healths: Healths::new(self.table.clone()),
            jobs: Jobs::new(self.table.clone()),
            clock: self.clock.clone(),
        }
    }

    /// The use case that replaces signing secrets.
    pub fn rotation(&self) -> Rotation {
        Rotation {
            webhooks: self.webhooks(),
            answers: self.sealed_answers(),
            rings: self.rings.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    /// The use case that begins and ends pauses.
    pub fn pausing(&self) -> Pausing {
        Pausing {
            showing: Showing::new(&self.table),
            pauses: Pauses::new(&self.table),
            limits: self.limits(),
            clock: self.clock.clone(),
        }
    }

    /// The use case that sends test events.
    pub fn testing(&self) -> Testing {
        Testing {
            webhooks: self.webhooks(),
            answers: self.answers(),
            limits: self.limits(),
            publisher: self.publisher(),
            validator: self.validator(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        }
    }

    /// The use case that resends deliveries.
    pub fn resending(&self) -> Resending {
        Resending {
            deliveries: self.deliveries(),
            webhooks: self.webhooks(),
            answers: self.answers(),
            limits: self.limits(),
            queue: self.queue(),
            clock: self.clock.clone(),
        }
    }

    /// The use case that replays events.
    pub fn replaying(&self) -> Replaying {
        Replaying {
            deliveries: self.deliveries(),
            webhooks: self.webhooks(),
            jobs: Jobs::new(self.table.clone()),
            limits: self.limits(),
            answers: self.answers(),
            retention: schedule().retention,
        }
    }

    /// The use case that cancels deliveries.
    pub fn cancelling(&self) -> Cancelling {
        Cancelling {
            deliveries: self.deliveries(),
            webhooks: self.webhooks(),
            queue: self.queue(),
            clock: self.clock.clone(),
        }
    }

    /// The use case that erases events' content.
    pub fn erasing(&self) -> Erasing {
        Erasing { deliveries: self.deliveries(), jobs: Jobs::new(self.table.clone()), clock: self.clock.clone() }
    }

    /// The use case that recovers deliveries.
    pub fn recovery(&self) -> Recovery {
        Recovery {
            deliveries: self.deliveries(),
            webhooks: self.webhooks(),
            pauses: Pauses::new(&self.table),
            jobs: Jobs::new(self.table.clone()),
            answers: self.answers(),
            limits: self.limits(),
            retention: schedule().retention,
        }
    }
}
