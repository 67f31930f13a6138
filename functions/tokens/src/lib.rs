#![doc = include_str!("../README.md")]

use std::sync::Arc;

use auth::Verifier;
use function::Service;
use gate::{Call, Reply};
use http::header::{AUTHORIZATION, CONTENT_TYPE, PRAGMA};
use issuer::oauth::{
    client_authentication::{ClientAuthentication, RequestContext},
    form::Posted,
    guesses::GuessSettings,
};
use storage::{SecretSettings, Secrets};

/// Client authentication, ready for the first request.
pub async fn client_authentication(service: &Service, secrets: Secrets, limits: GuessSettings) -> ClientAuthentication {
    let issuer = service.settings().auth_url.clone();
    ClientAuthentication::start(&service.table(), secrets, limits, issuer, service.clock()).await
}

/// Client authentication and the verifier of submitted tokens, both ready for the first request.
pub async fn clients_and_tokens(
    service: &Service,
    secrets: SecretSettings,
    limits: GuessSettings,
) -> (ClientAuthentication, Arc<Verifier>) {
    let secrets = service.secrets(secrets);
    let tokens = service.tokens();
    let (clients, ()) = tokio::join!(client_authentication(service, secrets, limits), tokens.warm_up());
    (clients, tokens)
}

/// A call's form, and the headers for its parsing.
pub fn posted(call: &Call) -> Posted<'_> {
    let authorization = call.headers().get_all(AUTHORIZATION).iter();
    Posted {
        content_type: call.header(&CONTENT_TYPE).unwrap_or_default(),
        encoded: call.has_encoded_body(),
        authorization: authorization.map(|value| value.to_str().unwrap_or_default()).collect(),
        body: &call.body,
    }
}

/// The parts of a call that authentication uses, besides the form.
pub fn context(call: &Call) -> RequestContext<'_> {
    RequestContext { id: &call.request_id, path: call.whole_path(), source: call.source_address(), notes: &call.notes }
}

/// The reply, not to be cached, as RFC 6749 §5.1 requires.
pub fn uncached(reply: Reply) -> Reply {
    reply.uncached().with_header(PRAGMA, "no-cache")
}
