//! POST /task/canary: receives the canary's deliveries, and records their arrival.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints};
use http::HeaderName;
use problem::Problem;
use webhooks::canary::{CanaryReceiver, Received};

static ID: HeaderName = HeaderName::from_static("webhook-id");
static TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let receiver = CanaryReceiver::new(service.secrets(secrets), service.table(), service.clock());
    service.serve(endpoints::CANARY_RECEIVER, receiver, receive).await
}

async fn receive(receiver: &CanaryReceiver, call: Call) -> Result<Reply, Problem> {
    let header = |name| call.header(name).unwrap_or_default();
    let id = header(&ID);
    let timestamp = header(&TIMESTAMP);
    let signature = header(&SIGNATURE);
    receiver.receive(Received { id, timestamp, signature, body: &call.body }).await?;
    Ok(Reply::empty())
}
