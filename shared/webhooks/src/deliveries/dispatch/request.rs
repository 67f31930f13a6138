//! The request of an attempt.

use http::{HeaderName, HeaderValue, Method, header};
use hyper::body::Bytes;

use crate::{
    deliveries::{
        attempt::{HEADERS, SentTo},
        dispatch::{claim::Claimed, signature},
    },
    subscriptions::{headers, store::SigningWebhook},
};
use auth::EntityId;
use base::version::{SERVICE_VERSION, SERVICE_VERSION_HEADER};
use base::{Time, trace::Trace};
use outbound::{AttemptError, HttpResponse, Outbound, USER_AGENT, endpoint_url::EndpointUrl};
use storage::{KeyRings, SealError};

/// The request of an attempt, or why it must not be sent.
pub(crate) enum Prepared {
    Request { url: EndpointUrl, headers: Vec<(HeaderName, HeaderValue)>, body: Bytes },
    Blocked(AttemptError),
}

impl Prepared {
    /// The request that the contract describes. Fails only if a sealed value cannot be opened.
    pub(crate) async fn new(
        claimed: &Claimed,
        webhook: &SigningWebhook,
        body: &str,
        trace: &Trace,
        rings: &KeyRings,
        outbound: &Outbound,
        now: Time,
    ) -> Result<Self, SealError> {
        let secrets = webhook.live_secrets(rings, now).await?;
        // The webhook's current URL: an owner who changed it wants no more deliveries at the old address.
        let (url, custom) = webhook.endpoint(rings).await?;
        let Ok(url) = EndpointUrl::parse(&url, &outbound.rules) else {
            return Ok(Self::Blocked(AttemptError::Blocked("the URL of the endpoint is not allowed")));
        };
        let own = [
            (header::CONTENT_TYPE, "application/json".to_owned()),
            // The first 4 096 bytes of the response's body are kept as text, so the body must not be compressed.
            (header::ACCEPT_ENCODING, "identity".to_owned()),
            (header::USER_AGENT, USER_AGENT.to_owned()),
            (HeaderName::from_static("service-delivery-id"), claimed.delivery().id.to_string()),
            (HeaderName::from_static(SERVICE_VERSION_HEADER), SERVICE_VERSION.to_owned()),
            (HeaderName::from_static("webhook-id"), claimed.event().to_string()),
            (HeaderName::from_static("webhook-timestamp"), now.as_seconds().to_string()),
            (HeaderName::from_static("webhook-signature"), signature::sign(&secrets, claimed.event(), now, body)),
        ];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)));
        let mut headers: Vec<_> = own.chain(trace.headers()).chain(headers::to_send(&custom)).collect();
        // Some servers answer 406 to a request without it. An owner may set another value.
        if headers.iter().all(|(name, _)| name != header::ACCEPT) {
            headers.push((header::ACCEPT, HeaderValue::from_static("*/*")));
        }
        Ok(Self::Request { url, headers, body: Bytes::copy_from_slice(body.as_bytes()) })
    }

    /// The address of the request, and the names of its headers that are not in [`HEADERS`].
    pub(crate) fn sent_to(&self, webhook: &SigningWebhook) -> SentTo {
        let names = |headers: &[(HeaderName, HeaderValue)]| {
            let names = headers.iter().map(|(name, _)| name.as_str());
            names.filter(|name| !HEADERS.contains(name)).map(str::to_owned).collect()
        };
        let headers = match self {
            Self::Request { headers, .. } => Some(names(headers)),
            Self::Blocked(_) => None,
        };
        SentTo { url: webhook.webhook.endpoint.shown_url(), headers }
    }

    /// Exchanges request and response with the endpoint, on a connection for this entity only.
    pub(crate) async fn send(self, outbound: &Outbound, entity: &EntityId) -> Result<HttpResponse, AttemptError> {
        match self {
            Self::Request { url, headers, body } => {
                outbound.send_for(entity.as_str(), Method::POST, url.url(), &headers, body).await
            }
            Self::Blocked(error) => Err(error),
        }
    }
}
