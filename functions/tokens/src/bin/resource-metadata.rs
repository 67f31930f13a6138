//! GET /.well-known/oauth-protected-resource and …/mcp: the protected resource and its token issuer (RFC 9728).

use auth::Resource;
use function::{Service, Settings, StartError};
use gate::{Call, Reply, endpoints};
use issuer::oauth::metadata::ResourceMetadata;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::RESOURCE_METADATA, service.settings().clone(), show).await
}

async fn show(Settings { base_url, auth_url, .. }: &Settings, call: Call) -> Result<Reply, Problem> {
    // The path of the metadata ends with the path of the resource (RFC 9728 §3.1).
    let resource = if call.whole_path().ends_with("/mcp") { Resource::Mcp } else { Resource::Api };
    Ok(Reply::ok(&ResourceMetadata::of(resource, base_url, auth_url))?.cacheable(3600))
}
