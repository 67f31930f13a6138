#![doc = include_str!("../README.md")]

pub mod bus;
pub mod messages;

use base::{DeliveryId, EventId, WebhookId};
use function::Service;
use gate::Call;
use problem::Problem;
use webhooks::{
    deliveries::{
        DeliveryError,
        feed::Feeds,
        queue::{Queue, QueueSettings},
        state::schedule::ScheduleSettings,
    },
    events::{publish::Publisher, subject::SubjectMembers},
    subscriptions::{WebhookError, health::breaker::BreakerSettings},
};

/// The webhook's identifier in the path.
///
/// # Errors
/// 404 for a string that cannot be an identifier: no webhook has it.
pub fn webhook_id(call: &Call) -> Result<WebhookId, Problem> {
    WebhookId::parse(call.path("webhookIdentifier")).ok_or_else(|| WebhookError::NotFound.into())
}

/// The delivery's identifier in the path.
///
/// # Errors
/// 404 for a string that cannot be an identifier: no delivery has it.
pub fn delivery_id(call: &Call) -> Result<DeliveryId, Problem> {
    DeliveryId::parse(call.path("deliveryIdentifier")).ok_or_else(|| DeliveryError::NotFound.into())
}

/// The event's identifier in the path.
///
/// # Errors
/// 404 for a string that cannot be an identifier: no event has it.
pub fn event_id(call: &Call) -> Result<EventId, Problem> {
    EventId::parse(call.path("eventIdentifier")).ok_or_else(|| DeliveryError::EventNotFound.into())
}

/// The feeds of pull webhooks, with these settings.
pub fn feeds(service: &Service, settings: (ScheduleSettings, BreakerSettings)) -> Feeds {
    Feeds::new(&service.table(), settings, (service.clock(), service.random()))
}

/// A publisher of clients' events, with these settings.
pub fn publisher(
    service: &Service,
    queue: &QueueSettings,
    schedule: ScheduleSettings,
    subjects: SubjectMembers,
) -> Publisher {
    let queue = Queue::connect(service.aws(), queue);
    Publisher::new(&service.table(), queue, (schedule, subjects), (service.clock(), service.random()))
}

/// A publisher of internal events and test events, which have no subject, with these settings.
pub fn internal_publisher(service: &Service, queue: &QueueSettings, schedule: ScheduleSettings) -> Publisher {
    publisher(service, queue, schedule, SubjectMembers::default())
}
