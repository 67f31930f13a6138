//! GET /oauth2/jwks: the public keys that vouch for tokens (RFC 7517).

use auth::keys::PublishedKeys;
use base::clock::Time;
use function::{Service, StartError};
use gate::{Endpoint, Reply};
use problem::Problem;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (keys, clock) = (PublishedKeys::new(service.table().clone()), service.clock().clone());
    service.serve(Endpoint::public(), move |_| list(keys.clone(), clock.now())).await
}

async fn list(keys: PublishedKeys, now: Time) -> Result<Reply, Problem> {
    // As long as our own functions keep the set; a new key is published longer than that before it
    // signs.
    Ok(Reply::ok(&keys.read().await?.alive(now))?.cacheable(300))
}
