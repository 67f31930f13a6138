//! GET /api/public/{provider}/oauth2/callback: where a provider sends people back to.

use std::{sync::Arc, time::Duration};

use auth::scope::Scope;
use function::{Service, StartError};
use gate::Endpoint;
use outbound::EndpointSettings;
use payments::{
    Connections, Grants, PendingAuthorizations, Providers,
    callback::{self, Callback},
    panel::PanelSettings,
};
use storage::{sealing::KeyRings, secrets::SecretSettings};

/// A second more than a callback takes at most, and two less than the function's own limit.
const DEADLINE: Duration = Duration::from_secs(callback::LIMIT.as_secs() + 1);
const ENDPOINT: Endpoint =
    Endpoint::public().with_optional_token(Scope::PaymentWrite).with_empty_internal_errors().with_deadline(DEADLINE);

type Settings = (SecretSettings, EndpointSettings, PanelSettings);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules, panel)) = Service::start::<Settings>().await?;
    let (secrets, clock) = (service.secrets(secrets), service.clock().clone());
    let base_url = service.settings().base_url.clone();
    let callback = Arc::new(Callback {
        pending: PendingAuthorizations::new(service.table().clone()),
        connections: Connections::new(service.table().clone()),
        providers: Providers::new(secrets.clone(), rules.clone(), clock.clone()),
        grants: Grants::new(rules, &base_url, clock.clone(), service.shared_random()),
        rings: KeyRings::warm(secrets, clock.clone()).await,
        base_url,
        panel,
        clock,
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let callback = callback.clone();
            async move { callback.answer(&call).await }
        })
        .await
}
