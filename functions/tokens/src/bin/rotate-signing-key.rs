//! Secrets Manager's rotation: replaces the key that signs access tokens, in four steps.

use function::{Service, StartError};
use issuer::rotation::Rotation;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, signing, tokens)) = Service::start().await?;
    let secrets = service.secrets(secrets);
    let environment = service.settings().environment.clone();
    let rotation = Rotation::new(&secrets, service.table(), (signing, tokens), environment, service.clock());
    service.serve_events(rotation, Rotation::step).await
}
