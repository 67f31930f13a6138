//! The canary's receiver: verifies a delivery as docs/receiving-webhooks.md describes, independently of the code that
//! signs, and records the arrival.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

use crate::canary::{
    arrivals::Arrivals,
    secret::{CanarySecret, SecretSource},
};
use base::{EventId, SharedClock, Time, refreshed::Refreshed};
use problem::{Problem, ProblemKind};
use storage::{SecretError, Secrets, Table, TableError};

/// The maximum difference accepted between a delivery's timestamp and the receiver's clock.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// The minimum time between two reads of the secret, which limits the reads that forged calls can cause.
const READ_AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// Receives the canary's deliveries.
pub struct CanaryReceiver {
    secret: Refreshed<SecretSource>,
    arrivals: Arrivals,
    clock: SharedClock,
}

/// A received delivery that has not been verified.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The header `webhook-id`.
    pub id: &'a str,
    /// The header `webhook-timestamp`.
    pub timestamp: &'a str,
    /// The header `webhook-signature`.
    pub signature: &'a str,
    /// The exact bytes of the body.
    pub body: &'a [u8],
}

/// Why a delivery was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The signature is missing, wrong or too old, or there is no canary. The response does not say which, so that it
    /// reveals nothing to a stranger.
    #[error("the delivery does not belong to the canary")]
    Refused,
    /// The canary's secret could not be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The table failed.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<ReceiveError> for Problem {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Refused => {
                let detail =
                    "This endpoint accepts only this deployment's canary, and the signature is not from the canary.";
                Self::new(ProblemKind::TaskRefused, detail)
            }
            ReceiveError::Secret(error) => error.into(),
            ReceiveError::Table(error) => error.into(),
        }
    }
}

impl CanaryReceiver {
    /// A receiver that uses this secret and table.
    pub fn new(secrets: Secrets, table: Table, clock: SharedClock) -> Self {
        let secret = Refreshed::new(SecretSource(secrets), clock.clone());
        Self { secret, arrivals: Arrivals(table), clock }
    }

    /// Verifies a delivery and records its arrival.
    pub async fn receive(&self, received: Received<'_>) -> Result<(), ReceiveError> {
        let now = self.clock.now();
        if !received.is_recent(now) {
            return Err(ReceiveError::Refused);
        }
        let is_good = |secret: &Option<CanarySecret>| secret.as_ref().is_some_and(|secret| received.is_of(secret));
        let secret = self.secret.suitable(READ_AT_MOST_EVERY, is_good).await?;
        let event = EventId::parse(received.id).filter(|_| is_good(&secret)).ok_or(ReceiveError::Refused)?;
        Ok(self.arrivals.record(&event, now).await?)
    }
}

impl Received<'_> {
    /// Whether the timestamp is recent. This limits the replay of recorded deliveries.
    fn is_recent(&self, now: Time) -> bool {
        let sent = self.timestamp.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000));
        sent.map(Time::from_millis).is_some_and(|sent| now.since(sent).max(sent.since(now)) <= TOLERANCE)
    }

    /// Whether one of the signatures was made with the canary's key.
    fn is_of(&self, secret: &CanarySecret) -> bool {
        let mut signed = format!("{}.{}.", self.id, self.timestamp).into_bytes();
        signed.extend_from_slice(self.body);
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.signing_key.expose());
        let tags = self.signature.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
        let mut tags = tags.filter_map(|tag| BASE64_STANDARD.decode(tag).ok());
        tags.any(|tag| hmac::verify(&key, &signed, &tag).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        deliveries::dispatch::signature,
        subscriptions::endpoint::{key_pair::SignatureScheme, secret::SigningSecret},
    };
    use base::{SystemRandom, testing::CountingRandom};

    const NOW: Time = Time::from_millis(1_795_167_900_123);
    const BODY: &str = r#"{"data":{}}"#;

    fn secret(key: &SigningSecret) -> CanarySecret {
        let secret = json!({
            "clientId": "app", "clientSecret": "hush", "managingEntityIdentifier": "canary-1",
            "webhookIdentifier": "whk_01kc8k6m2q0000000000000000", "signingKey": BASE64_STANDARD.encode(key.key()),
        });
        serde_json::from_value(secret).expect("well formed")
    }

    #[test]
    fn a_delivery_verifies_by_key_body_time_and_id_for_five_minutes() {
        let key = SigningSecret::new(&SystemRandom, SignatureScheme::Hmac);
        let other = SigningSecret::new(&SystemRandom, SignatureScheme::Hmac);
        let event = EventId::new(NOW, &CountingRandom::default());
        let timestamp = NOW.as_seconds().to_string();
        // A webhook whose secret was rotated signs with both keys.
        let signatures = signature::sign([&other, &key], &event, NOW, BODY);
        let good =
            Received { id: event.as_str(), timestamp: &timestamp, signature: &signatures, body: BODY.as_bytes() };
        assert!(good.is_of(&secret(&key)) && good.is_of(&secret(&other)));
        assert!(!good.is_of(&secret(&SigningSecret::new(&SystemRandom, SignatureScheme::Hmac))));
        for bad in [
            Received { id: "evt_other", ..good },
            Received { timestamp: "1795167901", ..good },
            Received { body: b"{}", ..good },
            Received { signature: "", ..good },
            Received { signature: "v1,", ..good },
            Received { signature: "v2,AAAA", ..good },
        ] {
            assert!(!bad.is_of(&secret(&key)), "{bad:?}");
        }
        for (seconds, recent) in [(0, true), (299, true), (302, false)] {
            let moved = Duration::from_secs(seconds);
            assert_eq!((good.is_recent(NOW + moved), good.is_recent(NOW - moved)), (recent, recent), "{seconds}");
        }
        for timestamp in ["", "soon", "9223372036854775807"] {
            assert!(!Received { timestamp, ..good }.is_recent(NOW));
        }
    }
}
