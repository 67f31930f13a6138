//! The clients of HTTP requests: whether one is still waiting for its response.
//!
//! API Gateway does not report whether a client has closed its connection. The local gateway does: `local` sets
//! `CLIENT_PRESENCE`, and its Runtime API has an additional request.

use base::environment::Switch;
use base::{Environment, FromEnvironment};
use http::{Request, StatusCode};
use lambda_runtime_api_client::{Client, body::Body};

/// Knows whether clients are still waiting for their responses, from `CLIENT_PRESENCE` on one machine.
pub struct ClientPresence(Option<Client>);

impl FromEnvironment for ClientPresence {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let Switch(is_known) = environment.parsed("CLIENT_PRESENCE", Switch(false))?;
        if !is_known {
            return Some(Self(None));
        }
        let client = Client::builder().build();
        client
            .map(|client| Self(Some(client)))
            .map_err(|_| {
                environment.fault(
                    "CLIENT_PRESENCE",
                    "true",
                    &"only possible with an address in AWS_LAMBDA_RUNTIME_API",
                );
            })
            .ok()
    }
}

impl ClientPresence {
    /// Whether the client of the request with this identifier may still be waiting. True if nothing is known.
    pub async fn may_wait(&self, request_id: &str) -> bool {
        let Some(client) = &self.0 else { return true };
        let path = format!("/2018-06-01/runtime/invocation/{request_id}/caller");
        let Ok(request) = Request::get(path).body(Body::empty()) else { return true };
        client.call(request).await.map_or(true, |response| response.status() != StatusCode::GONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::environment;

    #[tokio::test]
    async fn without_a_gateway_that_knows_every_client_may_wait() {
        let variables: [fn(&str) -> Option<String>; 2] = [|_| None, |_| Some("false".to_owned())];
        for variable in variables {
            let presence: ClientPresence = environment::read_from(variable).expect("valid");
            assert!(presence.0.is_none() && presence.may_wait("x").await);
        }
        assert!(environment::read_from::<ClientPresence>(|_| Some("perhaps".to_owned())).is_err());
    }
}
