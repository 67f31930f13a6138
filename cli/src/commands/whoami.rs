//! `waypost whoami`: the login, and the rights of its access token.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::times::shown_duration;
use crate::{
    failure::Failure,
    login::{StoredLogin, overriding_variables},
    output::{Output, short_time},
    profile::Profile,
    service::Service,
    table::{Cell, members},
};

/// The entity of a token for all managing entities.
const ALL: &str = "*";

/// The rights of a token (RFC 7662). A token that is not active has no other member.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Introspection {
    active: bool,
    scope: String,
    client_id: String,
    managing_entities: Vec<String>,
    may_publish: bool,
    exp: i64,
}

/// The login that a run uses, and where it comes from.
struct LoginInUse<'a> {
    profile: &'a str,
    login: &'a StoredLogin,
    /// The variables that override values of the profile.
    variables: &'a [&'a str],
}

/// Prints the login and the rights of a new token. With JSON output, prints the issuer's exact response.
pub async fn whoami(service: &Service, profile: &Profile, output: Output) -> Result<(), Failure> {
    let token = service.new_token().await?;
    let text = service.introspection(&token.access_token).await?;
    if output.json {
        return Ok(output.raw(text.trim_end())?);
    }
    let rights: Introspection = service.read(&text)?;
    if !rights.active {
        return Err(Failure::NotLoggedIn(
            "active token: its application may have been changed a moment ago".to_owned(),
        ));
    }
    let variables = overriding_variables(profile);
    let used = LoginInUse { profile: profile.name(), login: &service.login, variables: &variables };
    output.text(shown(&used, &rights, Duration::from_secs(token.expires_in)))?;
    let covers = |entity: &String| *entity == service.login.entity || entity == ALL;
    if !rights.managing_entities.iter().any(covers) {
        output.remark(
            "The token does not cover this managing entity: run `waypost login` with an entity that the application \
             covers.",
        );
    }
    Ok(())
}

fn shown(
    LoginInUse { profile, login, variables }: &LoginInUse<'_>,
    rights: &Introspection,
    valid_for: Duration,
) -> String {
    let expires = Timestamp::from_second(rights.exp).map(|time| short_time(&time.to_string()));
    let until = expires.map(|time| format!(", until {time}")).unwrap_or_default();
    let entities = rights.managing_entities.join(", ");
    let covered = if rights.managing_entities.iter().any(|entity| entity == ALL) { "all" } else { &entities };
    let overridden = (!variables.is_empty()).then(|| Cell::plain(&variables.join(", ")));
    members([
        ("profile", Some(Cell::plain(profile))),
        ("overridden by", overridden),
        ("address", Some(Cell::plain(&login.address))),
        ("issuer", login.issuer.as_deref().map(Cell::plain)),
        ("entity", Some(Cell::plain(&login.entity))),
        ("client id", Some(Cell::plain(&rights.client_id))),
        ("scopes", Some(Cell::plain(&rights.scope.replace(' ', ", ")))),
        ("covered entities", Some(Cell::plain(covered))),
        ("may publish", Some(Cell::plain(if rights.may_publish { "yes" } else { "no" }))),
        ("token", Some(Cell::plain(&format!("valid for {}{until}", shown_duration(valid_for))))),
    ])
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn the_login_is_shown_with_the_rights_of_its_token_and_without_its_secret() {
        let login = StoredLogin {
            address: "https://api.example".to_owned(),
            issuer: None,
            entity: "hotel".to_owned(),
            client_id: "app1".to_owned(),
            client_secret: "s3cret".to_owned(),
        };
        let rights = r#"{"active":true,"scope":"integrations.read integrations.write","client_id":"app1",
            "managing_entities":["*"],"may_publish":false,"exp":1795171500}"#;
        let rights = serde_json::from_str(rights).expect("an introspection");
        let used = LoginInUse { profile: "staging", login: &login, variables: &["WAYPOST_ENTITY"] };
        let text = strip_str(&shown(&used, &rights, Duration::from_secs(3_600))).to_string();
        for line in [
            "profile           staging",
            "overridden by     WAYPOST_ENTITY",
            "entity            hotel",
            "scopes            integrations.read, integrations.write",
            "covered entities  all",
            "token             valid for 1 h 0 min, until 2026-11-20 10:45:00Z",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} in {text}");
        }
        assert!(!text.contains("s3cret"), "{text}");
    }
}
