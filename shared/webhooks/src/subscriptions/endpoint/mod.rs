//! A webhook's endpoint: the URL and headers of its requests. The table stores the endpoint twice: once as responses
//! show it, with the values of headers and of the URL's query masked, and once in full, sealed for this webhook only.
//! So showing, listing and publishing need no key, while changing and sending do.

pub(crate) mod headers;
pub mod key_pair;
pub mod masked;
pub mod rotate;
pub mod secret;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::subscriptions::endpoint::masked::{Headers, NothingKept};
use auth::EntityId;
use base::{Random, WebhookId};
use outbound::{
    AddressRules,
    endpoint_url::{EndpointUrl, EndpointUrlError},
};
use problem::{Pointer, Rule, Violations};
use storage::{KeyRing, KeyRings, SealError};
use url::Url;

/// An endpoint as stored in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptEndpoint {
    event_url: String,
    headers: Headers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed_event_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed_headers: Option<String>,
}

/// A part of an endpoint as stored in the table.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept<T> {
    /// The part as responses show it.
    pub shown: T,
    /// The whole part, sealed; `None` if it has no masked value.
    pub sealed: Option<String>,
}

/// A part of an endpoint: its URL, or its headers.
pub trait Part: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync {
    /// The beginning of the context that the part is sealed for.
    const KIND: &'static str;

    /// The part with its values masked.
    fn masked(&self) -> Self;

    /// Whether it has masks, each of which means a stored value.
    fn has_masks(&self) -> bool;

    /// Replaces masks with stored values. A mask that has no stored value is a violation.
    fn unmasked(self, kept: &Self, violations: &mut Violations) -> Self;

    /// Adds violations of the rules for addresses or headers.
    fn check(&self, rules: &AddressRules, violations: &mut Violations);
}

impl Part for String {
    const KIND: &'static str = "event-url";

    fn masked(&self) -> Self {
        masked::url(self)
    }

    fn has_masks(&self) -> bool {
        masked::masks_url(self)
    }

    fn unmasked(self, kept: &Self, violations: &mut Violations) -> Self {
        violations.note("eventUrl", Rule::NotAllowed, masked::unmask_url(&self, kept)).unwrap_or(self)
    }

    fn check(&self, rules: &AddressRules, violations: &mut Violations) {
        if let Err(error) = EndpointUrl::parse(self, rules) {
            violations.add("eventUrl", rule_of(error), error.to_string());
        }
    }
}

/// The rule that a refused address breaks.
fn rule_of(error: EndpointUrlError) -> Rule {
    match error {
        EndpointUrlError::TooLong => Rule::TooLong,
        EndpointUrlError::NotAUrl | EndpointUrlError::Scheme(_) => Rule::InvalidFormat,
        EndpointUrlError::Credentials
        | EndpointUrlError::Dots
        | EndpointUrlError::Fragment
        | EndpointUrlError::Port
        | EndpointUrlError::NotPublic => Rule::NotAllowed,
    }
}

impl Part for Headers {
    const KIND: &'static str = "headers";

    fn masked(&self) -> Self {
        masked::headers(self)
    }

    fn has_masks(&self) -> bool {
        masked::masks_headers(self)
    }

    fn unmasked(self, kept: &Self, violations: &mut Violations) -> Self {
        masked::unmask_headers(self, kept).unwrap_or_else(|unknown| {
            for name in &unknown {
                violations.add(Pointer::from("headers").member(name), Rule::NotAllowed, NothingKept.to_string());
            }
            Self::new()
        })
    }

    fn check(&self, _: &AddressRules, violations: &mut Violations) {
        headers::check(self, violations);
    }
}

/// The webhook that an endpoint is sealed for: sealed text cannot be opened for another webhook.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    /// The entity that owns the webhook.
    pub owner: &'a EntityId,
    /// The webhook.
    pub webhook: &'a WebhookId,
}

impl SealContext<'_> {
    /// The context that a part is sealed for.
    pub fn context<T: Part>(self) -> String {
        format!("{}/{}/{}", T::KIND, self.owner, self.webhook)
    }
}

impl<T: Part> Kept<T> {
    /// A part for the table. A part without values to mask is not sealed, and needs no key.
    pub async fn of(
        whole: &T,
        rings: &KeyRings,
        random: &dyn Random,
        context: SealContext<'_>,
    ) -> Result<Self, SealError> {
        let shown = whole.masked();
        if shown == *whole {
            return Ok(Self { shown, sealed: None });
        }
        Ok(Self::seal(whole, &*rings.get().await?, random, context))
    }

    /// Seals a part with this ring.
    pub fn seal(whole: &T, ring: &KeyRing, random: &dyn Random, context: SealContext<'_>) -> Self {
        let plain = serde_json::to_vec(whole).expect("texts, and maps of texts by texts, are JSON");
        Self { shown: whole.masked(), sealed: Some(ring.seal(random, &context.context::<T>(), &plain)) }
    }

    /// Opens the whole part.
    pub async fn open(&self, rings: &KeyRings, context: SealContext<'_>) -> Result<T, SealError> {
        let Some(sealed) = &self.sealed else { return Ok(self.shown.clone()) };
        let plain = rings.for_text(sealed).await?.open(&context.context::<T>(), sealed)?;
        serde_json::from_slice(plain.expose()).map_err(|_| SealError::NotOurs)
    }
}

impl KeptEndpoint {
    /// The endpoint made of these parts.
    pub fn new(url: Kept<String>, headers: Kept<Headers>) -> Self {
        Self {
            event_url: url.shown,
            headers: headers.shown,
            sealed_event_url: url.sealed,
            sealed_headers: headers.sealed,
        }
    }

    /// The URL as stored in the table.
    pub fn url(&self) -> Kept<String> {
        Kept { shown: self.event_url.clone(), sealed: self.sealed_event_url.clone() }
    }

    /// The headers as stored in the table.
    pub fn headers(&self) -> Kept<Headers> {
        Kept { shown: self.headers.clone(), sealed: self.sealed_headers.clone() }
    }

    /// The URL as responses show it.
    pub fn shown_url(&self) -> String {
        self.event_url.clone()
    }

    /// Whether an address has the same scheme, host and port as this endpoint.
    pub fn is_same_server(&self, url: &str) -> bool {
        let origin = |url: &str| Url::parse(url).map(|url| url.origin()).ok();
        origin(url).is_some_and(|given| origin(&self.event_url) == Some(given))
    }

    /// The headers as responses show them.
    pub fn shown_headers(&self) -> BTreeMap<String, &'static str> {
        self.headers.keys().map(|name| (name.clone(), masked::MASK)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{SystemRandom, Time, testing::CountingRandom};
    use storage::sealing;

    const URL: &str = "https://example.com/hook?token=s3cret";

    fn owned_by(entity: &str) -> (EntityId, WebhookId) {
        let webhook = WebhookId::new(Time::from_millis(0), &CountingRandom::default());
        (EntityId::parse(entity).expect("an entity"), webhook)
    }

    fn sealed<T: Part>(whole: &T) -> Kept<T> {
        let (owner, webhook) = owned_by("demo-hotel");
        let context = SealContext { owner: &owner, webhook: &webhook };
        Kept::seal(whole, &sealing::ring("a"), &SystemRandom, context)
    }

    #[test]
    fn a_kept_endpoint_shows_no_value_and_opens_for_its_webhook_alone() {
        let headers: Headers = [("Authorization".to_owned(), "Bearer s3cret".to_owned())].into();
        let url = sealed(&URL.to_owned());
        let headers = sealed(&headers);
        let text = url.sealed.clone().expect("it has a masked value");
        let kept = KeptEndpoint::new(url, headers);
        let item = serde_json::to_string(&kept).expect("JSON");
        assert!(!item.contains("s3cret") && item.contains("?token=***") && item.contains(r#""Authorization":"***""#));
        let ring = sealing::ring("b");
        for (entity, opens) in [("demo-hotel", true), ("other-hotel", false)] {
            let (owner, webhook) = owned_by(entity);
            let context = SealContext { owner: &owner, webhook: &webhook };
            let opened = ring.open(&context.context::<String>(), &text);
            assert_eq!(opened.is_ok_and(|plain| plain.expose() == format!("\"{URL}\"").as_bytes()), opens);
            assert!(ring.open(&context.context::<Headers>(), &text).is_err(), "a sealed URL does not open as headers");
        }
    }
}
