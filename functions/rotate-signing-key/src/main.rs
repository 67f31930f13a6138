//! Secrets Manager's rotation: replaces the key that signs access tokens, in four steps.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::rotation::Rotation,
    settings::{SecretSettings, SigningSettings, TokenSettings},
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, signing, tokens)) =
        Service::start::<(SecretSettings, SigningSettings, TokenSettings)>().await?;
    let rotation = Arc::new(Rotation::new(&service, secrets, signing, tokens));
    Service::serve_invocations(move |event| {
        let rotation = rotation.clone();
        async move { rotation.step(event).await }
    })
    .await
}
