//! The queue of due deliveries: makes the attempts.

use std::convert::Infallible;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use function::{Service, StartError};
use functions_webhooks::messages;
use outbound::{AddressRules, Outbound};
use storage::{KeyRings, SecretSettings};
use webhooks::{
    deliveries::{dispatch::Dispatcher, queue::QueueSettings, schedule::ScheduleSettings},
    subscriptions::breaker::BreakerSettings,
};

type Settings = ((QueueSettings, ScheduleSettings, BreakerSettings), (SecretSettings, AddressRules));

fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (settings, (secrets, rules))) = Service::start::<Settings>().await?;
    let (table, outbound) = (service.table(), Outbound::within(rules));
    let (time, environment) = ((service.clock(), service.random()), service.settings().environment.clone());
    let rings = KeyRings::warm(service.secrets(secrets), service.clock()).await;
    let dispatcher = Dispatcher::connect(service.aws(), table, settings, outbound, rings, environment, time);
    service.serve_events(dispatcher, dispatch).await
}

async fn dispatch(dispatcher: &Dispatcher, batch: SqsEvent) -> Result<SqsBatchResponse, Infallible> {
    let lane = dispatcher.lane(messages::queue_arn(&batch));
    Ok(messages::again(dispatcher.dispatch(lane, messages::read(batch)).await))
}
