//! POST /task/canary: receives the canary's deliveries, and records their arrival.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints};
use http::HeaderName;
use problem::Problem;
use webhooks::canary::{CanaryReceiver, Received};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

pub fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let receiver = CanaryReceiver::new(service.secrets(secrets), service.table(), service.clock());
    service.serve(endpoints::CANARY_RECEIVER, receiver, receive).await
}

async fn receive(receiver: &CanaryReceiver, call: Call) -> Result<Reply, Problem> {
    let header = |name| call.header(name).unwrap_or_default();
    let (id, timestamp, signature) = (header(&ID), header(&TIMESTAMP), header(&SIGNATURE));
    receiver.receive(Received { id, timestamp, signature, body: &call.body }).await?;
    Ok(Reply::empty())
}
