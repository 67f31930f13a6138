//! GET /api/public/{provider}/oauth2/callback: where a provider sends people back to.

use std::{sync::Arc, time::Duration};

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Call, Endpoint, Reply};
use outbound::EndpointSettings;
use payments::{
    Connections, Grants, PendingAuthorizations, Providers,
    callback::{self, Callback, CallbackError},
    callback_query::CallbackQuery,
    panel::PanelSettings,
};
use problem::Problem;
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
    service.serve(ENDPOINT, move |call| come_back(callback.clone(), call)).await
}

async fn come_back(callback: Arc<Callback>, call: Call) -> Result<Reply, Problem> {
    let query = CallbackQuery::read(|name| call.query(name))?;
    let provider = functions_payments::provider(&call).ok_or(CallbackError::InvalidState)?;
    let browser = functions_payments::browser(&call);
    let answered = callback.take(&provider, &query, browser, call.claims.as_ref()).await?;
    functions_payments::redirect(&answered.address)
}
