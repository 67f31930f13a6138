//! GET /.well-known/oauth-authorization-server: the token issuer's metadata (RFC 8414).

use function::{Service, Settings, StartError};
use gate::{Call, Reply, endpoints};
use issuer::oauth::metadata::Metadata;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::TOKEN_METADATA, service.settings().clone(), show).await
}

async fn show(settings: &Settings, _: Call) -> Result<Reply, Problem> {
    Ok(Reply::ok(&Metadata::of(&settings.auth_url))?.cacheable(3600))
}
