//! The login: address and credentials, stored in the user's configuration. The environment overrides it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{failure::Failure, http_client::is_on_this_machine, machine, profile::Profile};

/// The environment variables that override values of a login.
const VARIABLES: [&str; 5] =
    ["WAYPOST_ADDRESS", "WAYPOST_ISSUER", "WAYPOST_ENTITY", "WAYPOST_CLIENT_ID", "WAYPOST_CLIENT_SECRET"];

/// Address and credentials. It has no `Debug`, since it contains the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredLogin {
    /// The base address of the API, without a trailing slash.
    pub address: String,
    /// The token issuer's address. Without it, the API names its issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    pub entity: String,
    pub client_id: String,
    pub client_secret: String,
}

/// The values of a login that options or variables set.
#[derive(Default)]
pub struct GivenLogin {
    pub address: Option<String>,
    pub issuer: Option<String>,
    pub entity: Option<String>,
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
}

impl GivenLogin {
    /// The environment's values. An exact profile has none, since the variables may belong to another client.
    pub fn of_environment(profile: &Profile) -> Self {
        if profile.is_exact() {
            return Self::default();
        }
        let [address, issuer, entity, client_id, client_secret] = VARIABLES.map(machine::variable);
        Self { address, issuer, entity, client_id, client_secret }
    }

    /// Whether no stored value is needed.
    fn is_complete(&self) -> bool {
        [&self.address, &self.entity, &self.client_id, &self.client_secret].into_iter().all(Option::is_some)
    }

    /// Fills in missing values from the stored ones. The stored secret is used only for the stored application at the
    /// stored address: no other server may get it.
    fn over(self, stored: Option<StoredLogin>) -> Result<StoredLogin, Failure> {
        let address = self.address.as_deref().map(checked_address).transpose()?;
        let issuer = self.issuer.as_deref().map(checked_address).transpose()?;
        let at_same_address =
            stored.as_ref().filter(|stored| address.as_ref().is_none_or(|address| *address == stored.address));
        let is_same_application = |stored: &&StoredLogin| {
            (issuer.is_none() || issuer == stored.issuer)
                && self.client_id.as_ref().is_none_or(|client| *client == stored.client_id)
        };
        let secret = at_same_address.filter(is_same_application).map(|stored| stored.client_secret.clone());
        let issuer = issuer.clone().or_else(|| at_same_address.and_then(|stored| stored.issuer.clone()));
        let take = |given: Option<String>, of: fn(&StoredLogin) -> &String, name: &str| {
            let missing = || Failure::NotLoggedIn(name.to_owned());
            given.or_else(|| stored.as_ref().map(|stored| of(stored).clone())).ok_or_else(missing)
        };
        let no_secret = || {
            let reason = stored.as_ref().map(|StoredLogin { client_id, address, .. }| {
                format!("; the stored one is sent only for the application {client_id} at {address} and its issuer")
            });
            Failure::NotLoggedIn(format!("client secret (WAYPOST_CLIENT_SECRET){}", reason.unwrap_or_default()))
        };
        Ok(StoredLogin {
            address: take(address, |stored| &stored.address, "address (WAYPOST_ADDRESS)")?,
            entity: take(self.entity, |stored| &stored.entity, "managing entity (WAYPOST_ENTITY)")?,
            client_id: take(self.client_id, |stored| &stored.client_id, "client id (WAYPOST_CLIENT_ID)")?,
            client_secret: self.client_secret.or(secret).ok_or_else(no_secret)?,
            issuer,
        })
    }
}

impl StoredLogin {
    /// A profile's login, with the environment's values replacing stored ones, unless the profile is exact.
    pub fn load(profile: &Profile) -> Result<Self, Failure> {
        let given = GivenLogin::of_environment(profile);
        let stored = match profile.path().map(|path| read(&path)) {
            Ok(Err(Failure::DamagedLogin(_))) if given.is_complete() => None,
            Ok(stored) => stored?,
            Err(_) => None,
        };
        if stored.is_none() && !profile.is_default() && !given.is_complete() {
            return Err(profile.missing());
        }
        given.over(stored)
    }

    /// Stores the login in a file that only this user can read, and returns its path.
    pub fn save(&self, profile: &Profile) -> Result<PathBuf, Failure> {
        let path = profile.path()?;
        write(&path, self)?;
        Ok(path)
    }

    /// Removes the stored login of a profile, and returns its path; `None` if there was none.
    pub fn remove(profile: &Profile) -> Result<Option<PathBuf>, Failure> {
        let path = profile.path()?;
        remove_unfinished(&path);
        match fs::remove_file(&path) {
            Ok(()) => Ok(Some(path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Failure::File { path, source }),
        }
    }
}

/// The variables that override the login of a profile.
pub fn overriding_variables(profile: &Profile) -> Vec<&'static str> {
    if profile.is_exact() {
        return Vec::new();
    }
    VARIABLES.into_iter().filter(|name| machine::variable(name).is_some()).collect()
}

/// Checks an address, and returns it in its stored form. `http` is accepted only for this machine, since others on the
/// network could read the secret.
pub fn checked_address(given: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::Usage(format!("the address `{given}` {why}"));
    let no_scheme = || wrong(&format!("must begin with https:// or http://: write {}", with_scheme(given.trim())));
    let has_scheme = ["https://", "http://"].iter().any(|scheme| given.trim().starts_with(scheme));
    let invalid = || wrong("is not valid; write it as https://api.waypost.example");
    let url: Url = given.trim().parse().map_err(|_| if has_scheme { invalid() } else { no_scheme() })?;
    if url.cannot_be_a_base() || !["http", "https"].contains(&url.scheme()) || url.host().is_none() {
        return Err(no_scheme());
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must not have credentials, a query or a fragment"));
    }
    if url.scheme() == "http" && !is_on_this_machine(&url) {
        return Err(wrong("must begin with https://, since others on the network can read http"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// An address with its missing scheme added; an example address if the string is not an address.
fn with_scheme(given: &str) -> String {
    let url = |scheme: &str| format!("{scheme}://{given}");
    match url("http").parse::<Url>() {
        Ok(parsed) if is_on_this_machine(&parsed) => url("http"),
        Ok(_) if !given.contains("://") => url("https"),
        _ => "https://api.waypost.example".to_owned(),
    }
}

fn read(path: &Path) -> Result<Option<StoredLogin>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let login = serde_json::from_str(machine::without_byte_order_mark(&text));
            login.map(Some).map_err(|_| Failure::DamagedLogin(path.to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Failure::File { path: path.to_owned(), source }),
    }
}

/// Writes a new file, readable only by this user from the moment it is created, and then replaces the old one.
fn write(path: &Path, login: &StoredLogin) -> Result<(), Failure> {
    // A random name, since another process may store a login at the same time.
    let new = path.with_extension(format!("{}.new", machine::random_text()?));
    let written = || -> std::io::Result<()> {
        let folder = path.parent().ok_or(ErrorKind::NotFound)?;
        private_folder().recursive(true).create(folder)?;
        restrict(folder)?;
        let mut file = private_file(&new)?;
        file.write_all(&serde_json::to_vec_pretty(login)?)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().map_err(|source| {
        // The secret must not stay in a file that `logout` does not remove.
        drop(fs::remove_file(&new));
        Failure::File { path: path.to_owned(), source }
    })
}

/// Removes the files of processes that were killed while they stored this login.
fn remove_unfinished(path: &Path) {
    let Some((folder, profile)) = path.parent().zip(path.file_stem()) else { return };
    let beginning = format!("{}.", profile.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&beginning) && name.ends_with(".new") {
            drop(fs::remove_file(entry.path()));
        }
    }
}

#[cfg(unix)]
fn private_folder() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// On Windows, the user's configuration folder is already private.
#[cfg(not(unix))]
fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(unix)]
fn private_file(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Also restricts an existing folder.
#[cfg(unix)]
fn restrict(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredLogin {
        let text = |text: &str| text.to_owned();
        StoredLogin {
            address: text("https://api.example"),
            issuer: Some(text("https://auth.example")),
            entity: text("hotel"),
            client_id: text("app1"),
            client_secret: text("secret1"),
        }
    }

    fn missing(given: GivenLogin, stored: Option<StoredLogin>) -> String {
        given.over(stored).err().expect("a value is missing").to_string()
    }

    #[test]
    fn the_environment_overrides_single_values() {
        let given = GivenLogin { entity: Some("other".to_owned()), ..GivenLogin::default() };
        let login = given.over(Some(stored())).expect("complete");
        assert!(login == StoredLogin { entity: "other".to_owned(), ..stored() });
    }

    #[test]
    fn the_stored_secret_never_goes_to_another_server() {
        let elsewhere = |address: Option<&str>, issuer: Option<&str>| GivenLogin {
            address: address.map(str::to_owned),
            issuer: issuer.map(str::to_owned),
            entity: Some("hotel".to_owned()),
            client_id: Some("app1".to_owned()),
            client_secret: None,
        };
        for given in [
            elsewhere(Some("https://api.other"), None),
            elsewhere(Some("https://api.example"), Some("https://auth.other")),
            GivenLogin { entity: None, client_id: None, ..elsewhere(Some("https://api.other"), None) },
        ] {
            let message = missing(given, Some(stored()));
            let reason = "there is no client secret (WAYPOST_CLIENT_SECRET); the stored one is sent only for the \
                          application app1 at https://api.example and its issuer";
            assert!(message.ends_with(reason), "{message}");
        }
        let given = GivenLogin { client_secret: Some("2".to_owned()), ..elsewhere(Some("https://api.other"), None) };
        assert_eq!(given.over(Some(stored())).expect("complete").issuer, None, "the other server names its own");
    }

    #[test]
    fn a_damaged_file_matters_only_if_a_value_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("login.json");
        for text in ["{", "[]", ""] {
            fs::write(&path, text).expect("it can be written");
            assert!(matches!(read(&path), Err(Failure::DamagedLogin(_))), "{text}");
        }
        let text = |text: &str| Some(text.to_owned());
        let given = GivenLogin {
            address: text("https://a.example"),
            issuer: None,
            entity: text("hotel"),
            client_id: text("app1"),
            client_secret: text("1"),
        };
        assert!(given.is_complete() && !GivenLogin { client_secret: None, ..given }.is_complete());
    }

    #[test]
    fn the_stored_secret_is_not_used_for_another_application() {
        let given = GivenLogin { client_id: Some("app2".to_owned()), ..GivenLogin::default() };
        assert!(missing(given, Some(stored())).contains("WAYPOST_CLIENT_SECRET"));
    }

    #[test]
    fn without_a_login_the_missing_value_is_named() {
        assert_eq!(missing(GivenLogin::default(), None), "not logged in: there is no address (WAYPOST_ADDRESS)");
    }

    #[test]
    fn an_address_has_tls_or_is_on_this_machine() {
        for (given, stored) in [
            ("https://api.example/", "https://api.example"),
            (" http://localhost:9000 ", "http://localhost:9000"),
            ("https://x.example/stage/", "https://x.example/stage"),
        ] {
            assert_eq!(checked_address(given).ok().as_deref(), Some(stored), "{given}");
        }
        for given in
            ["api.example", "http://api.example", "ftp://localhost", "https://a:b@c", "https://a?b", "mailto:a"]
        {
            assert_eq!(checked_address(given).ok(), None, "{given}");
        }
        for (given, meant) in [
            ("127.0.0.1:9470", "http://127.0.0.1:9470"),
            ("localhost:9470/", "http://localhost:9470/"),
            ("api.example", "https://api.example"),
            ("api.example:8443", "https://api.example:8443"),
            ("", "https://api.waypost.example"),
            ("mailto:a", "https://api.waypost.example"),
            ("ftp://localhost", "https://api.waypost.example"),
        ] {
            let message = checked_address(given).expect_err("no scheme").to_string();
            let wanted = format!("the address `{given}` must begin with https:// or http://: write {meant}");
            assert_eq!(message, wanted);
        }
    }

    #[cfg(unix)]
    #[test]
    fn file_and_folder_are_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config/waypost/login.json");
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        // The second time, the file exists.
        for _ in 0..2 {
            write(&path, &stored()).expect("it can be written");
            let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
        }
        assert!(read(&path).expect("it can be read") == Some(stored()));
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn simultaneous_logins_to_one_profile_all_succeed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("login.json");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..20).for_each(|_| write(&path, &stored()).expect("it can be written")));
            }
        });
        assert!(read(&path).expect("it can be read") == Some(stored()));
        assert_eq!(names_in(folder.path()), ["login.json"]);
    }

    #[test]
    fn the_file_of_a_killed_process_is_removed_with_its_login() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["login.x7.new", "login.json", "other.x7.new"] {
            fs::write(folder.path().join(name), "{}").expect("it can be written");
        }
        remove_unfinished(&folder.path().join("login.json"));
        let mut names = names_in(folder.path());
        names.sort_unstable();
        assert_eq!(names, ["login.json", "other.x7.new"]);
    }

    #[test]
    fn a_login_that_cannot_be_stored_leaves_no_file_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("login.json");
        fs::create_dir(&path).expect("it can be made");
        assert!(matches!(write(&path, &stored()), Err(Failure::File { .. })));
        assert_eq!(names_in(folder.path()), ["login.json"]);
    }
}
