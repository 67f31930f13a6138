//! Connections as their owners see them: a managing entity's account at a payment provider. Nothing here contains a
//! token.

use serde::{Deserialize, Serialize};

use crate::{last_error::LastError, provider::ProviderName};
use auth::EntityId;
use base::{ConnectionId, Time};
use webhooks::outbox::{EventType, event_type};

/// Published after an entity has connected a provider.
pub const ESTABLISHED: &EventType = event_type("payment.connection.established");
/// Published after a connection broke, so that its owner has to connect again.
pub const BROKEN: &EventType = event_type("payment.connection.broken");
/// Published after an entity has disconnected a provider.
pub const REMOVED: &EventType = event_type("payment.connection.removed");

/// A managing entity's account at a payment provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// The connection's identifier. Connecting again creates a new one.
    pub id: ConnectionId,
    /// The managing entity that owns the connection.
    pub owner_identifier: EntityId,
    /// The provider.
    pub provider: ProviderName,
    /// The account at the provider, if the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whether the connection works.
    pub status: ConnectionStatus,
    /// The scopes that the provider granted.
    pub scopes: Vec<String>,
    /// When the account was connected.
    pub connected_date: Time,
    /// When the current access token expires; absent if it never does. It is refreshed earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_date: Option<Time>,
    /// When the connection was last changed: refreshed or broken.
    pub last_update: Time,
    /// Why the connection broke; absent while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_reason: Option<BreakReason>,
    /// Why the last refresh returned no new tokens; absent after a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
}

/// Whether a connection works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionStatus {
    /// The connection works, according to the provider.
    Connected,
    /// The connection does not work until its owner connects again.
    Broken,
}

impl ConnectionStatus {
    /// The status on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Broken => "broken",
        }
    }
}

/// Why a connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakReason {
    /// The provider no longer accepts the refresh token: the permission was withdrawn, or it expired.
    Refused,
    /// The access token expired, and there is no refresh token.
    Expired,
}

impl BreakReason {
    /// The reason on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Expired => "expired",
        }
    }
}

/// A connection on the wire.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionView<'a> {
    id: &'a ConnectionId,
    provider: &'a ProviderName,
    account: Option<&'a str>,
    status: ConnectionStatus,
    scopes: &'a [String],
    connected_date: Time,
    expires_date: Option<Time>,
    last_update: Time,
    broken_reason: Option<BreakReason>,
    last_error_code: Option<&'a str>,
    last_error_detail: Option<&'a str>,
}

/// The data of an event about a connection.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionEvent<'a> {
    connection_identifier: &'a ConnectionId,
    provider: &'a ProviderName,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BreakReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_connection_identifier: Option<&'a ConnectionId>,
}

impl Connection {
    /// The connection as its owner sees it.
    pub fn view(&self) -> ConnectionView<'_> {
        ConnectionView {
            id: &self.id,
            provider: &self.provider,
            account: self.account.as_deref(),
            status: self.status,
            scopes: &self.scopes,
            connected_date: self.connected_date,
            expires_date: self.expires_date,
            last_update: self.last_update,
            broken_reason: self.broken_reason,
            last_error_code: self.last_error.as_ref().map(|error| error.code.as_str()),
            last_error_detail: self.last_error.as_ref().map(|error| error.detail.as_str()),
        }
    }

    /// The data of the `payment.connection.removed` event.
    pub fn removed(&self) -> ConnectionEvent<'_> {
        ConnectionEvent {
            connection_identifier: &self.id,
            provider: &self.provider,
            account: self.account.as_deref(),
            reason: None,
            replaced_connection_identifier: None,
        }
    }

    /// The data of the `payment.connection.broken` event.
    pub fn broken(&self, reason: BreakReason) -> ConnectionEvent<'_> {
        ConnectionEvent { reason: Some(reason), ..self.removed() }
    }

    /// The data of the `payment.connection.established` event. A replaced connection gets no separate event: events may
    /// arrive in any order, and a later `removed` would look like the new connection's end.
    pub fn established<'a>(&'a self, replaced: Option<&'a ConnectionId>) -> ConnectionEvent<'a> {
        ConnectionEvent { replaced_connection_identifier: replaced, ..self.removed() }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::testing::CountingRandom;
    use serde_json::json;

    /// A connection of `demo-hotel` to Square with ordinary values.
    pub fn connection() -> Connection {
        let now = Time::from_millis(1_795_167_900_123);
        Connection {
            id: ConnectionId::new(now, &CountingRandom::default()),
            owner_identifier: EntityId::parse("demo-hotel").expect("an entity"),
            provider: ProviderName::parse("square").expect("a name"),
            account: None,
            status: ConnectionStatus::Connected,
            scopes: vec!["PAYMENTS_READ".into(), "PAYMENTS_WRITE".into()],
            connected_date: now,
            expires_date: None,
            last_update: now,
            broken_reason: None,
            last_error: None,
        }
    }

    #[test]
    fn its_owner_sees_every_member_and_no_other() {
        let connection = connection();
        let view = serde_json::to_value(connection.view()).expect("JSON");
        let time = "2026-11-20T09:45:00.123Z";
        assert_eq!(
            view,
            json!({
                "id": connection.id,
                "provider": "square",
                "account": null,
                "status": "connected",
                "scopes": ["PAYMENTS_READ", "PAYMENTS_WRITE"],
                "connectedDate": time,
                "expiresDate": null,
                "lastUpdate": time,
                "brokenReason": null,
                "lastErrorCode": null,
                "lastErrorDetail": null,
            })
        );
        let last_error = Some(LastError::new("refused", "the provider answered 400 with invalid_grant"));
        let broken = Connection { broken_reason: Some(BreakReason::Refused), last_error, ..connection };
        let view = serde_json::to_value(broken.view()).expect("JSON");
        assert_eq!((&view["brokenReason"], &view["lastErrorCode"]), (&json!("refused"), &json!("refused")));
        assert_eq!(view["lastErrorDetail"], "the provider answered 400 with invalid_grant");
    }

    #[test]
    fn an_event_leaves_out_an_unknown_account() {
        let mut connection = connection();
        let data = serde_json::to_value(connection.removed()).expect("JSON");
        assert_eq!(data, json!({"connectionIdentifier": connection.id, "provider": "square"}));
        connection.account = Some("M-1".into());
        let data = serde_json::to_value(connection.broken(BreakReason::Refused)).expect("JSON");
        let expected = json!({
            "connectionIdentifier": connection.id, "provider": "square", "account": "M-1", "reason": "refused"
        });
        assert_eq!(data, expected);
        let former = self::connection().id;
        let data = serde_json::to_value(connection.established(Some(&former))).expect("JSON");
        assert_eq!((&data["replacedConnectionIdentifier"], data.get("reason")), (&json!(former), None));
        assert_eq!(json!(connection.established(None)), json!(connection.removed()));
    }

    #[test]
    fn the_data_of_events_conform_to_the_schemas_of_their_types() {
        let former = connection().id;
        for connection in [connection(), Connection { account: Some("M-1".into()), ..connection() }] {
            let of = |event: ConnectionEvent<'_>| json!(event);
            for (kind, data) in [
                (ESTABLISHED, of(connection.established(None))),
                (ESTABLISHED, of(connection.established(Some(&former)))),
                (BROKEN, of(connection.broken(BreakReason::Refused))),
                (BROKEN, of(connection.broken(BreakReason::Expired))),
                (REMOVED, of(connection.removed())),
            ] {
                let schema = serde_json::from_str(&webhooks::events::type_details::schema(kind)).expect("JSON");
                let schema = jsonschema::draft202012::new(&schema).expect("a schema");
                assert!(schema.is_valid(&data), "{}: {data}", kind.value);
            }
        }
    }

    #[test]
    fn status_and_reason_are_spelt_in_one_way() {
        for status in [ConnectionStatus::Connected, ConnectionStatus::Broken] {
            assert_eq!(serde_json::to_value(status).expect("JSON"), status.as_str());
        }
        for reason in [BreakReason::Refused, BreakReason::Expired] {
            assert_eq!(serde_json::to_value(reason).expect("JSON"), reason.as_str());
        }
    }
}
