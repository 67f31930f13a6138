//! DELETE …/payment/provider/{provider}/connection: revokes the access and removes the connection.

use function::{Service, StartError, idempotent_request};
use gate::{EntityCall, Reply, endpoints};
use outbound::{AddressRules, Outbound};
use payments::{ConnectionError, Connections, Providers, Revocations, disconnect::Disconnecting};
use problem::Problem;
use storage::{IdempotencyStore, KeyRings, Once, SecretSettings};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, AddressRules)>().await?;
    let secrets = service.secrets(secrets);
    let outbound = Outbound::within(rules.clone());
    let disconnecting = Disconnecting {
        connections: Connections::new(service.table()),
        providers: Providers::new(secrets.clone(), rules, service.clock()),
        revocations: Revocations::new(outbound, &service.settings().base_url, service.clock(), service.random()),
        rings: KeyRings::warm(secrets, service.clock()).await,
        clock: service.clock(),
        random: service.random(),
    };
    let answers = IdempotencyStore::new(service.table());
    service.serve(endpoints::DISCONNECT_PROVIDER, (disconnecting, answers), disconnect).await
}

async fn disconnect(
    (disconnecting, answers): &(Disconnecting, IdempotencyStore),
    call: EntityCall,
) -> Result<Reply, Problem> {
    let provider = functions_payments::provider(&call).ok_or(ConnectionError::NotFound)?;
    let request = idempotent_request(&call)?;
    let once = Once::of(answers, request.as_ref());
    let disconnected = disconnecting.disconnect(&call.entity, &provider, once).await?;
    Ok(Reply::ok(&disconnected)?.replayed(disconnected.is_repeated()))
}
