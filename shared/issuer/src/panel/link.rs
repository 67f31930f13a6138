//! Panel links: their rights, their lifetimes, and the sessions that they opened.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{key::PanelKey, session::PanelSession};
use crate::applications::Application;
use auth::{EntityId, Scopes};
use base::{PanelLinkId, Time};

/// How long a link can be opened.
pub const CODE_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How long a session's token lives. Each renewal checks the session's application and credential, so that their
/// removal ends the session within this time.
pub const TOKEN_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelLink {
    /// The managing entity that the panel shows.
    pub entity: EntityId,
    /// The link's identifier, which also identifies its session in tokens.
    pub id: PanelLinkId,
    /// The session's rights.
    pub grant: PanelGrant,
    /// The hash of its code.
    pub(super) code_hash: String,
    /// When the link can no longer be opened.
    pub expires_date: Time,
    /// The session, once the link has been opened.
    pub session: Option<PanelSession>,
}

/// The rights that a link grants to its opener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelGrant {
    /// The application whose tokens the session gets.
    pub client_id: String,
    /// The application's secret or key that requested the link, as tokens name it. `None` for the operator's links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<String>,
    /// The scopes of its tokens.
    pub scopes: Scopes,
    /// Whether its tokens may publish events.
    pub may_publish: bool,
    /// How long the session lasts, in seconds.
    pub lifetime_seconds: u32,
    /// The name shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The page that the link opens, if not the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// When the link was created.
    pub created_date: Time,
}

impl PanelLink {
    /// A link that can be opened with this code from now on.
    pub fn new(code: &PanelKey, grant: PanelGrant) -> Self {
        Self {
            entity: code.entity.clone(),
            id: code.link.clone(),
            code_hash: code.hash(),
            expires_date: grant.created_date + CODE_LIFETIME,
            grant,
            session: None,
        }
    }

    /// When the link can no longer be opened or used.
    pub fn ends(&self) -> Time {
        self.session.as_ref().map_or(self.expires_date, |session| session.ends_date)
    }

    /// Whether the link can be opened, or its session is still valid.
    pub fn is_good(&self, now: Time) -> bool {
        now < self.ends()
    }

    /// Whether its application still has the link's scopes and managing entity, and the credential that requested the
    /// link. The right to publish is checked when a token is issued.
    pub fn is_backed_by(&self, application: &Application, now: Time) -> bool {
        let has_credential = |id: &String| {
            application.kept_secrets(now).any(|secret| secret.id.as_str() == id)
                || application.keys.iter().any(|key| key.thumbprint() == *id)
        };
        self.grant.scopes.without(application.scopes).is_empty()
            && application.entities.cover(self.entity.as_str())
            && self.grant.credential_id.as_ref().is_none_or(has_credential)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::key::tests::key, *};
    use crate::applications::{ClientSecret, new_application::NewApplication};
    use auth::Entities;
    use base::SystemRandom;
    use storage::{SecretBytes, SecretText};

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn link(credential: Option<&str>, scopes: &str) -> PanelLink {
        let grant = PanelGrant {
            client_id: "app".into(),
            credential_id: credential.map(str::to_owned),
            scopes: Scopes::parse(scopes).expect("scopes"),
            may_publish: false,
            lifetime_seconds: 3600,
            name: None,
            place: None,
            created_date: NOW,
        };
        PanelLink::new(&key(), grant)
    }

    #[test]
    fn a_link_needs_an_application_with_its_rights_and_credential() {
        let secret = ClientSecret::of(&SecretText::new("secret"), &SecretBytes::new(vec![1; 32]), NOW, &SystemRandom);
        let id = secret.id.as_str().to_owned();
        let scopes = Scopes::parse("integrations.read integrations.write").expect("scopes");
        let new = |entity: &str| NewApplication::of_operator("n".into(), scopes, Entities::new([entity.to_owned()]));
        let application = new("demo-hotel").with("app".into(), Some(secret), NOW);
        assert!(link(Some(&id), "integrations.read").is_backed_by(&application, NOW));
        assert!(link(None, "integrations.read").is_backed_by(&application, NOW));
        assert!(!link(Some("sec_other"), "integrations.read").is_backed_by(&application, NOW));
        assert!(!link(Some(&id), "integrations.read account.read").is_backed_by(&application, NOW));
        let elsewhere = new("other-hotel").with("app".into(), None, NOW);
        assert!(!link(None, "integrations.read").is_backed_by(&elsewhere, NOW));
    }

    #[test]
    fn a_link_is_valid_until_its_code_ends_or_if_opened_its_session() {
        let fresh = link(None, "integrations.read");
        assert!(fresh.is_good(NOW) && !fresh.is_good(NOW + CODE_LIFETIME));
        let session = PanelSession::begin(&key(), Duration::from_secs(3600), NOW, &SystemRandom);
        let opened = PanelLink { session: Some(session), ..fresh };
        assert!(opened.is_good(NOW + CODE_LIFETIME) && !opened.is_good(NOW + Duration::from_secs(3600)));
    }
}
