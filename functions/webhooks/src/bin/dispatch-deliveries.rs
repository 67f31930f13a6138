//! The queue of due deliveries: makes the attempts.

use std::convert::Infallible;

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
    let dispatcher = Dispatcher {
        deliveries: Deliveries::new(service.table()),
        events: Events::new(service.table()),
        webhooks: Webhooks::new(service.table()),
        queue: Queue::connect(service.aws(), &queue),
        inboxes: Inbox::connect(service.aws(), &queue),
        watch: Watch::new(service.table(), breaker, service.random()),
        stats: Stats::new(service.table()),
        announcer: Announcer::new(service.table()),
        outbound: Outbound::within(rules),
        rings: KeyRings::warm(service.secrets(secrets), service.clock()).await,
        schedule: schedule.schedule,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve_events(dispatcher, dispatch).await
}

async fn dispatch(dispatcher: &Dispatcher, batch: SqsEvent) -> Result<SqsBatchResponse, Infallible> {
    let lane = dispatcher.lane(messages::queue_arn(&batch));
    Ok(messages::again(dispatcher.dispatch(lane, messages::read(batch)).await))
}
