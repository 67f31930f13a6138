//! Links and sessions on the wire.

use serde::Serialize;

use super::{link::PanelLink, links::CreatedLink, sessions::OpenSession};
use auth::EntityId;
use base::{PanelLinkId, Time};

/// A link, as its managing entity sees it. Not `Debug`, since it may contain a code.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkView<'a> {
    id: &'a PanelLinkId,
    /// Shown once, in the response to the creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    client_id: &'a str,
    created_date: Time,
    expires_date: Time,
    lifetime_seconds: u32,
    may_publish: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_date: Option<Time>,
    owner_identifier: &'a EntityId,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    scopes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_ends_date: Option<Time>,
}

/// A session, for its page. Not `Debug`, since it contains a token.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView<'a> {
    access_token: &'a str,
    expires_in: u64,
    expires_date: Time,
    session_ends_date: Time,
    scope: String,
    managing_entity: &'a EntityId,
    link_identifier: &'a PanelLinkId,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl PanelLink {
    /// The link as its managing entity sees it.
    pub fn view(&self) -> LinkView<'_> {
        self.view_with(None)
    }

    fn view_with<'a>(&'a self, url: Option<&'a str>) -> LinkView<'a> {
        let grant = &self.grant;
        LinkView {
            id: &self.id,
            url,
            client_id: &grant.client_id,
            created_date: grant.created_date,
            expires_date: self.expires_date,
            lifetime_seconds: grant.lifetime_seconds,
            may_publish: grant.may_publish,
            name: grant.name.as_deref(),
            opened_date: self.session.as_ref().map(|session| session.opened_date),
            owner_identifier: &self.entity,
            place: grant.place.as_deref(),
            scopes: grant.scopes.iter().map(|scope| scope.as_str()).collect(),
            session_ends_date: self.session.as_ref().map(|session| session.ends_date),
        }
    }
}

impl Serialize for CreatedLink {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.link.view_with(Some(self.url.expose())).serialize(serializer)
    }
}

impl OpenSession {
    /// The session at this time, for its page.
    pub fn view(&self, now: Time) -> SessionView<'_> {
        let grant = &self.link.grant;
        SessionView {
            access_token: self.access_token.expose(),
            expires_in: self.expires.since(now).as_secs(),
            expires_date: self.expires,
            session_ends_date: self.session_ends,
            scope: grant.scopes.to_string(),
            managing_entity: &self.link.entity,
            link_identifier: &self.link.id,
            place: grant.place.as_deref(),
            name: grant.name.as_deref(),
        }
    }
}
