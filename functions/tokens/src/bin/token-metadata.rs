//! GET /.well-known/oauth-authorization-server: the token issuer's metadata (RFC 8414).

use function::{Service, StartError};
use gate::{Endpoint, Reply};
use issuer::oauth::metadata::Metadata;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let auth_url = service.settings().auth_url.clone();
    service
        .serve(Endpoint::public(), move |_| {
            let metadata = Reply::ok(&Metadata::of(&auth_url)).map(|reply| reply.cacheable(3600));
            async move { metadata }
        })
        .await
}
