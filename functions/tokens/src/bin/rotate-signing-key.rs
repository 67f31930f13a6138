//! Secrets Manager's rotation: replaces the key that signs access tokens, in four steps.

use std::sync::Arc;

use function::{Service, StartError};
use issuer::{
    rotation::Rotation,
    settings::{SigningSettings, TokenSettings},
};
use storage::secrets::SecretSettings;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, signing, tokens)) =
        Service::start::<(SecretSettings, SigningSettings, TokenSettings)>().await?;
    let rotation = Arc::new(Rotation::new(
        &service.secrets(secrets),
        service.table().clone(),
        (signing, tokens),
        service.settings().environment.clone(),
        service.clock().clone(),
    ));
    Service::serve_invocations(move |event| {
        let rotation = rotation.clone();
        async move { rotation.step(event).await }
    })
    .await
}
