//! GET /oauth2/authorize: refuses user sign-in and explains how to get tokens (RFC 6749 §4.1.2.1).
//!
//! No client has a registered redirect address, so the error is shown here rather than sent in a redirect.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints};
use problem::{Problem, ProblemKind};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::AUTHORIZE, (), refuse).await
}

async fn refuse((): &(), _: Call) -> Result<Reply, Problem> {
    let detail = "User sign-in is not available: applications request their own tokens. Configure the client for \
                  client credentials (grant_type=client_credentials at /oauth2/token), with the application's client \
                  identifier and a secret or key.";
    Err(Problem::new(ProblemKind::UnsupportedResponseType, detail))
}
