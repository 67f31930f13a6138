//! The secret `geo-ip`: which databases are kept, and where they come from. Everything that is wrong with it is found at
//! once and named by its place; no value of it is ever repeated, since some are secret.

use std::collections::HashSet;

use serde_json::{Map, Value};
use url::Url;

use super::{edition::EditionName, source::Source};
use storage::secrets::SecretText;

/// The secret's name.
pub const SECRET: &str = "geo-ip";

/// What is kept up to date.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The editions, in the order in which they are updated.
    pub editions: Vec<ConfiguredEdition>,
}

/// One edition and its source.
#[derive(Debug, Clone)]
pub struct ConfiguredEdition {
    /// Its name here and with its provider; the type that its database must have.
    pub edition: EditionName,
    /// Where it comes from.
    pub source: Source,
}

/// What is wrong with a configuration: all of it, each with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret `geo-ip` is not as it should be: {}", .0.join("; "))]
pub struct ConfigurationError(pub Vec<String>);

impl Configuration {
    /// Reads the secret's value.
    pub fn read(value: &Value) -> Result<Self, ConfigurationError> {
        let mut faults = Vec::new();
        let Some(mut members) = Members::of(value, "", &mut faults) else { return Err(ConfigurationError(faults)) };
        let list = members.take("editions");
        members.finish(&mut faults);
        let mut editions = Vec::new();
        match list {
            Some(Value::Array(list)) => {
                for (position, entry) in list.iter().enumerate() {
                    editions.extend(read_edition(entry, &format!("editions[{position}]"), &mut faults));
                }
            }
            _ => faults.push("`editions` must be a list".to_owned()),
        }
        let mut names = HashSet::new();
        for ConfiguredEdition { edition, .. } in &editions {
            // Keys of objects differ in case, but folders of some machines do not.
            if !names.insert(edition.as_str().to_ascii_lowercase()) {
                faults.push(format!("the edition {edition} comes twice"));
            }
        }
        if faults.is_empty() { Ok(Self { editions }) } else { Err(ConfigurationError(faults)) }
    }
}

fn read_edition(value: &Value, place: &str, faults: &mut Vec<String>) -> Option<ConfiguredEdition> {
    let mut members = Members::of(value, place, faults)?;
    let edition = members.text("edition", faults).and_then(|name| {
        let edition = EditionName::parse(&name);
        if edition.is_none() {
            faults.push(format!("`{place}.edition` must be {}", EditionName::FORM));
        }
        edition
    });
    let kind = members.text("source", faults);
    let source = match kind.as_deref() {
        Some("maxmind") => {
            let server = members.optional_address("url", faults);
            let (account_id, license_key) = (members.account("accountId", faults), members.text("licenseKey", faults));
            account_id.zip(license_key).map(|(account_id, license_key)| Source::MaxMind {
                server,
                account_id,
                license_key: SecretText::new(license_key),
            })
        }
        Some("url") => {
            let url = members.address("url", faults);
            let sha256_url = members.optional_address("sha256Url", faults);
            url.map(|url| Source::Plain { url, sha256_url })
        }
        Some("db-ip-lite") => Some(Source::DbIpLite { server: members.optional_address("url", faults) }),
        Some("ipinfo-lite") => {
            let server = members.optional_address("url", faults);
            members.text("token", faults).map(|token| Source::IpInfoLite { server, token: SecretText::new(token) })
        }
        Some(_) => {
            faults.push(format!("`{place}.source` must be `maxmind`, `url`, `db-ip-lite` or `ipinfo-lite`"));
            return None; // what else may stand beside it depends on it
        }
        None => return None,
    };
    members.finish(faults);
    let (edition, source) = edition.zip(source)?;
    if let Some(editions) = source.editions()
        && !editions.contains(&edition.as_str())
    {
        faults.push(format!("`{place}.edition` must be one of {}", editions.join(", ")));
    }
    Some(ConfiguredEdition { edition, source })
}

/// An object whose members are taken one by one; a member that is left is unknown.
struct Members {
    place: String,
    members: Map<String, Value>,
}

impl Members {
    fn of(value: &Value, place: &str, faults: &mut Vec<String>) -> Option<Self> {
        let Value::Object(members) = value else {
            faults.push(format!("{} must be an object", if place.is_empty() { "it" } else { place }));
            return None;
        };
        let place = if place.is_empty() { String::new() } else { format!("{place}.") };
        Some(Self { place, members: members.clone() })
    }

    /// A member that is there and not null.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str, faults: &mut Vec<String>) -> Option<String> {
        match self.take(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            Some(_) => {
                faults.push(format!("`{}{name}` must be a text that is not empty", self.place));
                None
            }
            None => {
                faults.push(format!("`{}{name}` is missing", self.place));
                None
            }
        }
    }

    /// An account's number, which people write as a number or as a text.
    fn account(&mut self, name: &str, faults: &mut Vec<String>) -> Option<String> {
        match self.members.get(name) {
            Some(Value::Number(number)) if number.is_u64() => self.take(name).map(|number| number.to_string()),
            _ => {
                let text = self.text(name, faults)?;
                // A colon would end the user's name in HTTP Basic.
                let well_formed = !text.contains(':');
                if !well_formed {
                    faults.push(format!("`{}{name}` must not contain a colon", self.place));
                }
                well_formed.then_some(text)
            }
        }
    }

    fn address(&mut self, name: &str, faults: &mut Vec<String>) -> Option<Url> {
        let text = self.text(name, faults)?;
        let url = Url::parse(&text).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        });
        if url.is_none() {
            faults.push(format!(
                "`{}{name}` must be an address with https or http, without credentials and without a fragment",
                self.place
            ));
        }
        url
    }

    fn optional_address(&mut self, name: &str, faults: &mut Vec<String>) -> Option<Url> {
        match self.members.get(name) {
            None | Some(Value::Null) => self.take(name).and(None),
            Some(_) => self.address(name, faults),
        }
    }

    fn finish(self, faults: &mut Vec<String>) {
        faults.extend(self.members.keys().map(|name| format!("`{}{name}` is not known here", self.place)));
    }
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
    fn everything_that_is_wrong_is_named_by_its_place_and_no_value_is_repeated() {
        let found = faults(json!({"edition": 1, "editions": [
            {"edition": "a/b", "source": "maxmind", "acountId": "x-secret", "licenseKey": ["x-secret"]},
            {"edition": "b", "source": "url", "url": "ftp://x-secret@example.com", "sha256Url": 5},
            {"edition": "c", "source": "x-secret"},
            {"edition": "d", "source": "ipinfo-lite", "token": ""},
            {"edition": "dbip", "source": "db-ip-lite"},
            7,
        ]}));
        for expected in [
            "`edition` is not known here",
            "`editions[0].edition` must be",
            "`editions[0].accountId` is missing",
            "`editions[0].licenseKey` must be a text",
            "`editions[0].acountId` is not known here",
            "`editions[1].url` must be an address",
            "`editions[1].sha256Url` must be a text",
            "`editions[2].source` must be",
            "`editions[3].token` must be a text",
            "`editions[4].edition` must be one of dbip-city-lite",
            "editions[5] must be an object",
        ] {
            assert!(found.iter().any(|fault| fault.starts_with(expected)), "{expected}: {found:?}");
        }
        assert!(!found.join(" ").contains("x-secret"), "{found:?}");
        assert_eq!(faults(json!([])).len(), 1);
        assert_eq!(faults(json!({})), ["`editions` must be a list"]);
    }

    #[test]
    fn no_edition_comes_twice() {
        let one = |name: &str| json!({"edition": name, "source": "url", "url": "https://example.com/a.mmdb"});
        assert_eq!(faults(json!({"editions": [one("a"), one("A")]})), ["the edition A comes twice"]);
    }
}
