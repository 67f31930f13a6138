//! Secrets Manager, with the secrets that the functions read.

use serde_json::{Value, json};

use crate::{
    geo_ip::{EDITIONS, SERVER},
    providers::Provider,
};

/// The key of the task that updates geo-IP databases.
pub const TASK_KEY: &str = "task-key-of-the-simulation";
/// The prefix of the secrets' names.
pub const PREFIX: &str = "simulation/";

/// The key ring, with a single 32-byte key in Base64.
pub fn data_keys() -> Value {
    json!({ "current": "1799000000-a", "keys": { "1799000000-a": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=" } })
}

/// The token signing keys. Ed25519 signatures have no random part, so histories can be repeated.
pub fn signing_keys() -> Value {
    let key = |kid: &str, pkcs8: &str| json!({ "kid": kid, "algorithm": "EdDSA", "pkcs8": pkcs8 });
    json!({
        "current": key("current", "MC4CAQAwBQYDK2VwBCIEILXBfClKMlS8j2W4fZ8TLHR7X0X1pe6u0LYFqOlyAFP6"),
        "next": key("next", "MC4CAQAwBQYDK2VwBCIEIOdKfhFvtUguU0dvcnhWsb3kbyk/JG8A5gsnK7zHX0nG"),
    })
}

fn value(name: &str) -> Option<Value> {
    Some(match name {
        "data-keys" => data_keys(),
        "signing-key" => signing_keys(),
        "geo-ip" => geo_ip(),
        "task-key" => json!({ "key": TASK_KEY }),
        "client-secret-pepper" => json!({ "pepper": "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=" }),
        _ => Provider::ALL.iter().find(|provider| name.strip_prefix("provider-") == Some(provider.name()))?.secret(),
    })
}

/// The secret with this full name, in the format of a response.
fn answered(id: &Value) -> Option<Value> {
    let secret = value(id.as_str()?.strip_prefix(PREFIX)?)?;
    Some(json!({ "Name": id, "ARN": id, "SecretString": secret.to_string() }))
}

fn geo_ip() -> Value {
    let [summed, max_mind, alone] = EDITIONS;
    let url = |edition: &str| format!("{SERVER}/{edition}.mmdb.gz");
    json!({ "editions": [
        { "edition": summed, "source": "url", "url": url(summed), "sha256Url": format!("{}.sha256", url(summed)) },
        { "edition": max_mind, "source": "maxmind", "url": SERVER, "accountId": 1, "licenseKey": "key" },
        { "edition": alone, "source": "url", "url": url(alone) },
    ] })
}

/// Responds to an operation with a status and a body.
pub fn answer(operation: &str, request: &Value) -> (u16, String) {
    match operation {
        "GetSecretValue" => match answered(&request["SecretId"]) {
            Some(secret) => (200, secret.to_string()),
            None => (400, json!({ "__type": "ResourceNotFoundException" }).to_string()),
        },
        _ => (400, json!({ "__type": "InvalidRequestException" }).to_string()),
    }
}
