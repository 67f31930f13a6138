//! Secrets Manager, with the only secret that these functions read: the data keys.

use serde_json::{Value, json};

/// The prefix of the names.
pub const PREFIX: &str = "simulation/";

/// The key ring, with one key of 32 bytes in base 64.
fn data_keys() -> String {
    json!({ "current": "1799000000-a", "keys": { "1799000000-a": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=" } })
        .to_string()
}

/// Answers an operation with a status and a body.
pub fn answer(operation: &str, request: &Value) -> (u16, String) {
    let name = format!("{PREFIX}data-keys");
    let value = json!({ "Name": name, "ARN": name, "SecretString": data_keys() });
    match operation {
        "GetSecretValue" if request["SecretId"] == name.as_str() => (200, value.to_string()),
        "GetSecretValue" => (400, json!({ "__type": "ResourceNotFoundException" }).to_string()),
        "BatchGetSecretValue" => (200, json!({ "SecretValues": [value] }).to_string()),
        _ => (400, json!({ "__type": "InvalidRequestException" }).to_string()),
    }
}
