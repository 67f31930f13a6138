//! What the endpoints that manage applications share: the parameters of their paths, and the answer
//! to a removed credential.

use base::clock::Time;
use gate::{EntityCall, Reply};
use issuer::applications::{
    Applications,
    credential_removal::CredentialName,
    grants::{self, Caller},
};
use problem::Problem;

/// The managing entity that calls, and its token.
pub fn caller(call: &EntityCall) -> Result<Caller<'_>, Problem> {
    let token = call.claims.as_ref();
    let token = token.ok_or_else(|| Problem::internal("an endpoint of applications admits calls without a token"))?;
    Ok(Caller::by_token(&call.entity, token))
}

/// The application's identifier in the path.
pub fn client_id(call: &EntityCall) -> &str {
    call.path("clientId")
}

/// Removes a secret or a key, and answers with a sentence on what that means.
pub async fn remove_credential(
    applications: &Applications,
    call: &EntityCall,
    credential: CredentialName<'_>,
    now: Time,
) -> Result<Reply, Problem> {
    let (confirmed, caller) = (grants::confirmed(call.read_query())?, caller(call)?);
    let removal = applications.remove_credential(&caller, client_id(call), credential, confirmed, &call.notes, now);
    let message = if removal.await?.was_the_last {
        "It is no longer accepted, and tokens that were got with it end within a minute. It was the last: the application gets \
         no tokens until it is given a secret or a key."
    } else {
        "It is no longer accepted, and tokens that were got with it end within a minute."
    };
    let (CredentialName::Secret(name) | CredentialName::Key(name)) = credential;
    Reply::removed(&name, message)
}
