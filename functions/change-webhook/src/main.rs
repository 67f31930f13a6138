//! PATCH …/webhook/{webhookIdentifier}: changes what is given of a webhook.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    http::Endpoint,
    settings::EndpointSettings,
    webhooks::{PATHS_BESIDE, change::Changing, show::Showing},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json().beside(PATHS_BESIDE);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, rules) = Service::start::<EndpointSettings>().await?;
    let showing = Showing::new(service.table());
    let changing = Arc::new(Changing { showing, rules, clock: service.clock().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let changing = changing.clone();
            async move { changing.change(&call).await }
        })
        .await
}
