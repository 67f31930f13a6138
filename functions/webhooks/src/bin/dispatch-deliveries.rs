//! Reads the queue of due deliveries, and makes the attempts.

use std::convert::Infallible;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use function::{Service, StartError};
use functions_webhooks::messages;
use futures::future::join;
use outbound::{AddressRules, Outbound};
use storage::{KeyRings, SecretSettings};
use webhooks::{
    deliveries::{
        Deliveries, dispatch::dispatcher::Dispatcher, queue::QueueSettings, state::schedule::ScheduleSettings,
    },
    subscriptions::health::breaker::BreakerSettings,
};

type Settings = ((QueueSettings, ScheduleSettings, BreakerSettings), (SecretSettings, AddressRules));

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (settings, (secrets, rules))) = Service::start::<Settings>().await?;
    let table = service.table();
    // Connect while the secret is loading.
    service.beside_start(Deliveries::new(table.clone()).open_connection());
    let time = (service.clock(), service.random());
    let environment = service.settings().environment.clone();
    // Read the certificate authorities concurrently as well.
    let (rings, outbound) =
        join(KeyRings::warm(service.secrets(secrets), service.clock()), Outbound::within(rules).warm()).await;
    let dispatcher = Dispatcher::connect(service.aws(), table, settings, outbound, rings, environment, time);
    service.serve_events(dispatcher, dispatch).await
}

async fn dispatch(dispatcher: &Dispatcher, batch: SqsEvent) -> Result<SqsBatchResponse, Infallible> {
    let lane = dispatcher.lane(messages::queue_arn(&batch));
    Ok(messages::again(dispatcher.dispatch(lane, messages::read(batch)).await))
}
