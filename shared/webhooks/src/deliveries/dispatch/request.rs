//! An attempt's request.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, header};
use hyper::body::Bytes;

use crate::{
    deliveries::{
        dispatch::signature,
        state::attempt::{HEADERS, SentTo},
        store::claim::Claimed,
    },
    events::store::StoredEvent,
    subscriptions::{
        endpoint::{headers, masked::Headers, secret::SigningSecret},
        webhook::store::SigningWebhook,
    },
};
use auth::EntityId;
use base::version::{SERVICE_VERSION, SERVICE_VERSION_HEADER};
use base::{DeliveryId, SharedClock, Time, trace::Trace};
use outbound::{AttemptError, HttpResponse, Limits, Outbound, USER_AGENT, endpoint_url::EndpointUrl};
use storage::{KeyRings, SealError};

/// The signed request of an attempt, or why it must not be sent.
pub(crate) struct Prepared {
    /// The time of the signature. It is also the attempt's date, so that the history matches `webhook-timestamp`.
    pub(crate) signed: Time,
    request: Result<Request, AttemptError>,
}

struct Request {
    timeout: Duration,
    url: EndpointUrl,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Prepared {
    /// The request that the contract describes. Fails only if a sealed value cannot be opened.
    pub(crate) async fn new(
        claimed: &Claimed,
        webhook: &SigningWebhook,
        event: &StoredEvent,
        trace: &Trace,
        rings: &KeyRings,
        outbound: &Outbound,
        clock: &SharedClock,
    ) -> Result<Self, SealError> {
        let secrets = webhook.live_secrets(rings, clock.now()).await?;
        // The webhook's current URL: an owner who changed it wants no more deliveries to the old address.
        let (url, custom) = webhook.endpoint(rings).await?;
        // Opening sealed values may take time.
        let signed = clock.now();
        let Ok(url) = EndpointUrl::parse(&url, &outbound.rules) else {
            let blocked = AttemptError::Blocked("the endpoint's URL is not allowed");
            return Ok(Self { signed, request: Err(blocked) });
        };
        let body = event.payload(webhook.webhook.payload);
        let headers = signed_headers(&claimed.delivery().id, &secrets, signed, &body, trace, &custom);
        let body = Bytes::copy_from_slice(body.as_bytes());
        let timeout = webhook.webhook.timeout.duration();
        Ok(Self { signed, request: Ok(Request { timeout, url, headers, body }) })
    }

    /// The request's address, and the names of its headers that are not in [`HEADERS`].
    pub(crate) fn sent_to(&self, webhook: &SigningWebhook) -> SentTo {
        let names = |headers: &[(HeaderName, HeaderValue)]| {
            let names = headers.iter().map(|(name, _)| name.as_str());
            names.filter(|name| !HEADERS.contains(name)).map(str::to_owned).collect()
        };
        let headers = self.request.as_ref().ok().map(|request| names(&request.headers));
        SentTo { url: webhook.webhook.endpoint.shown_url(), headers, payload: webhook.webhook.payload }
    }

    /// Sends the request and receives the response, on a connection that only this entity uses.
    pub(crate) async fn send(self, outbound: &Outbound, entity: &EntityId) -> Result<HttpResponse, AttemptError> {
        let Request { timeout, url, headers, body } = self.request?;
        // A clone shares the pooled connections.
        let outbound =
            outbound.clone().limited_to(Limits { whole: timeout.min(outbound.limits.whole), ..outbound.limits });
        outbound.send_for(entity.as_str(), Method::POST, &url, &headers, body).await
    }
}

/// The headers of a signed delivery, including those that the webhook's owner set.
pub(crate) fn signed_headers(
    delivery: &DeliveryId,
    secrets: &[SigningSecret],
    signed: Time,
    body: &str,
    trace: &Trace,
    custom: &Headers,
) -> Vec<(HeaderName, HeaderValue)> {
    let event = delivery.event();
    let own = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        // The first 4 096 bytes of the response's body are stored as text, so the body must not be compressed.
        (header::ACCEPT_ENCODING, "identity".to_owned()),
        (header::USER_AGENT, USER_AGENT.to_owned()),
        (HeaderName::from_static("service-delivery-id"), delivery.to_string()),
        (HeaderName::from_static(SERVICE_VERSION_HEADER), SERVICE_VERSION.to_owned()),
        (HeaderName::from_static("webhook-id"), event.to_string()),
        (HeaderName::from_static("webhook-timestamp"), signed.as_seconds().to_string()),
        (HeaderName::from_static("webhook-signature"), signature::sign(secrets, &event, signed, body)),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)));
    let mut headers: Vec<_> = own.chain(trace.headers()).chain(headers::to_send(custom)).collect();
    // Some servers respond with 406 to a request without this header. An owner may set another value.
    if headers.iter().all(|(name, _)| name != header::ACCEPT) {
        headers.push((header::ACCEPT, HeaderValue::from_static("*/*")));
    }
    headers
}
