//! GET /api/public/{provider}/oauth2/callback: a provider sends people back here.

use function::{Service, StartError};
use functions_payments::{browser, provider, redirect};
use gate::{Call, Reply, endpoints};
use outbound::AddressRules;
use payments::{
    callback::{Callback, CallbackError},
    callback_query::CallbackQuery,
    panel::PanelSettings,
};
use problem::Problem;
use storage::SecretSettings;

type Settings = (SecretSettings, AddressRules, PanelSettings);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules, panel)) = Service::start::<Settings>().await?;
    let (secrets, base_url) = (service.secrets(secrets), service.settings().base_url.clone());
    let (environment, time) = (service.settings().environment.clone(), (service.clock(), service.random()));
    let callback = Callback::new(service.table(), secrets, rules, (base_url, panel), environment, time).await;
    service.serve(endpoints::PROVIDER_CALLBACK, callback, come_back).await
}

async fn come_back(callback: &Callback, call: Call) -> Result<Reply, Problem> {
    let query = CallbackQuery::read(|name| call.query(name))?;
    let provider = provider(&call).ok_or(CallbackError::InvalidState)?;
    let answered = callback.take(&provider, &query, browser(&call), call.claims.as_ref()).await?;
    redirect(&answered.address)
}
