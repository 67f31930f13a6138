//! The payment provider `demo` of a local service. Only its secret describes it, as with any added provider. `make
//! demo-provider` runs a fake of it.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{Deployment, DeploymentError, deployment::ReplacedSecret};
use base::{SystemRandom, private_file, random};
use storage::SecretError;

/// The name of its secret.
pub const SECRET: &str = "provider-demo";
/// The fake provider's default port.
pub const PORT: u16 = 9100;

const HOST: &str = "http://127.0.0.1:";

/// The provider's complete description, which every provider that is not built in needs.
pub fn fresh(port: u16) -> Value {
    json!({
        "clientId": "demo",
        "clientSecret": random::alphanumeric(&SystemRandom, 43),
        "authorizeUrl": format!("{HOST}{port}/demo/authorize"),
        "tokenUrl": format!("{HOST}{port}/demo/token"),
        "revokeUrl": format!("{HOST}{port}/demo/revoke"),
        "clientAuthentication": "basic",
        "scope": "payments.read payments.write",
        "pkce": true,
        "issuer": format!("{HOST}{port}/demo"),
        "authorizationResponseIssParameterSupported": true,
    })
}

/// The port and the path of a local address.
fn on_this_machine(address: &str) -> Option<(u16, &str)> {
    let rest = address.strip_prefix(HOST)?;
    let (port, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((port.parse().ok()?, path))
}

/// Sets the port in each local address of the description. Other addresses do not change.
fn at_port(description: &Value, port: u16) -> Value {
    let mut moved = description.clone();
    for member in moved.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
        if let Some((_, path)) = member.as_str().and_then(on_this_machine) {
            *member = format!("{HOST}{port}{path}").into();
        }
    }
    moved
}

fn file_of(data: &Path) -> PathBuf {
    data.join("secrets").join(format!("{SECRET}.json"))
}

/// The provider's port in the secret of this data folder, if there is one.
pub fn port(data: &Path) -> Option<u16> {
    let description: Value = serde_json::from_str(&fs::read_to_string(file_of(data)).ok()?).ok()?;
    Some(on_this_machine(description["tokenUrl"].as_str()?)?.0)
}

/// Why the port in the secret was not changed.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The service cannot be used.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The local Secrets Manager refused the change or did not respond.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file for the next start cannot be used.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// The file for the next start is malformed.
    #[error("{path} is not JSON")]
    Form {
        /// The file.
        path: PathBuf,
        /// Where the fault is.
        source: serde_json::Error,
    },
}

/// Sets the provider's port in the secret of this data folder, through the service if one runs there.
pub async fn move_to(data: &Path, port: u16) -> Result<(), MoveError> {
    match Deployment::in_folder(data).await {
        Ok(deployment) => {
            let secret = ReplacedSecret::open(&deployment, SECRET)?;
            let current = secret.current().await?;
            let moved = at_port(&current.value, port);
            if moved != current.value {
                secret.replace(&moved, &current.id).await?;
            }
            Ok(())
        }
        Err(DeploymentError::NoService(_)) => keep(data, port),
        Err(error) => Err(error.into()),
    }
}

/// Writes the port into the secret's file, for the next start.
fn keep(data: &Path, port: u16) -> Result<(), MoveError> {
    let path = file_of(data);
    let at = |source| MoveError::File { path: path.clone(), source };
    let moved = match fs::read_to_string(&path) {
        Ok(text) => {
            let description = serde_json::from_str(&text);
            at_port(&description.map_err(|source| MoveError::Form { path: path.clone(), source })?, port)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => fresh(port),
        Err(error) => return Err(at(error)),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(data.join("secrets")).map_err(at)?;
    private_file::write(&path, format!("{moved}\n").as_bytes()).map_err(at)
}

#[cfg(test)]
mod tests {
    use std::env::temp_dir;

    use base::random::uuid;

    use super::*;

    #[test]
    fn only_local_addresses_get_the_new_port() {
        let mut description = fresh(PORT);
        description["revokeUrl"] = "https://pay.example/demo/revoke".into();
        description["scope"] = "http://127.0.0.1:x".into();
        let moved = at_port(&description, 9105);
        let said = ["authorizeUrl", "tokenUrl", "revokeUrl", "issuer", "scope"].map(|member| moved[member].clone());
        let expected = [
            "http://127.0.0.1:9105/demo/authorize",
            "http://127.0.0.1:9105/demo/token",
            "https://pay.example/demo/revoke",
            "http://127.0.0.1:9105/demo",
            "http://127.0.0.1:x",
        ];
        assert_eq!(said, expected);
        assert_eq!((&moved["clientSecret"], &moved["pkce"]), (&description["clientSecret"], &description["pkce"]));
    }

    #[tokio::test]
    async fn without_a_running_service_the_secret_file_gets_the_port() {
        let data = temp_dir().join(uuid(&SystemRandom));
        assert_eq!(port(&data), None);
        move_to(&data, 9105).await.expect("made");
        assert_eq!(port(&data), Some(9105));
        let secret = |text: String| serde_json::from_str::<Value>(&text).expect("JSON")["clientSecret"].clone();
        let before = secret(fs::read_to_string(file_of(&data)).expect("there"));
        move_to(&data, 9106).await.expect("changed");
        assert_eq!(port(&data), Some(9106));
        assert_eq!(secret(fs::read_to_string(file_of(&data)).expect("there")), before, "the client stays the same");
        fs::remove_dir_all(data).expect("it is ours");
    }
}
