//! POST …/panel/link: creates a panel link, and shows its address once.

use function::{Service, StartError, idempotent_request};
use gate::{EntityCall, Reply, endpoints};
use issuer::panel::{
    links::{LinkMaker, LinkMaking},
    new_link::NewPanelLink,
};
use problem::Problem;
use storage::{IdempotencyStore, KeyRings, SecretSettings};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let rings = KeyRings::new(service.secrets(secrets), service.clock()); // not warm: only stored responses are sealed
    let answers = IdempotencyStore::sealed(service.table(), rings, service.random());
    let base_url = service.settings().base_url.clone();
    let making = LinkMaking::new(service.table(), answers, service.random(), base_url);
    service.serve(endpoints::CREATE_PANEL_LINK, making, create).await
}

async fn create(making: &LinkMaking, call: EntityCall) -> Result<Reply, Problem> {
    let new = NewPanelLink::read(&call.body)?;
    let once = idempotent_request(&call)?;
    let token = call.claims.as_ref();
    let token = token.ok_or_else(|| Problem::internal("the request for a panel link has no token"))?;
    let maker = LinkMaker::by_token(&call.entity, token);
    let created = making.create_once(&maker, new, once.as_ref(), &call.notes, call.now).await?;
    let address = call.address_of("panel/link", &created.id(|created| created.link.id.to_string()));
    Ok(Reply::created(&created, &address)?.replayed(created.is_repeated()))
}
