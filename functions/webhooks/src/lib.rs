//! What several functions of webhooks share: parameters of their paths, and the publisher.

use base::ids::WebhookId;
use function::Service;
use gate::Call;
use problem::Problem;
use webhooks::{
    deliveries::{
        queue::{Queue, QueueSettings},
        schedule::ScheduleSettings,
    },
    events::publish::Publisher,
    subscriptions::problems::webhook_not_found,
};

/// The webhook's identifier in the path.
///
/// # Errors
/// 404 for a text that cannot be an identifier: no webhook has it.
pub fn webhook_id(call: &Call) -> Result<WebhookId, Problem> {
    WebhookId::parse(call.path("webhookIdentifier")).ok_or_else(webhook_not_found)
}

/// A publisher with these settings.
pub fn publisher(service: &Service, (queue, schedule): (QueueSettings, ScheduleSettings)) -> Publisher {
    let queue = Queue::connect(service.aws(), &queue);
    Publisher::new(service.table(), queue, schedule, service.clock_and_random())
}
