//! GET /api/public/{provider}/oauth2/callback: a provider sends people back here.

use function::{Service, StartError};
use functions_payments::{browser, provider, redirect};
use gate::{Call, Reply, endpoints};
use outbound::EndpointSettings;
use payments::{
    Connections, Grants, PendingAuthorizations, Providers,
    callback::{Callback, CallbackError},
    callback_query::CallbackQuery,
    panel::PanelSettings,
};
use problem::Problem;
use storage::{sealing::KeyRings, secrets::SecretSettings};

type Settings = (SecretSettings, EndpointSettings, PanelSettings);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules, panel)) = Service::start::<Settings>().await?;
    let (secrets, base_url) = (service.secrets(secrets), service.settings().base_url.clone());
    let callback = Callback {
        pending: PendingAuthorizations::new(service.table()),
        connections: Connections::new(service.table()),
        providers: Providers::new(secrets.clone(), rules.clone(), service.clock()),
        grants: Grants::new(rules, &base_url, service.clock(), service.random()),
        rings: KeyRings::warm(secrets, service.clock()).await,
        base_url,
        panel,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::PROVIDER_CALLBACK, callback, come_back).await
}

async fn come_back(callback: &Callback, call: Call) -> Result<Reply, Problem> {
    let query = CallbackQuery::read(|name| call.query(name))?;
    let provider = provider(&call).ok_or(CallbackError::InvalidState)?;
    let answered = callback.take(&provider, &query, browser(&call), call.claims.as_ref()).await?;
    redirect(&answered.address)
}
