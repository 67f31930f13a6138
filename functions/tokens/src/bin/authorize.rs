//! GET /oauth2/authorize: says that nobody can sign in here, and how tokens are got (RFC 6749 §4.1.2.1).
//!
//! No client has a registered redirect address, so that the error is told here and not by a redirect.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints};
use problem::{Problem, ProblemKind};

fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let token_endpoint = format!("{}/oauth2/token", service.settings().auth_url);
    service.serve(endpoints::AUTHORIZE, token_endpoint, refuse).await
}

async fn refuse(token_endpoint: &String, _: Call) -> Result<Reply, Problem> {
    let detail = format!(
        "Nobody can sign in here. An application gets tokens for itself: set the client up for client credentials \
         (grant_type=client_credentials at {token_endpoint}), with the identifier and a secret or key of the application."
    );
    Err(Problem::new(ProblemKind::UnsupportedResponseType, detail))
}
