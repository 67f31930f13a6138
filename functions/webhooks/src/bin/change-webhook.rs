//! PATCH …/webhook/{webhookIdentifier}: changes the specified members of a webhook.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{IdempotencyStore, KeyRings, Once};
use webhooks::subscriptions::{
    health::resume::Pauses,
    webhook::{
        change::{Changing, WebhookChange},
        show::Showing,
    },
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
    let answers = IdempotencyStore::new(service.table());
    service.serve(endpoints::CHANGE_WEBHOOK, (changing, answers), change).await
}

async fn change((changing, answers): &(Changing, IdempotencyStore), call: EntityCall) -> Result<Reply, Problem> {
    let change = WebhookChange::read(&call.body, call.entity.id(), &changing.rules)?;
    let request = idempotent_request(&call)?;
    let once = Once::of(answers, request.as_ref());
    let changed = changing.change(&call.entity, &webhook_id(&call)?, &change, once).await?;
    Ok(Reply::ok(&changed)?.replayed(changed.is_repeated))
}
