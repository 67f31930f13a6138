#![doc = include_str!("../README.md")]

use function::Service;
use gate::{EntityCall, Reply};
use issuer::{
    applications::{
        Applications,
        caller::{Caller, confirmed},
        credential_removal::CredentialName,
        register::Registration,
    },
    oauth::pepper::{Pepper, PepperSource},
};
use problem::Problem;
use storage::{Allowances, IdempotencyStore, KeyRings, SecretSettings};

/// The registration of applications and secrets for this function.
pub async fn registration(service: &Service, secrets: SecretSettings) -> Registration {
    let secrets = service.secrets(secrets);
    let rings = KeyRings::new(secrets.clone(), service.clock()); // not warm: only stored responses are sealed
    Registration {
        applications: Applications::new(service.table()),
        allowances: Allowances::new(service.table()),
        answers: IdempotencyStore::sealed(service.table(), rings, service.random()),
        pepper: Pepper::warm(PepperSource(secrets), service.clock()).await,
        random: service.random(),
    }
}

/// The caller: the managing entity with its token.
pub fn caller(call: &EntityCall) -> Result<Caller<'_>, Problem> {
    let token = call.claims.as_ref();
    let token = token.ok_or_else(|| Problem::internal("an endpoint of applications admits calls without a token"))?;
    Ok(Caller::by_token(&call.entity, token))
}

/// The application's identifier in the path.
pub fn client_id(call: &EntityCall) -> &str {
    call.path("clientId")
}

/// Removes a secret or a key, and replies with the consequences.
pub async fn remove_credential(
    applications: &Applications,
    call: &EntityCall,
    credential: CredentialName<'_>,
) -> Result<Reply, Problem> {
    let confirmed = confirmed(call.read_query())?;
    let caller = caller(call)?;
    let removal =
        applications.remove_credential(&caller, client_id(call), credential, confirmed, &call.notes, call.now);
    let message = if removal.await?.was_the_last {
        "It is no longer accepted, and tokens that were got with it end within a minute. It was the last: the application gets \
         no tokens until it is given a secret or a key."
    } else {
        "It is no longer accepted, and tokens that were got with it end within a minute."
    };
    let (CredentialName::Secret(name) | CredentialName::Key(name)) = credential;
    Reply::removed(&name, message)
}
