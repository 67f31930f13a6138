//! Secrets Manager, with the secrets that these functions read.

use serde_json::{Value, json};

use crate::geo_ip::{EDITIONS, SERVER};

/// The key of the task that updates geo-IP databases.
pub const TASK_KEY: &str = "task-key-of-the-simulation";
/// The prefix of the names.
pub const PREFIX: &str = "simulation/";

/// The key ring, with one key of 32 bytes in base 64.
fn data_keys() -> String {
    json!({ "current": "1799000000-a", "keys": { "1799000000-a": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=" } })
        .to_string()
}

/// The configured geo-IP databases.
fn geo_ip() -> String {
    let [summed, max_mind, alone] = EDITIONS;
    let url = |edition: &str| format!("{SERVER}/{edition}.mmdb.gz");
    json!({ "editions": [
        { "edition": summed, "source": "url", "url": url(summed), "sha256Url": format!("{}.sha256", url(summed)) },
        { "edition": max_mind, "source": "maxmind", "url": SERVER, "accountId": 1, "licenseKey": "key" },
        { "edition": alone, "source": "url", "url": url(alone) },
    ] })
    .to_string()
}

/// The value of a secret.
fn value(name: &str) -> Option<Value> {
    let text = match name.strip_prefix(PREFIX)? {
        "data-keys" => data_keys(),
        "geo-ip" => geo_ip(),
        "task-key" => json!({ "key": TASK_KEY }).to_string(),
        _ => return None,
    };
    Some(json!({ "Name": name, "ARN": name, "SecretString": text }))
}

/// Answers an operation with a status and a body.
pub fn answer(operation: &str, request: &Value) -> (u16, String) {
    let named = |name: &Value| name.as_str().and_then(value);
    match operation {
        "GetSecretValue" => match named(&request["SecretId"]) {
            Some(value) => (200, value.to_string()),
            None => (400, json!({ "__type": "ResourceNotFoundException" }).to_string()),
        },
        "BatchGetSecretValue" => {
            let names = request["SecretIdList"].as_array().into_iter().flatten();
            let values: Vec<_> = names.filter_map(named).collect();
            (200, json!({ "SecretValues": values }).to_string())
        }
        _ => (400, json!({ "__type": "InvalidRequestException" }).to_string()),
    }
}
