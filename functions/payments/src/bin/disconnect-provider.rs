//! DELETE …/payment/provider/{provider}/connection: gives the access back and removes the connection.

use std::{sync::Arc, time::Duration};

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use outbound::EndpointSettings;
use payments::{
    Connections, Providers, Revocations,
    disconnect::{DisconnectError, Disconnecting},
};
use problem::Problem;
use storage::{sealing::KeyRings, secrets::SecretSettings};

/// The provider has 10 s of it, and a refresh that is under way 5 s.
const DEADLINE: Duration = Duration::from_secs(25);
const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::PaymentRemove).with_deadline(DEADLINE);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let (secrets, clock) = (service.secrets(secrets), service.clock().clone());
    let base_url = &service.settings().base_url;
    let disconnecting = Arc::new(Disconnecting {
        connections: Connections::new(service.table().clone()),
        providers: Providers::new(secrets.clone(), rules.clone(), clock.clone()),
        revocations: Revocations::new(rules, base_url, clock.clone(), service.shared_random()),
        rings: KeyRings::warm(secrets, clock.clone()).await,
        clock,
        random: service.shared_random(),
    });
    service.serve(ENDPOINT, move |call| disconnect(disconnecting.clone(), call)).await
}

async fn disconnect(disconnecting: Arc<Disconnecting>, call: EntityCall) -> Result<Reply, Problem> {
    let provider = functions_payments::provider(&call).ok_or(DisconnectError::NotFound)?;
    Reply::ok(&disconnecting.disconnect(&call.entity, &provider).await?)
}
