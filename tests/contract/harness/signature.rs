//! The Standard Webhooks signature, computed independently of the service's code.

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

use super::Received;

/// A message's `v1` signature with this signing secret, as in the header.
pub fn signature(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = secret.strip_prefix("whsec_").expect("a signing secret begins with whsec_");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &BASE64_STANDARD.decode(key).expect("the rest is base64"));
    let mut message = format!("{id}.{timestamp}.").into_bytes();
    message.extend(body);
    format!("v1,{}", BASE64_STANDARD.encode(hmac::sign(&key, &message)))
}

/// Whether one of a request's signatures is valid for this secret.
pub fn is_signed_by(received: &Received, secret: &str) -> bool {
    let expected =
        signature(secret, received.header("webhook-id"), received.header("webhook-timestamp"), &received.body);
    received.header("webhook-signature").split(' ').any(|signature| signature == expected)
}
