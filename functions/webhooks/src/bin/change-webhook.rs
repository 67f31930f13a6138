//! PATCH …/webhook/{webhookIdentifier}: changes the given members of a webhook.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::KeyRings;
use webhooks::subscriptions::{
    change::{Changing, WebhookChange},
    resume::Pauses,
    show::Showing,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let changing = Changing {
        showing: Showing::new(&service.table()),
        pauses: Pauses::new(&service.table()),
        rules,
        rings: KeyRings::new(service.secrets(secrets), service.clock()), // not warm: most changes seal nothing
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::CHANGE_WEBHOOK, changing, change).await
}

async fn change(changing: &Changing, call: EntityCall) -> Result<Reply, Problem> {
    let change = WebhookChange::read(&call.body, call.entity.id(), &changing.rules)?;
    Reply::ok(&changing.change(&call.entity, &webhook_id(&call)?, &change).await?)
}
