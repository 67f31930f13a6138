//! The only reader of the environment. It reads once, at startup, and reports all faults at once, with the variables'
//! names.

use std::{fmt, str::FromStr};

use http::Uri;

/// Settings that can be read from the environment.
pub trait FromEnvironment: Sized {
    /// Reads the settings. Faults are added to `environment`, and [`read`] then drops the value.
    fn from_environment(environment: &mut Environment) -> Option<Self>;
}

/// The environment's variables, and the faults found in them.
#[derive(Debug)]
pub struct Environment {
    variable: fn(&str) -> Option<String>,
    faults: Vec<String>,
}

/// The missing or malformed variables, each with its name.
#[derive(PartialEq, Eq, thiserror::Error)]
#[error("invalid environment variables: {}", .0.join("; "))]
pub struct SettingsError(pub Vec<String>);

impl fmt::Debug for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads settings from the process's environment, or reports all its faults.
pub fn read<S: FromEnvironment>() -> Result<S, SettingsError> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    read_from(|name| std::env::var(name).ok())
}

/// Reads settings from a test's variables.
pub fn read_from<S: FromEnvironment>(variable: fn(&str) -> Option<String>) -> Result<S, SettingsError> {
    let mut environment = Environment { variable, faults: Vec::new() };
    match S::from_environment(&mut environment) {
        Some(settings) if environment.faults.is_empty() => Ok(settings),
        _ => Err(SettingsError(environment.faults)),
    }
}

impl Environment {
    /// The value of a variable that must be set and not empty.
    pub fn required(&mut self, name: &str) -> Option<String> {
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        if value.is_none() {
            self.faults.push(format!("{name} is not set"));
        }
        value
    }

    /// A variable's value; `None` if it is unset or empty.
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// A variable's parsed value; the default if it is unset or empty.
    pub fn parsed<T>(&mut self, name: &str, default: T) -> Option<T>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let Some(value) = (self.variable)(name).filter(|value| !value.is_empty()) else {
            return Some(default);
        };
        value.parse().map_err(|error| self.fault(name, &value, &error)).ok()
    }

    /// Adds a variable's invalid value; `error` completes the sentence after "which is".
    pub fn fault(&mut self, name: &str, value: &str, error: &dyn fmt::Display) {
        let fault = format!("{name} is `{value}`, which is {error}");
        // Several crates may read the same variable.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// The value of a variable that must be a server's address, without a path or a trailing slash.
    pub fn address(&mut self, name: &str) -> Option<String> {
        let value = self.required(name)?;
        match value.parse::<Uri>() {
            Ok(uri)
                if uri.scheme().is_some()
                    && uri.authority().is_some()
                    && uri.path() == "/"
                    && !value.ends_with('/') =>
            {
                Some(value)
            }
            _ => {
                self.fault(
                    name,
                    &value,
                    &"not an address such as https://api.example.com, without a path or trailing slash",
                );
                None
            }
        }
    }
}

impl FromEnvironment for () {
    fn from_environment(_: &mut Environment) -> Option<Self> {
        Some(())
    }
}

macro_rules! several {
    ($($name:ident),+) => {
        impl<$($name: FromEnvironment),+> FromEnvironment for ($($name,)+) {
            fn from_environment(environment: &mut Environment) -> Option<Self> {
                // All settings are read before the first `?`, so that all faults are reported at once.
                $(#[expect(non_snake_case, reason = "the type's letter names its value")]
                let $name = $name::from_environment(environment);)+
                Some(($($name?,)+))
            }
        }
    };
}
several!(A, B);
several!(A, B, C);
several!(A, B, C, D);
several!(A, B, C, D, E);
several!(A, B, C, D, E, F);

/// A setting that is `true` or `false`.
#[derive(Debug, Clone, Copy)]
pub struct Switch(pub bool);

impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| "neither `true` nor `false`")
    }
}

/// A setting that is a number of at least 1.
#[derive(Debug, Clone, Copy)]
pub struct AtLeastOne(pub u32);

impl FromStr for AtLeastOne {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().filter(|number| *number > 0).map(Self).ok_or("not a whole number from 1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::Wait;

    #[derive(Debug)]
    struct One;
    #[derive(Debug)]
    struct Other;

    impl FromEnvironment for One {
        fn from_environment(environment: &mut Environment) -> Option<Self> {
            let address = environment.address("BASE_URL");
            let nonsense = environment.address("AUTH_URL");
            let missing = environment.required("TABLE_NAME");
            address.and(nonsense).and(missing).map(|_| Self)
        }
    }

    impl FromEnvironment for Other {
        fn from_environment(environment: &mut Environment) -> Option<Self> {
            let switch = environment.parsed("ALLOW", Switch(false));
            let number = environment.parsed("THRESHOLD", AtLeastOne(1));
            let wait = environment.parsed("PAUSE", Wait(std::time::Duration::ZERO));
            switch.is_some().then_some(())?;
            number.is_some().then_some(())?;
            wait.map(|_| Self)
        }
    }

    #[test]
    fn all_faults_are_reported_at_once_by_name() {
        let error = read_from::<(One, (Other, ()))>(|name| match name {
            "BASE_URL" => Some("https://api.example.com/".into()),
            "AUTH_URL" => Some("nonsense".into()),
            "ALLOW" => Some("yes".into()),
            "THRESHOLD" => Some("0".into()),
            "PAUSE" => Some("soon".into()),
            _ => None,
        })
        .expect_err("nothing is right");
        let names = ["BASE_URL", "AUTH_URL", "TABLE_NAME", "ALLOW", "THRESHOLD", "PAUSE"];
        for (fault, name) in error.0.iter().zip(names) {
            assert!(fault.starts_with(name), "{fault} should be about {name}");
        }
        assert_eq!(error.0.len(), names.len());
    }
}
