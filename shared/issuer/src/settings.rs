//! Settings for issuing tokens and for rotating the keys that sign them.

use std::str::FromStr;

use auth::{signing::SigningAlgorithm, token::LONGEST_LIFETIME};
use base::{Environment, FromEnvironment};

/// Settings for issuing tokens: `TOKEN_LIFETIME`.
#[derive(Debug, Clone, Copy)]
pub struct TokenSettings {
    /// The lifetime of tokens, in seconds: an hour by default, which is the maximum.
    pub lifetime: u32,
}

impl FromEnvironment for TokenSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { lifetime: environment.parsed("TOKEN_LIFETIME", Lifetime(LONGEST_LIFETIME))?.0 })
    }
}

/// The lifetime of tokens, in seconds.
struct Lifetime(u32);

impl FromStr for Lifetime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = text.parse().ok().filter(|seconds| (1..=LONGEST_LIFETIME).contains(seconds));
        seconds.map(Self).ok_or("not a whole number of seconds from 1 to 3600, an hour")
    }
}

/// Settings for rotating the keys that sign tokens: `SIGNING_ALGORITHM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SigningSettings {
    /// The algorithm of new keys; ES256 by default.
    pub algorithm: SigningAlgorithm,
}

impl FromEnvironment for SigningSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { algorithm: environment.parsed("SIGNING_ALGORITHM", SigningAlgorithm::default())? })
    }
}

#[cfg(test)]
mod tests {
    use base::environment::read_from;

    use super::*;

    #[test]
    fn signing_settings_have_defaults_and_name_their_faults() {
        let settings = read_from::<SigningSettings>(|_| None).expect("defaults");
        assert_eq!(settings, SigningSettings { algorithm: SigningAlgorithm::Es256 });
        let error = read_from::<SigningSettings>(|_| Some("RS256".into())).expect_err("refused").0;
        assert!(error[0].starts_with("SIGNING_ALGORITHM is `RS256`"), "{error:?}");
    }

    #[test]
    fn a_token_lives_an_hour_by_default_and_at_most() {
        assert_eq!(read_from::<TokenSettings>(|_| None).expect("the default").lifetime, 3600);
        let bad: [fn(&str) -> Option<String>; 3] =
            [|_| Some("0".into()), |_| Some("3601".into()), |_| Some("an hour".into())];
        for bad in bad {
            let error = read_from::<TokenSettings>(bad).expect_err("refused");
            let said = "`, which is not a whole number of seconds from 1 to 3600, an hour";
            assert!(error.0[0].starts_with("TOKEN_LIFETIME is `") && error.0[0].ends_with(said), "{error}");
        }
    }
}
