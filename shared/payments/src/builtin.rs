//! The built-in providers. `providers.json` describes each, with its source pages and the questions that those leave
//! open.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::provider::ProviderName;

/// A built-in description.
#[derive(Debug, Deserialize)]
pub struct BuiltIn {
    /// The provider's name.
    pub name: ProviderName,
    /// The provider's name for people.
    pub label: String,
    /// The addresses of its sandbox; `None` if the sandbox uses the same addresses.
    pub sandbox: Option<Map<String, Value>>,
    /// The pages that the description is based on.
    pub sources: Vec<String>,
    /// The questions that those pages leave open, and the assumptions made.
    pub unconfirmed: Vec<String>,
    /// All other members: the description.
    #[serde(flatten)]
    pub description: Map<String, Value>,
}

impl BuiltIn {
    /// Whether its clients authenticate with a private key instead of a shared secret.
    pub fn has_key(&self) -> bool {
        self.description.get("clientAuthentication").is_some_and(|method| method == "private_key_jwt")
    }
}

static ALL: LazyLock<Vec<BuiltIn>> =
    LazyLock::new(|| serde_json::from_str(include_str!("providers.json")).expect("a test parses the compiled-in file"));

/// All built-in providers.
pub fn all() -> &'static [BuiltIn] {
    &ALL
}

/// A provider's display name: its label, or its name if it is not built in.
pub fn label(name: &ProviderName) -> &str {
    find(name).map_or(name.as_str(), |known| &known.label)
}

/// The built-in provider with this name.
pub fn find(name: &ProviderName) -> Option<&'static BuiltIn> {
    ALL.iter().find(|known| known.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client_proof::tests::p256_pem, description};
    use outbound::AddressRules;
    use serde_json::json;
    use std::collections::HashSet;

    #[test]
    fn the_six_are_complete_over_https_and_say_where_they_come_from() {
        let names: HashSet<_> = all().iter().map(|built_in| built_in.name.as_str()).collect();
        assert_eq!(names, HashSet::from(["stripe", "revolut", "paypal", "mollie", "square", "adyen"]));
        assert_eq!(all().len(), names.len());
        for built_in in all() {
            let name = &built_in.name;
            assert!(!built_in.sources.is_empty() && !built_in.unconfirmed.is_empty(), "{name}");
            assert!(built_in.sources.iter().all(|source| source.starts_with("https://")), "{name}");
            for sandbox in [false, built_in.sandbox.is_some()] {
                let secret = json!({
                    "clientId": "a", "clientSecret": "b", "privateKey": p256_pem(), "sandbox": sandbox,
                });
                let provider = description::read(name, find(name), &secret, &AddressRules::default())
                    .unwrap_or_else(|fault| panic!("{name}: {}", fault.0));
                let addresses =
                    [Some(&provider.authorize_url), Some(&provider.token_url), provider.revoke_url.as_ref()];
                assert!(addresses.into_iter().flatten().all(|address| address.scheme() == "https"), "{name}");
                assert!(built_in.label != name.as_str() && !provider.scopes.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn a_sandbox_has_addresses_and_nothing_else() {
        for built_in in all() {
            for member in built_in.sandbox.iter().flat_map(Map::keys) {
                assert!(["authorizeUrl", "tokenUrl", "revokeUrl"].contains(&member.as_str()), "{}", built_in.name);
                assert!(built_in.description.contains_key(member), "{}", built_in.name);
            }
        }
    }
}
