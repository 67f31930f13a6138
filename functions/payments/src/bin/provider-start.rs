//! GET /api/public/{provider}/oauth2/start: the page that names who asks for a connection, and leads to the provider.

use std::sync::Arc;

use function::{Service, StartError};
use gate::Endpoint;
use payments::{PendingAuthorizations, start::Start};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let start = Arc::new(Start {
        pending: PendingAuthorizations::new(service.table().clone()),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(Endpoint::public(), move |call| {
            let start = start.clone();
            async move { start.answer(&call).await }
        })
        .await
}
