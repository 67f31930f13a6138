//! What the functions of webhooks are wired of.

use function::Service;
use webhooks::{
    deliveries::{
        queue::{Queue, QueueSettings},
        schedule::ScheduleSettings,
    },
    events::publish::Publisher,
};

/// A publisher with these settings.
pub fn publisher(service: &Service, (queue, schedule): (QueueSettings, ScheduleSettings)) -> Publisher {
    let queue = Queue::connect(service.aws(), &queue);
    Publisher::new(service.table(), queue, schedule, service.clock_and_random())
}
