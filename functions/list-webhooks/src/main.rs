//! GET …/webhook/list: all webhooks of a managing entity, the oldest first.

use shared::{
    Service, StartError,
    auth::scope::Scope,
    http::{Call, Endpoint, Problem, Reply},
    webhooks::Webhooks,
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let webhooks = Webhooks::new(service.table().clone());
    service.serve(ENDPOINT, move |call| list(webhooks.clone(), call)).await
}

async fn list(webhooks: Webhooks, call: Call) -> Result<Reply, Problem> {
    let found = webhooks.of(call.entity()).await?;
    Reply::ok(&found.iter().map(|webhook| webhook.view(None)).collect::<Vec<_>>())
}
