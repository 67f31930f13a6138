//! The list of the providers that are set up in this deployment. A provider is set up if it has a secret. Only the
//! secrets' names are read, so that the list's function needs no right to read a secret. As a result, even a malformed
//! secret is listed.

use serde::Serialize;

use crate::{
    builtin,
    page::{Page, PageRequest},
    provider::ProviderName,
    providers::SECRET_PREFIX,
};
use base::SharedClock;
use base::refreshed::{Reading, Refreshed, Source};
use problem::{Problem, Query};
use storage::{SecretError, Secrets};

/// The providers that are set up, in memory.
pub struct ProviderList(Refreshed<ProviderNames>);

struct ProviderNames(Secrets);

impl Source for ProviderNames {
    type Value = Vec<ProviderName>;
    type Error = SecretError;

    fn load(&self) -> Reading<'_, Self> {
        Box::pin(async { Ok(sorted(self.0.names(SECRET_PREFIX).await?)) })
    }
}

/// The providers of these secrets, sorted. A secret whose name cannot be a provider's is left out.
fn sorted(secrets: Vec<String>) -> Vec<ProviderName> {
    let names = secrets.iter().filter_map(|secret| ProviderName::parse(secret.strip_prefix(SECRET_PREFIX)?).ok());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// A request for a page of providers.
pub type ProviderListRequest = PageRequest<ProviderName>;

impl ProviderListRequest {
    /// Reads the parameters of a query for providers.
    pub fn of_query(query: Query<'_>) -> Result<Self, Problem> {
        Self::read(query, |text| ProviderName::parse(text).ok())
    }
}

/// A provider that is set up, as a client sees it.
#[derive(Debug, Serialize)]
pub struct ProviderView {
    /// The provider's name.
    name: ProviderName,
    /// The provider's name for people.
    label: String,
}

impl From<ProviderName> for ProviderView {
    fn from(name: ProviderName) -> Self {
        Self { label: builtin::label(&name).to_owned(), name }
    }
}

impl ProviderList {
    /// The providers with these secrets. The first request reads the list.
    pub fn new(secrets: Secrets, clock: SharedClock) -> Self {
        Self(Refreshed::new(ProviderNames(secrets), clock))
    }

    /// A page of the providers, sorted by name.
    pub async fn page(&self, request: &ProviderListRequest) -> Result<Page<ProviderView>, SecretError> {
        let names = self.0.get().await?.to_vec();
        let Page { items, next_cursor } = Page::cut(names, request, |name| name, |name, after| name > after);
        Ok(Page { items: items.into_iter().map(ProviderView::from).collect(), next_cursor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_secret_of_a_provider_is_a_provider_and_no_other() {
        let secrets = ["provider-square", "provider-demo", "provider-", "provider-A", "key"].map(str::to_owned);
        let names = sorted(secrets.to_vec());
        assert_eq!(names.iter().map(ProviderName::as_str).collect::<Vec<_>>(), ["demo", "square"]);
    }

    #[test]
    fn a_provider_without_a_label_is_called_by_its_name() {
        let view = |name: &str| json!(ProviderView::from(ProviderName::parse(name).expect("a name")));
        assert_eq!(view("stripe"), json!({ "name": "stripe", "label": "Stripe" }));
        assert_eq!(view("demo"), json!({ "name": "demo", "label": "demo" }));
    }
}
