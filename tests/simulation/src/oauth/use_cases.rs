//! The token issuer's use cases in one sandbox.

use std::sync::Arc;

use auth::{
    Audience, Verifier,
    keys::{KeyCache, PublishedKeys},
    revocations::{RevocationList, Revocations},
};
use issuer::{
    applications::{Applications, register::Registration},
    oauth::{
        client_authentication::ClientAuthentication,
        client_credentials::ClientCredentials,
        guesses::GuessSettings,
        pepper::{Pepper, PepperSource},
        revoke::Revocation,
        signing_keys::SigningKeyCache,
    },
};
use storage::{Allowances, Secrets, Table};
use tokio::sync::OnceCell;

use super::{BASE_URL, ISSUER, LIFETIME};
use crate::{aws::TABLE, bundle::Bundle};

/// The use cases that a sandbox keeps between invocations.
#[derive(Default)]
pub struct UseCases {
    verifier: OnceCell<Arc<Verifier>>,
    registration: OnceCell<Registration>,
    grant: OnceCell<ClientCredentials>,
    revocation: OnceCell<Revocation>,
}

impl Bundle {
    /// The use case that verifies tokens, with a separate handle for the table.
    pub async fn verifier(&self) -> Arc<Verifier> {
        let make = async || {
            let table = Table::new(self.aws.dynamodb(), TABLE);
            let keys = KeyCache::new(PublishedKeys::new(table.clone()), self.clock.clone());
            let revocations = Revocations::new(RevocationList::new(table), self.clock.clone());
            let verifier = Arc::new(Verifier::new(keys, revocations, audience(), self.clock.clone()));
            verifier.warm_up().await;
            verifier
        };
        Arc::clone(self.oauth.verifier.get_or_init(make).await)
    }

    /// The store of applications.
    pub fn applications(&self) -> Applications {
        Applications::new(self.table.clone())
    }

    fn issuers_secrets(&self) -> Secrets {
        Secrets::connect(&self.aws, crate::aws::SECRETS_PREFIX)
    }

    /// The use case that creates applications and secrets.
    pub async fn applications_registration(&self) -> &Registration {
        let make = async || Registration {
            applications: self.applications(),
            allowances: Allowances::new(self.table.clone()),
            answers: self.sealed_answers(),
            pepper: Pepper::warm(PepperSource(self.issuers_secrets()), self.clock.clone()).await,
            random: self.random.clone(),
        };
        self.oauth.registration.get_or_init(make).await
    }

    async fn clients(&self, secrets: Secrets) -> ClientAuthentication {
        let limits = GuessSettings::default();
        ClientAuthentication::start(&self.table, secrets, limits, ISSUER.to_owned(), self.clock.clone()).await
    }

    /// The use case that issues tokens.
    pub async fn grant(&self) -> &ClientCredentials {
        let make = async || {
            let secrets = self.issuers_secrets();
            let tokens = self.verifier().await;
            let (clients, issuer) = tokio::join!(
                self.clients(secrets.clone()),
                SigningKeyCache::start(secrets, tokens, self.clock.clone())
            );
            let random = self.random.clone();
            ClientCredentials { clients, issuer, audience: audience(), lifetime: LIFETIME, random }
        };
        self.oauth.grant.get_or_init(make).await
    }

    /// The use case that revokes tokens.
    pub async fn token_revocation(&self) -> &Revocation {
        let make =
            async || Revocation { clients: self.clients(self.issuers_secrets()).await, tokens: self.verifier().await };
        self.oauth.revocation.get_or_init(make).await
    }
}

fn audience() -> Audience {
    Audience { issuer: ISSUER.to_owned(), base_url: BASE_URL.to_owned() }
}
