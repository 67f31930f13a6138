//! GET /oauth2/jwks: the public keys that verify tokens (RFC 7517).

use auth::keys::PublishedKeys;
use function::{Service, StartError};
use gate::{Call, Reply, endpoints};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::TOKEN_KEYS, PublishedKeys::new(service.table()), list).await
}

async fn list(keys: &PublishedKeys, call: Call) -> Result<Reply, Problem> {
    // This service's functions cache the set for the same length of time. A new key is published for longer than that
    // before it signs.
    Ok(Reply::ok(&keys.read().await?.alive(call.now))?.cacheable(300))
}
