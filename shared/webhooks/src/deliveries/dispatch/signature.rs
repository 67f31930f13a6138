//! A delivery's signatures, as Standard Webhooks defines them: HMAC-SHA256 (`v1`), and Ed25519 (`v1a`) if the webhook
//! has key pairs, over the id, the time and the body.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_STANDARD};

use crate::subscriptions::endpoint::secret::SigningSecret;
use base::{EventId, Time};

/// The value of `webhook-signature`: the signatures of all live secrets and key pairs, separated by spaces.
pub fn sign<'a>(
    secrets: impl IntoIterator<Item = &'a SigningSecret>,
    event: &EventId,
    time: Time,
    body: &str,
) -> String {
    let signed = format!("{event}.{}.{body}", time.as_seconds());
    let of_one = |secret: &SigningSecret| signatures(secret, signed.as_bytes()).collect::<Vec<_>>();
    secrets.into_iter().flat_map(of_one).collect::<Vec<_>>().join(" ")
}

fn signatures(secret: &SigningSecret, signed: &[u8]) -> impl Iterator<Item = String> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.key()), signed);
    let symmetric = format!("v1,{}", BASE64_STANDARD.encode(tag));
    let asymmetric = secret.key_pair().map(|pair| format!("v1a,{}", pair.sign(signed)));
    [symmetric].into_iter().chain(asymmetric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::endpoint::key_pair::{SignatureScheme, tests::of_the_specification};
    use base::{SystemRandom, testing::CountingRandom};

    #[test]
    fn an_ed25519_signature_is_the_one_of_the_specification() {
        let message = br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let expected = "hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";
        assert_eq!(of_the_specification().sign(message), expected);
    }

    #[test]
    fn the_vector_of_the_guide_is_signed_by_its_public_key() {
        let page = include_str!("../../../../../docs/receiving-webhooks.md");
        let body = page.lines().find(|line| line.starts_with(r#"{"id":"evt_01m7w5gmev7xwvpyt3bc2k45jh""#));
        let signed = format!("evt_01m7w5gmev7xwvpyt3bc2k45jh.1795167900.{}", body.expect("the page has an example"));
        assert!(page.contains(&format!("`v1a,{}`", of_the_specification().sign(signed.as_bytes()))));
        assert!(page.contains("`whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=`"));
    }

    #[test]
    fn each_secret_signs_and_each_key_pair_beside_it() {
        let now = Time::from_millis(1_795_167_900_123);
        let event = EventId::new(now, &CountingRandom::default());
        let plain = SigningSecret::new(&SystemRandom, SignatureScheme::Hmac);
        let paired = SigningSecret::new(&SystemRandom, SignatureScheme::Ed25519);
        let versions = |secrets: &[&SigningSecret]| {
            let text = sign(secrets.iter().copied(), &event, now, "{}");
            let versions = text.split(' ').map(|one| one.split_once(',').expect("a version").0.to_owned());
            versions.collect::<Vec<_>>()
        };
        assert_eq!(versions(&[&plain]), ["v1"]);
        assert_eq!(versions(&[&paired]), ["v1", "v1a"]);
        assert_eq!(versions(&[&paired, &plain]), ["v1", "v1a", "v1"]);
        assert_eq!(versions(&[&paired, &paired]), ["v1", "v1a", "v1", "v1a"]);
    }
}
