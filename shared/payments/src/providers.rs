//! This deployment's providers. Each is described by the `provider-<name>` secret, in addition to a built-in
//! description.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;

use crate::{
    builtin, description,
    provider::{Provider, ProviderName},
};
use base::SharedClock;
use base::refreshed::{Reading, Refreshed, Source};
use outbound::AddressRules;
use problem::Problem;
use storage::{SecretError, Secrets};

/// The prefix for the names of providers' secrets, after the deployment's prefix.
pub const SECRET_PREFIX: &str = "provider-";

/// Why a provider could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider's secret could not be read.
    #[error("a provider's secret could not be read")]
    Secret(#[from] SecretError),
    /// The provider's secret is malformed.
    #[error("the secret `{SECRET_PREFIX}{name}` is invalid: {what}")]
    Malformed {
        /// The provider's name.
        name: String,
        /// The member and its fault, never its value.
        what: String,
    },
}

impl From<ProviderError> for Problem {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Secret(error) => error.into(),
            error @ ProviderError::Malformed { .. } => Self::internal(error),
        }
    }
}

/// The providers in memory.
pub struct Providers {
    secrets: Secrets,
    rules: AddressRules,
    clock: SharedClock,
    /// Only providers that have a secret, so that requests with invented names cannot fill the memory.
    known: RwLock<HashMap<ProviderName, Arc<Cached>>>,
}

type Cached = Refreshed<ProviderSource>;

struct ProviderSource {
    name: ProviderName,
    secrets: Secrets,
    rules: AddressRules,
}

impl Source for ProviderSource {
    type Value = Option<Arc<Provider>>;
    type Error = ProviderError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async {
            match self.secrets.read::<Value>(&format!("{SECRET_PREFIX}{}", self.name)).await {
                Ok(secret) => read(&self.name, &secret, &self.rules).map(|provider| Some(Arc::new(provider))),
                Err(SecretError::Missing { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }
}

impl Providers {
    /// Creates an empty cache of the providers with these secrets.
    pub fn new(secrets: Secrets, rules: AddressRules, clock: SharedClock) -> Self {
        Self { secrets, rules, clock, known: RwLock::default() }
    }

    /// The provider with this name; `None` if it has no secret, even if it is built in.
    pub async fn find(&self, name: &ProviderName) -> Result<Option<Arc<Provider>>, ProviderError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let cached = known.unwrap_or_else(|| {
            let source =
                ProviderSource { name: name.clone(), secrets: self.secrets.clone(), rules: self.rules.clone() };
            Arc::new(Refreshed::new(source, self.clock.clone()))
        });
        let provider = Option::clone(&*cached.get().await?);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match &provider {
            Some(_) => drop(known.entry(name.clone()).or_insert(cached)),
            None => drop(known.remove(name)),
        }
        Ok(provider)
    }
}

/// Checks a provider's secret; the error names the secret and the member.
pub fn check(name: &str, secret: &Value, rules: &AddressRules) -> Result<(), ProviderError> {
    let parsed = ProviderName::parse(name).map_err(|error| ProviderError::Malformed {
        name: name.to_owned(),
        what: format!("the provider's name {error}"),
    })?;
    read(&parsed, secret, rules).map(drop)
}

fn read(name: &ProviderName, secret: &Value, rules: &AddressRules) -> Result<Provider, ProviderError> {
    description::read(name, builtin::find(name), secret, rules)
        .map_err(|fault| ProviderError::Malformed { name: name.to_string(), what: fault.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_malformed_secret_is_refused_with_its_name_and_member() {
        let rules = AddressRules::default();
        let good = json!({ "clientId": "a", "clientSecret": "b" });
        assert!(check("stripe", &good, &rules).is_ok());
        let shown = |name: &str, secret: &Value| check(name, secret, &rules).expect_err("refused").to_string();
        assert_eq!(shown("nowhere", &good), "the secret `provider-nowhere` is invalid: `authorizeUrl` is missing");
        assert_eq!(
            shown("stripe", &json!({ "clientId": "a", "clientSecret": 1 })),
            "the secret `provider-stripe` is invalid: `clientSecret` must be a string"
        );
        assert!(shown("No", &good).contains("the provider's name must be"));
    }
}
