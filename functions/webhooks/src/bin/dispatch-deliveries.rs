//! The queue of due deliveries: makes the attempts.

use std::sync::Arc;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use function::{Service, StartError};
use functions_webhooks::messages;
use outbound::{EndpointSettings, Outbound};
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::{
    deliveries::{
        Deliveries,
        dispatch::Dispatcher,
        inbox::Inbox,
        queue::{Queue, QueueSettings},
        schedule::ScheduleSettings,
    },
    events::store::Events,
    subscriptions::{Webhooks, announcing::Announcer, breaker::BreakerSettings, stats::Stats, watch::Watch},
};

type Settings = ((QueueSettings, ScheduleSettings, BreakerSettings), (SecretSettings, EndpointSettings));

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ((queue, schedule, breaker), (secrets, rules))) = Service::start::<Settings>().await?;
    let (table, clock, random) = (service.table(), service.clock().clone(), service.shared_random());
    let secrets = service.secrets(secrets);
    let dispatcher = Arc::new(Dispatcher {
        deliveries: Deliveries::new(table.clone()),
        events: Events::new(table.clone()),
        webhooks: Webhooks::new(table.clone()),
        queue: Queue::connect(service.aws(), &queue),
        inboxes: Inbox::connect(service.aws(), &queue),
        watch: Watch::new(table.clone(), breaker, random.clone()),
        stats: Stats::new(table.clone()),
        announcer: Announcer::new(table.clone()),
        outbound: Outbound::within(rules),
        rings: KeyRings::warm(secrets, clock.clone()).await,
        schedule: schedule.schedule,
        clock,
        random,
    });
    Service::serve_events(move |batch| dispatch(dispatcher.clone(), batch)).await
}

async fn dispatch(dispatcher: Arc<Dispatcher>, batch: SqsEvent) -> SqsBatchResponse {
    let lane = dispatcher.lane(messages::queue_arn(&batch));
    messages::again(dispatcher.dispatch(lane, messages::read(batch)).await)
}
