//! GET /api/public/{provider}/oauth2/callback: the redirect address of payment providers.

use function::{Service, StartError};
use functions_payments::{browser, failure_page, provider, redirect};
use gate::{Call, Reply, endpoints};
use outbound::{AddressRules, Outbound};
use payments::{
    StateFault,
    callback::{Callback, CallbackError, CallbackFailure},
    callback_query::CallbackQuery,
    panel::PanelSettings,
};
use problem::Problem;
use storage::SecretSettings;

type Settings = (SecretSettings, AddressRules, PanelSettings);

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules, panel)) = Service::start::<Settings>().await?;
    let secrets = service.secrets(secrets);
    let base_url = service.settings().base_url.clone();
    let environment = service.settings().environment.clone();
    let time = (service.clock(), service.random());
    let outbound = Outbound::within(rules);
    let addresses = (base_url, panel.clone());
    let callback = Callback::new(service.table(), secrets, outbound, addresses, environment, time).await;
    service.serve(endpoints::PROVIDER_CALLBACK, (callback, panel), come_back).await
}

async fn come_back((callback, panel): &(Callback, PanelSettings), call: Call) -> Result<Reply, Problem> {
    let query = CallbackQuery::read(|name| call.query(name))?;
    let taken = match provider(&call) {
        Some(provider) => callback.take(&provider, &query, browser(&call), call.claims.as_ref()).await,
        None => Err(CallbackFailure::from(CallbackError::from(StateFault::NoProvider))),
    };
    let answered = taken.map_err(|failure| failure_page::of_callback(failure, &call, panel))?;
    redirect(&answered.address)
}
