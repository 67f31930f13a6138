//! The `geo-ip` secret: the configured databases and their sources. All faults are reported at once, with positions but
//! without values, since some values are secret.

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

use super::{edition::EditionName, source::Source};
use problem::{JsonBody, Rule, Violation, Violations};
use storage::SecretText;

/// The secret's name.
pub const SECRET: &str = "geo-ip";

/// The editions that are kept up to date.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The editions, in the order in which they are updated.
    pub editions: Vec<ConfiguredEdition>,
}

/// One edition and its source.
#[derive(Debug, Clone)]
pub struct ConfiguredEdition {
    /// The edition's name, here and at its provider. It is also the database's type, unless `database_type` is set.
    pub edition: EditionName,
    /// The database's type, if it differs from the name: `DBIP-Location-ISP (compat=Enterprise)`.
    pub database_type: Option<String>,
    /// The source.
    pub source: Source,
}

/// A configuration's faults, each with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret `geo-ip` is invalid: {}", .0.join("; "))]
pub struct ConfigurationError(pub Vec<String>);

impl Configuration {
    /// Reads the secret's value.
    pub fn read(value: &Value) -> Result<Self, ConfigurationError> {
        let mut faults = Vec::new();
        let text = value.to_string();
        let Ok(mut body) = JsonBody::read(text.as_bytes()) else {
            return Err(ConfigurationError(vec!["it must be an object".to_owned()]));
        };
        let list = body.required::<Vec<Value>>("editions", "a list").unwrap_or_default();
        report("", body.into_violations(), &mut faults);
        let editions: Vec<_> = list
            .iter()
            .enumerate()
            .filter_map(|(position, entry)| read_edition(entry, &format!("editions[{position}]"), &mut faults))
            .collect();
        let mut names = HashSet::new();
        for ConfiguredEdition { edition, .. } in &editions {
            // Some file systems ignore case.
            if !names.insert(edition.as_str().to_ascii_lowercase()) {
                faults.push(format!("the edition {edition} is listed twice"));
            }
        }
        if faults.is_empty() { Ok(Self { editions }) } else { Err(ConfigurationError(faults)) }
    }
}

/// Adds violations to the faults, with a prefix for their positions.
fn report(prefix: &str, violations: Violations, faults: &mut Vec<String>) {
    let fault = |violation: Violation| format!("`{prefix}{}` {}", violation.name(), violation.detail);
    faults.extend(violations.into_list().into_iter().map(fault));
}

fn read_edition(entry: &Value, prefix: &str, faults: &mut Vec<String>) -> Option<ConfiguredEdition> {
    let text = entry.to_string();
    let Ok(mut body) = JsonBody::read(text.as_bytes()) else {
        faults.push(format!("{prefix} must be an object"));
        return None;
    };
    let name = body.required_text("edition");
    let edition = name.and_then(|name| {
        let edition = EditionName::parse(&name).ok_or_else(|| format!("must be {}", EditionName::FORM));
        body.violations.note("edition", Rule::InvalidFormat, edition)
    });
    let database_type = database_type(&mut body);
    let kind = body.required_text("source");
    let source = kind.and_then(|kind| read_source(&kind, &mut body));
    if let (Some(edition), Some(editions)) = (&edition, source.as_ref().and_then(Source::editions))
        && !editions.contains(&edition.as_str())
    {
        body.violations.add("edition", Rule::UnknownValue, format!("must be one of {}", editions.join(", ")));
    }
    report(&format!("{prefix}."), body.into_violations(), faults);
    Some(ConfiguredEdition { edition: edition?, database_type, source: source? })
}

fn database_type(body: &mut JsonBody<'_>) -> Option<String> {
    let text = body.optional::<Option<String>>("databaseType", "a string")??;
    let good = !text.trim().is_empty() && !text.chars().any(char::is_control);
    let checked = good.then_some(text).ok_or("must be the type in the database's metadata");
    body.violations.note("databaseType", Rule::InvalidFormat, checked)
}

fn read_source(kind: &str, body: &mut JsonBody<'_>) -> Option<Source> {
    let secret = |body: &mut JsonBody<'_>, name| body.required_text(name).map(SecretText::new);
    match kind {
        "maxmind" => {
            let server = optional_address("url", body);
            let account_id = account("accountId", body);
            let license_key = secret(body, "licenseKey");
            Some(Source::MaxMind { server, account_id: account_id?, license_key: license_key? })
        }
        "url" => {
            let url = body.required_text("url");
            let sha256_url = optional_address("sha256Url", body);
            let url = url.and_then(|text| body.violations.note("url", Rule::InvalidFormat, address(&text)))?;
            Some(Source::Plain { url, sha256_url })
        }
        "db-ip-lite" => Some(Source::DbIpLite { server: optional_address("url", body) }),
        "ipinfo-lite" => {
            let server = optional_address("url", body);
            let token = secret(body, "token");
            Some(Source::IpInfoLite { server, token: token? })
        }
        _ => {
            let detail = "must be `maxmind`, `url`, `db-ip-lite` or `ipinfo-lite`";
            body.violations.add("source", Rule::UnknownValue, detail);
            None
        }
    }
}

/// An account's number, as a number or a string.
fn account(name: &'static str, body: &mut JsonBody<'_>) -> Option<String> {
    let account = match body.required::<Value>(name, "a number or a string")? {
        // A colon would end the user name in HTTP Basic.
        Value::String(text) if !text.is_empty() && !text.contains(':') => Ok(text),
        Value::Number(number) if number.is_u64() => Ok(number.to_string()),
        _ => Err("must be a number, or a non-empty string without a colon"),
    };
    body.violations.note(name, Rule::InvalidFormat, account)
}

fn optional_address(name: &'static str, body: &mut JsonBody<'_>) -> Option<Url> {
    let text = body.optional::<Option<String>>(name, "a string")??;
    body.violations.note(name, Rule::InvalidFormat, address(&text))
}

fn address(text: &str) -> Result<Url, &'static str> {
    let plain = |url: &Url| {
        let credentials = !url.username().is_empty() || url.password().is_some();
        matches!(url.scheme(), "http" | "https") && !credentials && url.fragment().is_none()
    };
    let wanted = "must be an https or http address without credentials or a fragment";
    Url::parse(text).ok().filter(plain).ok_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(value: Value) -> Vec<String> {
        Configuration::read(&value).expect_err("faults").0
    }

    #[test]
    fn every_kind_of_source_is_read() {
        let read = Configuration::read(&json!({"editions": [
            {"edition": "GeoLite2-City", "source": "maxmind", "accountId": 1234, "licenseKey": "k"},
            {"edition": "GeoLite2-ASN", "source": "maxmind", "accountId": "1234", "licenseKey": "k", "url": "http://127.0.0.1:9"},
            {"edition": "mine", "source": "url", "url": "https://example.com/a.mmdb.gz", "sha256Url": null},
            {"edition": "dbip-city-lite", "source": "db-ip-lite"},
            {"edition": "ipinfo_lite", "source": "ipinfo-lite", "token": "t"},
        ]}))
        .expect("all is well");
        assert_eq!(read.editions.len(), 5);
        assert!(matches!(&read.editions[0].source, Source::MaxMind { account_id, .. } if account_id == "1234"));
        assert!(matches!(&read.editions[2].source, Source::Plain { sha256_url: None, .. }));
        assert!(Configuration::read(&json!({"editions": []})).expect("empty").editions.is_empty());
    }

    #[test]
    fn every_fault_has_its_position_and_not_its_value() {
        let found = faults(json!({"edition": 1, "editions": [
            {"edition": "a/b", "source": "maxmind", "acountId": "x-secret", "licenseKey": ["x-secret"]},
            {"edition": "b", "source": "url", "url": "ftp://x-secret@example.com", "sha256Url": 5},
            {"edition": "c", "source": "x-secret"},
            {"edition": "d", "source": "ipinfo-lite", "token": ""},
            {"edition": "dbip", "source": "db-ip-lite"},
            7,
        ]}));
        for expected in [
            "`edition` is not a member",
            "`editions[0].edition` must be",
            "`editions[0].accountId` is missing",
            "`editions[0].licenseKey` must be a string",
            "`editions[0].acountId` is not a member",
            "`editions[1].url` must be an https or http address",
            "`editions[1].sha256Url` must be a string",
            "`editions[2].source` must be",
            "`editions[3].token` must not be empty",
            "`editions[4].edition` must be one of dbip-city-lite",
            "editions[5] must be an object",
        ] {
            assert!(found.iter().any(|fault| fault.starts_with(expected)), "{expected}: {found:?}");
        }
        assert!(!found.join(" ").contains("x-secret"), "{found:?}");
        assert_eq!(faults(json!([])).len(), 1);
        assert_eq!(faults(json!({})), ["`editions` is missing; it must be a list"]);
    }

    #[test]
    fn an_edition_may_have_a_type_that_is_not_its_name() {
        let read = |database_type: Value| {
            let entry = json!({"edition": "isp", "source": "url", "url": "https://example.com/a.mmdb", "databaseType": database_type});
            Configuration::read(&json!({"editions": [entry]}))
        };
        let named = read(json!("DBIP-Location-ISP (compat=Enterprise)")).expect("a type with a space");
        assert_eq!(named.editions[0].database_type.as_deref(), Some("DBIP-Location-ISP (compat=Enterprise)"));
        assert_eq!(read(Value::Null).expect("as without it").editions[0].database_type, None);
        for bad in [json!(""), json!(" "), json!("a\nb"), json!(1)] {
            assert!(read(bad.clone()).expect_err("refused").0[0].contains("databaseType"), "{bad}");
        }
    }

    #[test]
    fn no_edition_comes_twice() {
        let one = |name: &str| json!({"edition": name, "source": "url", "url": "https://example.com/a.mmdb"});
        assert_eq!(faults(json!({"editions": [one("a"), one("A")]})), ["the edition A is listed twice"]);
    }
}
