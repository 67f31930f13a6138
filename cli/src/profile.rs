//! Profiles: named logins in addition to the default one, each in its own file.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{failure::Failure, machine};

/// The name of the login used when there is no profile.
const DEFAULT: &str = "default";
/// The maximum length of a name.
const LONGEST: usize = 64;
/// The variable that chooses a profile.
const VARIABLE: &str = "WAYPOST_PROFILE";

/// A profile's name, which is also its file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileName(String);

/// The login that a run uses.
#[derive(Debug, Clone)]
pub struct Profile {
    name: ProfileName,
    /// Whether the option chose the profile. The login is then exactly the stored one: no variable overrides it.
    is_exact: bool,
}

impl FromStr for ProfileName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(is_plain) {
            return Err(format!("a profile's name has 1 to {LONGEST} letters, digits, `-` or `_`"));
        }
        Ok(Self(name.to_owned()))
    }
}

impl Profile {
    /// The option's profile, or else the environment's, or else the default.
    pub fn chosen(option: Option<ProfileName>) -> Result<Self, Failure> {
        let is_exact = option.is_some();
        let name = match (option, machine::variable(VARIABLE)) {
            (Some(name), _) => name,
            (None, Some(name)) => name.parse().map_err(|why| Failure::Usage(format!("{VARIABLE}: {why}")))?,
            (None, None) => ProfileName(DEFAULT.to_owned()),
        };
        Ok(Self { name, is_exact })
    }

    pub fn name(&self) -> &str {
        &self.name.0
    }

    pub fn is_default(&self) -> bool {
        self.name.0 == DEFAULT
    }

    /// Whether the login ignores environment variables.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// The file with the profile's login.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let folder = folder()?;
        let path = if self.is_default() {
            folder.join("login.json")
        } else {
            profiles(&folder).join(format!("{}.json", self.name()))
        };
        Ok(path)
    }

    /// The failure if this profile is missing; it names the stored ones.
    pub fn missing(&self) -> Failure {
        let stored = folder().map(|folder| stored_in(&folder)).unwrap_or_default();
        Failure::NoProfile { name: self.name().to_owned(), stored }
    }
}

fn folder() -> Result<PathBuf, Failure> {
    let folder = machine::configuration_folder()
        .ok_or_else(|| Failure::Usage("there is no configuration folder: set HOME".to_owned()))?;
    Ok(folder.join("waypost"))
}

fn profiles(folder: &Path) -> PathBuf {
    folder.join("profiles")
}

/// The names of the stored profiles, sorted.
fn stored_in(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(profiles(folder)).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let names = files.filter(|path| path.extension() == Some(OsStr::new("json")));
    let mut names: Vec<_> = names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.extend(folder.join("login.json").exists().then(|| DEFAULT.to_owned()));
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_folder_of_profiles() {
        for name in ["staging", "my-hotel_2", "A"] {
            assert!(name.parse::<ProfileName>().is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "a b", "ü", &"a".repeat(65)] {
            assert!(name.parse::<ProfileName>().is_err(), "{name}");
        }
    }

    #[test]
    fn the_stored_profiles_are_listed_with_the_default_one() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(stored_in(folder.path()).is_empty());
        fs::create_dir(profiles(folder.path())).expect("it can be made");
        for file in ["login.json", "profiles/staging.json", "profiles/live.json", "profiles/live.0f.new"] {
            fs::write(folder.path().join(file), "{}").expect("it can be written");
        }
        assert_eq!(stored_in(folder.path()), ["default", "live", "staging"]);
    }
}
