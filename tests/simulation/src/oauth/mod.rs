//! The token issuer: the use cases in a sandbox, and the clients that get, verify and revoke tokens.

mod clients;
mod records;
mod use_cases;

use std::time::Duration;

use auth::{keys::Published, signing::SigningSecret};
use fastrand::Rng;
use serde_json::{Map, Value, json};

pub use records::{Records, Verdict, Verification};
pub use use_cases::UseCases;

use crate::{
    aws,
    clock::SandboxClock,
    draws::Draws,
    faults::Chances,
    plan::TENANTS,
    sandbox::{Function, Sandbox},
    world::{At, World},
};

/// The URL of the API.
pub const BASE_URL: &str = "https://api.simulated";
/// The URL of the issuer.
pub const ISSUER: &str = "https://auth.simulated";
/// How long tokens are valid, in seconds.
pub const LIFETIME: u32 = 1_800;

/// The action in a step about tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A tenant creates an application, with an idempotency key if there is a number.
    Create(usize, Option<u8>),
    /// A tenant adds a secret to one of its applications.
    AddSecret(usize),
    /// An application gets a token, using one of its secrets.
    GetToken(usize),
    /// Functions verify a token in this many sandboxes concurrently.
    Verify(usize, u8),
    /// An application revokes one of its tokens.
    Revoke(usize),
    /// A tenant removes a secret.
    RemoveSecret(usize),
    /// A tenant removes an application.
    RemoveApplication(usize),
    /// The partition that contains the revocations is throttled for this long.
    Throttle(Duration),
}

/// A history's steps about tokens; half of the histories have none.
pub fn plan(draws: Draws, length: Duration) -> Vec<(Duration, Action)> {
    let rng = &mut draws.about(&"plan of tokens");
    if rng.bool() {
        return Vec::new();
    }
    let weights =
        [6, rng.u32(0..3), 14, 20, rng.u32(0..8), rng.u32(0..4), rng.u32(0..3), rng.u32(0..4).saturating_sub(2)];
    let step = |rng: &mut Rng| {
        let at = length.mul_f64(rng.f64());
        let tenant = rng.usize(0..TENANTS);
        let action = match crate::plan::choose(&weights, rng) {
            0 => Action::Create(tenant, rng.bool().then(|| rng.u8(0..6))),
            1 => Action::AddSecret(tenant),
            2 => Action::GetToken(tenant),
            3 => Action::Verify(tenant, rng.u8(1..5)),
            4 => Action::Revoke(tenant),
            5 => Action::RemoveSecret(tenant),
            6 => Action::RemoveApplication(tenant),
            _ => Action::Throttle(Duration::from_secs_f64(400.0 * rng.f64().powi(2))),
        };
        (at, action)
    };
    let mut steps: Vec<_> = (0..rng.usize(30..80)).map(|_| step(rng)).collect();
    // Ended tokens are verified in one sandbox after another.
    for (at, action) in steps.clone() {
        let (Action::Revoke(tenant) | Action::RemoveSecret(tenant) | Action::RemoveApplication(tenant)) = action else {
            continue;
        };
        for wait in [0, 2, 20, 59, 62, 70, 130] {
            let at = at + Duration::from_millis(wait * 1_000 + rng.u64(0..3_000));
            steps.push((at, Action::Verify(tenant, rng.u8(1..4))));
        }
    }
    steps
}

/// Publishes the keys that verify tokens, as provisioning does.
pub fn publish_keys(world: &World) {
    let keys = SigningSecret::read(&aws::signing_keys()).and_then(|secret| secret.keys());
    let mut published = Published::default();
    let settled = keys.map(|keys| published.settle(&keys, LIFETIME, world.now()));
    settled.expect("the keys of the simulation are valid").expect("no key was revoked");
    let keys = serde_json::to_value(&published.keys).expect("keys can be written as JSON");
    let item = json!({ "pk": "KEYS", "sk": "JWKS", "keys": keys, "revoked": [], "version": 1 });
    let request = json!({ "TableName": aws::TABLE, "Item": attribute(&item)["M"] });
    let now = world.clock.millis();
    let mut rng = world.draws.about(&"keys");
    let mut state = world.state();
    let chances = std::mem::replace(&mut state.chances, Chances::none());
    let sandbox = Sandbox::new(0, Function::GetToken, SandboxClock::new(world.clock, 0));
    let at = At { sandbox: &sandbox, point: "provision" };
    state
        .call_table("PutItem", &request, now, at, &mut rng)
        .map_err(|refusal| refusal.body)
        .expect("the item is valid");
    state.chances = chances;
}

/// A value in DynamoDB's format.
fn attribute(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "NULL": true }),
        Value::Bool(is) => json!({ "BOOL": is }),
        Value::Number(number) => json!({ "N": number.to_string() }),
        Value::String(text) => json!({ "S": text }),
        Value::Array(list) => json!({ "L": list.iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(members) => {
            json!({ "M": members.iter().map(|(name, value)| (name.clone(), attribute(value))).collect::<Map<_, _>>() })
        }
    }
}
