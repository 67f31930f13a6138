//! The deployment's secrets: a private file for each, created if missing, and checked before the store serves it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use auth::signing::SigningAlgorithm;
use base::logging;
use geo_ip::configuration::{self, Configuration, ConfigurationError};
use issuer::oauth::pepper;
use operator::{
    applications::{Credentials, fresh_credentials},
    demo_provider,
    provision::{fresh_secrets, provider_secrets},
};
use outbound::AddressRules;
use payments::{ProviderError, providers};
use serde_json::Value;
use storage::sealing::{self, KeyRing};

use crate::data_folder::{DataFolderError, clean_command, write_private};

/// The application for tests and for trying out the service.
pub const DEMO_APPLICATION: &str = "demo-application";
/// The application that may act for every managing entity.
pub const PLATFORM_APPLICATION: &str = "platform-application";

/// The secrets that are required to read a table, with the consequences of losing them.
const OF_THE_TABLE: [(&str, &str); 2] = [
    (sealing::SECRET, "no delivery can be signed, and no payment provider called"),
    (pepper::SECRET, "no client can authenticate"),
];

pub struct Secrets(BTreeMap<String, Value>);

/// The state of the table that the secrets belong to.
#[derive(Debug, PartialEq, Eq)]
pub enum TableFound {
    /// The table has data, which these secrets can open.
    Kept,
    /// Neither the table nor the secrets exist.
    New,
    /// The table has no data, although the secrets exist: an earlier start was interrupted, or the file was lost.
    Lost,
}

#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// A secret is missing, and the table's data needs the old value.
    #[error(
        "{path} is missing, but the table depends on it: without it, {loss}. Restore it from a backup, or start over \
         with `{}`", cleaning(.path)
    )]
    Lost {
        path: PathBuf,
        /// The consequence of losing the secret.
        loss: &'static str,
    },
    #[error("a new secret could not be stored")]
    Keep(#[source] DataFolderError),
    #[error("{path} cannot be read")]
    Read { path: PathBuf, source: io::Error },
    /// A file is malformed. The error does not repeat its content.
    #[error("{path} is not JSON in the expected form; correct it, or remove it to get a new value")]
    Form { path: PathBuf },
    /// A secret for the table has no usable key, or is not JSON. The error does not repeat its content.
    #[error("{path} has no usable key: restore it from a backup, or start over with `{}`", cleaning(.path))]
    Broken { path: PathBuf },
    /// The geo-IP configuration is invalid.
    #[error("{path} cannot be used; correct it")]
    GeoIp {
        path: PathBuf,
        /// The invalid member, and its fault.
        source: ConfigurationError,
    },
    /// A payment provider's description is malformed. This is reported at startup, before a person tries to connect.
    #[error("{path} cannot be used; correct it, or remove it")]
    Provider {
        path: PathBuf,
        /// The invalid member, and its fault.
        source: ProviderError,
    },
}

/// The command that removes a secret's file with all other data in its folder.
fn cleaning(secret: &Path) -> String {
    clean_command(secret.ancestors().nth(2).unwrap_or(secret))
}

impl Secrets {
    /// Fails if the table has data but this folder lacks the secrets needed to read it, which new secrets could not
    /// replace. A table file that is empty has no data.
    pub fn check_table(folder: &Path, table: &Path) -> Result<TableFound, SecretsError> {
        if !fs::metadata(table).is_ok_and(|table| table.len() > 0) {
            let used = OF_THE_TABLE.iter().all(|(name, _)| folder.join(format!("{name}.json")).exists());
            return Ok(if used { TableFound::Lost } else { TableFound::New });
        }
        let lost = |(name, loss): &(&str, &'static str)| {
            let path = folder.join(format!("{name}.json"));
            (!path.exists()).then_some(SecretsError::Lost { path, loss })
        };
        OF_THE_TABLE.iter().find_map(lost).map_or(Ok(TableFound::Kept), Err)
    }

    /// Creates missing secrets, and reads every secret in the folder, including those that an operator added. New token
    /// signing keys use this algorithm.
    pub fn open(folder: &Path, algorithm: SigningAlgorithm) -> Result<Self, SecretsError> {
        let credentials = || serde_json::to_value(fresh_credentials()).unwrap_or_default();
        let applications = [(DEMO_APPLICATION, credentials()), (PLATFORM_APPLICATION, credentials())];
        let own = fresh_secrets(algorithm)
            .into_iter()
            .chain(applications)
            .chain([(demo_provider::SECRET, demo_provider::fresh(demo_provider::PORT))]);
        let path = |name: &str| folder.join(format!("{name}.json"));
        let providers = provider_secrets(|name| !path(name).exists());
        for (name, value) in own.map(|(name, value)| (name.to_owned(), value)).chain(providers) {
            let path = path(&name);
            if !path.exists() {
                write_private(&path, format!("{value}\n").as_bytes()).map_err(SecretsError::Keep)?;
            }
        }
        Self::read(folder)
    }

    /// Reads every secret in the folder.
    pub fn read(folder: &Path) -> Result<Self, SecretsError> {
        read_all(folder).map(Self)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A secret's value. A missing secret has the value null, which no reader accepts.
    pub fn value(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// Checks that the functions will be able to read the table's secrets.
    pub fn check_own(&self, folder: &Path) -> Result<(), SecretsError> {
        let own = [
            (sealing::SECRET, KeyRing::from_secret(self.value(sealing::SECRET)).is_ok()),
            (pepper::SECRET, pepper::read(self.value(pepper::SECRET)).is_ok()),
        ];
        match own.iter().find(|(_, is_good)| !is_good) {
            Some((name, _)) => Err(SecretsError::Broken { path: folder.join(format!("{name}.json")) }),
            None => Ok(()),
        }
    }

    /// Checks the geo-IP configuration at startup, before the first update.
    pub fn check_geo_ip(&self, folder: &Path) -> Result<(), SecretsError> {
        let at_path =
            |source| SecretsError::GeoIp { path: folder.join(format!("{}.json", configuration::SECRET)), source };
        Configuration::read(self.value(configuration::SECRET)).map(drop).map_err(at_path)
    }

    /// Checks that the functions will be able to read the payment providers. A well-formed provider at a forbidden
    /// address is only logged, since the rules are a setting and the other providers work.
    pub fn check_providers(&self, folder: &Path, rules: &AddressRules) -> Result<(), SecretsError> {
        let everywhere =
            ["0.0.0.0/0", "::/0"].map(|network| network.parse().expect("both are written here, and networks"));
        let no_rules = AddressRules { allow_http: true, allowed_networks: everywhere.into() };
        for (secret, value) in self.iter() {
            let Some(name) = secret.strip_prefix(providers::SECRET_PREFIX) else { continue };
            let path = folder.join(format!("{secret}.json"));
            if let Err(source) = providers::check(name, value, &no_rules) {
                return Err(SecretsError::Provider { path, source });
            }
            if let Err(error) = providers::check(name, value, rules) {
                tracing::warn!("{} cannot be used with these settings: {}", path.display(), logging::chain(&error));
            }
        }
        Ok(())
    }

    pub fn credentials(&self, name: &str) -> Result<Credentials, SecretsError> {
        serde_json::from_value(self.value(name).clone())
            .map_err(|_| SecretsError::Form { path: format!("secrets/{name}.json").into() })
    }
}

fn read_all(folder: &Path) -> Result<BTreeMap<String, Value>, SecretsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| SecretsError::Read { path, source }
    };
    let mut secrets = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        let (Some(name), Some("json")) =
            (path.file_stem().and_then(|name| name.to_str()), path.extension().and_then(|kind| kind.to_str()))
        else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(unreadable(&path))?;
        let malformed = |_| match OF_THE_TABLE.iter().any(|(of_the_table, _)| *of_the_table == name) {
            true => SecretsError::Broken { path: path.clone() },
            false => SecretsError::Form { path: path.clone() },
        };
        let value = serde_json::from_str(&text).map_err(malformed)?;
        secrets.insert(name.to_owned(), value);
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_made_once_and_kept() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = Secrets::open(folder.path(), SigningAlgorithm::Es256).expect("made");
        let again = Secrets::open(folder.path(), SigningAlgorithm::Es256).expect("read");
        assert_eq!(first.0, again.0);
        assert!(first.credentials(DEMO_APPLICATION).is_ok());
        assert_ne!(first.value("task-key"), &Value::Null);
        first.check_geo_ip(folder.path()).expect("a configuration of nothing");
    }

    #[test]
    fn a_table_with_data_is_not_opened_with_secrets_that_are_new() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let secrets = folder.path().join("secrets");
        let table = folder.path().join("table.db");
        fs::create_dir(&secrets).expect("a folder");
        let check = || Secrets::check_table(&secrets, &table).map_err(|error| error.to_string());
        assert_eq!(check(), Ok(TableFound::New), "the first start");
        fs::write(&table, "").expect("written");
        assert_eq!(check(), Ok(TableFound::New), "a start that was stopped early");
        fs::write(&table, "data").expect("written");
        Secrets::open(&secrets, SigningAlgorithm::Es256).expect("made");
        assert_eq!(check(), Ok(TableFound::Kept));
        fs::remove_file(&table).expect("there");
        assert_eq!(check(), Ok(TableFound::Lost), "a table that was not put back with its secrets");
        fs::write(&table, "data").expect("written");
        for name in ["data-keys", "client-secret-pepper"] {
            let path = secrets.join(format!("{name}.json"));
            let away = secrets.join("away");
            fs::rename(&path, &away).expect("moved");
            let said = check().expect_err("it is missing");
            let clean = format!("`make clean-data DATA='{}'`", folder.path().display());
            assert!(said.contains(&format!("{name}.json is missing")) && said.contains("from a backup"), "{said}");
            assert!(said.ends_with(&clean), "it names this folder: {said}");
            fs::write(&path, "{}").expect("written");
            let open = Secrets::open(&secrets, SigningAlgorithm::Es256).expect("read");
            let said = open.check_own(&secrets).expect_err("no key").to_string();
            assert!(said.contains(&format!("{name}.json has no usable key")), "{said}");
            fs::write(&path, "{").expect("written");
            let torn = Secrets::open(&secrets, SigningAlgorithm::Es256).err().expect("no JSON").to_string();
            assert_eq!(torn, said, "a new value would be as useless as none");
            assert!(said.ends_with(&clean), "it names this folder: {said}");
            fs::rename(&away, &path).expect("moved back");
            let open = Secrets::open(&secrets, SigningAlgorithm::Es256).expect("read");
            open.check_own(&secrets).expect("as it was made");
        }
    }

    #[test]
    fn payment_providers_are_usable_and_a_faulty_one_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rules =
            AddressRules { allow_http: true, allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")] };
        let secrets = Secrets::open(folder.path(), SigningAlgorithm::Es256).expect("made");
        let names: Vec<&str> = secrets.iter().filter_map(|(name, _)| name.strip_prefix("provider-")).collect();
        assert_eq!(names, ["adyen", "demo", "mollie", "paypal", "revolut", "square", "stripe"]);
        for rules in [&rules, &AddressRules::default()] {
            secrets.check_providers(folder.path(), rules).expect("well described, wherever they are");
        }

        fs::write(folder.path().join("provider-house.json"), "{\"clientSecret\": \"hush\"}").expect("written");
        let secrets = Secrets::read(folder.path()).expect("read");
        let error = secrets.check_providers(folder.path(), &rules).expect_err("incomplete");
        let said = logging::chain(&error);
        assert!(
            said.contains("provider-house.json") && said.contains("authorizeUrl") && !said.contains("hush"),
            "{said}"
        );
    }

    #[test]
    fn a_secret_of_an_operator_is_read_and_a_malformed_one_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("geo-ip.json"), "{\"editions\": []}").expect("written");
        let read = Secrets::open(folder.path(), SigningAlgorithm::Es256).expect("read");
        assert_eq!(read.value("geo-ip"), &serde_json::json!({"editions": []}));
        fs::write(folder.path().join("geo-ip.json"), r#"{"editions": [{"edition": "A", "source": "url"}]}"#)
            .expect("written");
        let error = Secrets::open(folder.path(), SigningAlgorithm::Es256)
            .expect("read")
            .check_geo_ip(folder.path())
            .expect_err("no address");
        let error = logging::chain(&error);
        assert!(error.contains("geo-ip.json") && error.contains("`editions[0].url` is missing"), "{error}");
        fs::write(folder.path().join("geo-ip.json"), "{secret").expect("written");
        let error = Secrets::open(folder.path(), SigningAlgorithm::Es256).err().expect("broken").to_string();
        assert!(error.contains("geo-ip.json") && !error.contains("{secret"));
    }
}
