//! Removing a secret or a key of an application, by its owner or because there are too many that have ended.
//!
//! In one transaction the credential goes and the tokens that were got with it are revoked.

use super::{Application, Applications, ClientKey, ClientSecret, grants, keys, secrets, store::Changed};
use auth::revocations::RevocationList;
use base::{
    clock::{SharedClock, Time},
    ids::ClientSecretId,
};
use gate::{EntityCall, Reply};
use problem::Problem;
use storage::table::TableError;

/// Everything that removing a secret or a key needs.
pub struct CredentialRemoval {
    /// Where applications are kept.
    pub applications: Applications,
    /// Where the credential's tokens are revoked.
    pub revocations: RevocationList,
    /// The clock.
    pub clock: SharedClock,
}

/// What an application has after a change of its credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its secrets.
    pub secrets: Vec<ClientSecret>,
    /// Its keys.
    pub keys: Vec<ClientKey>,
    /// What tokens call the credentials that go, with the tokens that were got with them.
    pub gone: Vec<String>,
}

impl Left {
    /// Whether the application gets no more tokens once those secrets have ended that have an end.
    pub fn will_be_nothing(&self) -> bool {
        self.keys.is_empty() && self.secrets.iter().all(|secret| secret.expires_date.is_some())
    }

    /// Whether the application gets no more tokens.
    pub fn is_nothing(&self, now: Time) -> bool {
        self.keys.is_empty() && !self.secrets.iter().any(|secret| secret.is_live(now))
    }
}

impl CredentialRemoval {
    /// Answers a request to remove a secret.
    pub async fn remove_secret(&self, call: &EntityCall) -> Result<Reply, Problem> {
        self.remove(call, "secretId", |application, id, now| {
            ClientSecretId::parse(id).and_then(|id| secrets::without(application, &id, now))
        })
        .await
    }

    /// Answers a request to remove a key.
    pub async fn remove_key(&self, call: &EntityCall) -> Result<Reply, Problem> {
        self.remove(call, "kid", |application, kid, _| keys::without(application, kid)).await
    }

    async fn remove(
        &self,
        call: &EntityCall,
        parameter: &str,
        without: impl FnOnce(&Application, &str, Time) -> Option<Left>,
    ) -> Result<Reply, Problem> {
        let (confirmed, now) = (grants::confirmed(call)?, self.clock.now());
        let (application, name) = (self.applications.of_path(call).await?, call.path(parameter));
        grants::check_of(call, &application)?;
        let left = without(&application, name, now).ok_or_else(Problem::credential_not_found)?;
        call.notes.subject(&format!("{}/{name}", application.client_id));
        if left.will_be_nothing() {
            grants::check_confirmation(call, &application, confirmed)?;
        }
        match self.applications.leave(&application, &left, &self.revocations, now).await? {
            Changed::Yes => removed(name, left.is_nothing(now)),
            Changed::Lost => Err(self.applications.lost(call).await),
        }
    }
}

impl Applications {
    /// Leaves these credentials to the application, if it is still as it was read, and revokes the tokens of those that go.
    pub async fn leave(
        &self,
        read: &Application,
        left: &Left,
        revocations: &RevocationList,
        now: Time,
    ) -> Result<Changed, TableError> {
        if left.gone.is_empty() {
            return self.change_credentials(read, &left.secrets, &left.keys, now).await;
        }
        let revoking = left.gone.iter().map(|gone| revocations.credential(&read.client_id, gone, now));
        self.remove_credentials(read, left, revoking.collect::<Result<_, _>>()?, now).await
    }
}

fn removed(name: &str, none_is_left: bool) -> Result<Reply, Problem> {
    let message = if none_is_left {
        "It is no longer accepted, and tokens that were got with it end within a minute. It was the last: the application gets \
         no tokens until it is given a secret or a key."
    } else {
        "It is no longer accepted, and tokens that were got with it end within a minute."
    };
    Reply::removed(&name, message)
}
