//! The signature of a delivery as in Standard Webhooks: HMAC-SHA256 over the id, the time and the body.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

use crate::subscriptions::secret::SigningSecret;
use base::{EventId, Time};

/// The value of `webhook-signature`: one signature for each live secret, separated by spaces.
pub fn sign<'a>(
    secrets: impl IntoIterator<Item = &'a SigningSecret>,
    event: &EventId,
    time: Time,
    body: &str,
) -> String {
    let signed = format!("{event}.{}.{body}", time.as_seconds());
    let one = |secret: &SigningSecret| {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.key()), signed.as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(tag))
    };
    secrets.into_iter().map(one).collect::<Vec<_>>().join(" ")
}
