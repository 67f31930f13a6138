//! The use cases that tools, resources and prompts call, created once when the function starts.

use function::Service;
use issuer::applications::Applications;
use outbound::AddressRules;
use payments::Connections;
use storage::{IdempotencyStore, KeyRings, SecretSettings};
use webhooks::{
    deliveries::{
        Deliveries,
        jobs::Jobs,
        queries::{diagnosis::Diagnosing, list::Listing},
        queue::{Queue, QueueSettings},
        requests::{recover::Recovery, replay::Replaying, resend::Resending},
        state::schedule::ScheduleSettings,
    },
    events::{
        publish::Publisher,
        subject::SubjectMembers,
        validation::{DataValidator, EventValidation},
    },
    subscriptions::{
        Webhooks,
        endpoint::rotate::Rotation,
        health::{Healths, resume::Pauses},
        request_limits::RequestLimits,
        test_event::Testing,
        webhook::{change::Changing, pausing::Pausing, register::Registration, remove::Removal, show::Showing},
    },
};

/// The use cases' settings.
pub type UseCaseSettings = (SecretSettings, AddressRules, QueueSettings, ScheduleSettings, EventValidation);

/// The use cases.
pub struct UseCases {
    /// The API's address, without a trailing slash.
    pub base_url: String,
    /// Shows webhooks and their statistics.
    pub showing: Showing,
    /// Registers webhooks.
    pub registration: Registration,
    /// Changes webhooks, and contains the rules for their addresses.
    pub changing: Changing,
    /// Replaces signing secrets.
    pub rotation: Rotation,
    /// Begins and ends pauses.
    pub pausing: Pausing,
    /// Removes webhooks.
    pub removal: Removal,
    /// Sends test events.
    pub testing: Testing,
    /// Lists deliveries and events.
    pub listing: Listing,
    /// Shows a delivery.
    pub deliveries: Deliveries,
    /// Diagnoses a webhook.
    pub diagnosing: Diagnosing,
    /// Attempts a delivery again.
    pub resending: Resending,
    /// Attempts many deliveries again.
    pub recovery: Recovery,
    /// Replays events to a webhook.
    pub replaying: Replaying,
    /// The connections to payment providers.
    pub connections: Connections,
    /// The applications, among them the caller's.
    pub applications: Applications,
    /// The responses to changes and removals with an idempotency key, which show no secret.
    pub answers: IdempotencyStore,
}

impl UseCases {
    /// A started function's use cases. Nothing is read yet, since most calls need no key ring.
    pub fn new(service: &Service, (secrets, rules, queue, schedule, validation): UseCaseSettings) -> Self {
        let table = service.table();
        let clock = service.clock();
        let random = service.random();
        let rings = KeyRings::new(service.secrets(secrets), clock.clone());
        let queue = Queue::connect(service.aws(), &queue);
        let webhooks = Webhooks::new(table.clone());
        let deliveries = Deliveries::new(table.clone());
        let pauses = Pauses::new(&table);
        let limits = RequestLimits::new(table.clone());
        let retention = schedule.retention;
        // Test events have no subject.
        let publishing = (schedule, SubjectMembers::default());
        let sealed_answers = || IdempotencyStore::sealed(table.clone(), rings.clone(), random.clone());
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
            pausing: Pausing {
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
                answers: IdempotencyStore::new(table.clone()),
                limits: limits.clone(),
                publisher: Publisher::new(&table, queue.clone(), publishing, (clock.clone(), random.clone())),
                validator: DataValidator::new(validation, service.settings().environment.clone(), clock.clone()),
                clock: clock.clone(),
                random: random.clone(),
            },
            listing: Listing { deliveries: deliveries.clone(), retention, rings, clock: clock.clone(), random },
            deliveries: deliveries.clone(),
            diagnosing: Diagnosing { showing: Showing::new(&table), deliveries: deliveries.clone(), retention },
            resending: Resending {
                deliveries: deliveries.clone(),
                webhooks: webhooks.clone(),
                answers: IdempotencyStore::new(table.clone()),
                limits: limits.clone(),
                queue,
                clock,
            },
            replaying: Replaying {
                deliveries: deliveries.clone(),
                webhooks: webhooks.clone(),
                jobs: Jobs::new(table.clone()),
                limits: limits.clone(),
                answers: IdempotencyStore::new(table.clone()),
                retention,
            },
            recovery: Recovery {
                deliveries,
                webhooks,
                pauses,
                jobs: Jobs::new(table.clone()),
                answers: IdempotencyStore::new(table.clone()),
                limits,
                retention,
            },
            applications: Applications::new(table.clone()),
            answers: IdempotencyStore::new(table.clone()),
            connections: Connections::new(table),
        }
    }
}
