//! The use cases that tools, resources and prompts call, made once when the function starts.

use function::Service;
use issuer::applications::Applications;
use outbound::AddressRules;
use payments::Connections;
use storage::{Answers, KeyRings, SecretSettings};
use webhooks::{
    deliveries::{
        Deliveries,
        dispatch::schedule::ScheduleSettings,
        jobs::Jobs,
        queries::{diagnosis::Diagnosing, list::Listing},
        queue::{Queue, QueueSettings},
        requests::{recover::Recovery, resend::Resending},
    },
    events::publish::Publisher,
    subscriptions::{
        Webhooks,
        change::Changing,
        health::Healths,
        register::Registration,
        remove::Removal,
        request_limits::RequestLimits,
        resume::{Pauses, Resuming},
        rotate::Rotation,
        show::Showing,
        test_event::Testing,
    },
};

/// The settings of the use cases.
pub type DeskSettings = (SecretSettings, AddressRules, QueueSettings, ScheduleSettings);

/// The use cases.
pub struct Desk {
    /// The API's address, without a slash at its end.
    pub base_url: String,
    /// Shows webhooks and their statistics.
    pub showing: Showing,
    /// Registers webhooks.
    pub registration: Registration,
    /// Changes webhooks, and holds the rules for their addresses.
    pub changing: Changing,
    /// Replaces signing secrets.
    pub rotation: Rotation,
    /// Ends pauses.
    pub resuming: Resuming,
    /// Removes webhooks.
    pub removal: Removal,
    /// Sends test events.
    pub testing: Testing,
    /// Lists deliveries.
    pub listing: Listing,
    /// Shows a delivery.
    pub deliveries: Deliveries,
    /// Says what is the matter with a webhook.
    pub diagnosing: Diagnosing,
    /// Has a delivery attempted again.
    pub resending: Resending,
    /// Has many deliveries attempted again.
    pub recovery: Recovery,
    /// The connections to payment providers.
    pub connections: Connections,
    /// The applications, one of which the caller is.
    pub applications: Applications,
}

impl Desk {
    /// The use cases on the table and the queues of a started function. Nothing is read yet: most calls need no key ring.
    pub fn new(service: &Service, (secrets, rules, queue, schedule): DeskSettings) -> Self {
        let (table, clock, random) = (service.table(), service.clock(), service.random());
        let rings = KeyRings::new(service.secrets(secrets), clock.clone());
        let queue = Queue::connect(service.aws(), &queue);
        let webhooks = Webhooks::new(table.clone());
        let deliveries = Deliveries::new(table.clone());
        let pauses = Pauses::new(&table);
        let limits = RequestLimits::new(table.clone());
        let retention = schedule.retention;
        let sealed_answers = || Answers::sealed(table.clone(), rings.clone(), random.clone());
        Self {
            base_url: service.settings().base_url.clone(),
            showing: Showing::new(&table),
            registration: Registration {
                webhooks: webhooks.clone(),
                answers: sealed_answers(),
                rings: rings.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            changing: Changing {
                showing: Showing::new(&table),
                pauses: pauses.clone(),
                rules,
                rings: rings.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            rotation: Rotation {
                webhooks: webhooks.clone(),
                answers: sealed_answers(),
                rings: rings.clone(),
                clock: clock.clone(),
                random: random.clone(),
            },
            resuming: Resuming {
                showing: Showing::new(&table),
                pauses: pauses.clone(),
                limits: limits.clone(),
                clock: clock.clone(),
            },
            removal: Removal {
                webhooks: webhooks.clone(),
                healths: Healths::new(table.clone()),
                jobs: Jobs::new(table.clone()),
                clock: clock.clone(),
            },
            testing: Testing {
                webhooks: webhooks.clone(),
                answers: Answers::new(table.clone()),
                limits: limits.clone(),
                publisher: Publisher::new(&table, queue.clone(), schedule, (clock.clone(), random.clone())),
                clock: clock.clone(),
                random: random.clone(),
            },
            listing: Listing { deliveries: deliveries.clone(), retention, rings, clock: clock.clone(), random },
            deliveries: deliveries.clone(),
            diagnosing: Diagnosing { showing: Showing::new(&table), deliveries: deliveries.clone(), retention },
            resending: Resending {
                deliveries: deliveries.clone(),
                webhooks: webhooks.clone(),
                answers: Answers::new(table.clone()),
                limits: limits.clone(),
                queue,
                clock,
            },
            recovery: Recovery {
                deliveries,
                webhooks,
                pauses,
                jobs: Jobs::new(table.clone()),
                answers: Answers::new(table.clone()),
                limits,
                retention,
            },
            applications: Applications::new(table.clone()),
            connections: Connections::new(table),
        }
    }
}
