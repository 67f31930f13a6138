//! How tokens are issued, and how the keys that sign them are rotated.

use std::time::Duration;

use auth::signing::SigningAlgorithm;
use base::{Environment, FromEnvironment, wait::Wait};

/// How tokens are issued: `TOKEN_LIFETIME`.
#[derive(Debug, Clone, Copy)]
pub struct TokenSettings {
    /// In seconds; 3600 unless set.
    pub lifetime: u32,
}

impl FromEnvironment for TokenSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let lifetime = environment.parsed("TOKEN_LIFETIME", 3600)?;
        if !(1..=86_400).contains(&lifetime) {
            environment.fault("TOKEN_LIFETIME", &lifetime.to_string(), &"not a number of seconds from 1 to 86400");
            return None;
        }
        Some(Self { lifetime })
    }
}

/// How the keys that sign tokens are rotated: `SIGNING_ALGORITHM` and `SIGNING_KEY_LEAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SigningSettings {
    /// The algorithm of new keys; ES256 unless set.
    pub algorithm: SigningAlgorithm,
    /// How long a key is published before it signs; 10 minutes unless set.
    pub lead: Duration,
}

impl FromEnvironment for SigningSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        // Twice as long as a function keeps the published keys that it verifies with.
        const LEAD: Wait = Wait(Duration::from_secs(10 * 60));
        let algorithm = environment.parsed("SIGNING_ALGORITHM", SigningAlgorithm::default());
        let lead = environment.parsed("SIGNING_KEY_LEAD", LEAD);
        Some(Self { algorithm: algorithm?, lead: lead?.0 })
    }
}

#[cfg(test)]
mod tests {
    use base::environment::read_from;

    use super::*;

    #[test]
    fn signing_settings_have_defaults_and_name_their_faults() {
        let settings = read_from::<SigningSettings>(|_| None).expect("defaults");
        let expected = SigningSettings { algorithm: SigningAlgorithm::Es256, lead: Duration::from_secs(600) };
        assert_eq!(settings, expected);
        let error = read_from::<SigningSettings>(|_| Some("RS256".into())).expect_err("refused").0;
        assert!(
            error[0].starts_with("SIGNING_ALGORITHM is `RS256`") && error[1].starts_with("SIGNING_KEY_LEAD"),
            "{error:?}"
        );
    }

    #[test]
    fn a_token_lives_an_hour_unless_something_else_is_set_and_a_day_at_most() {
        assert_eq!(read_from::<TokenSettings>(|_| None).expect("the default").lifetime, 3600);
        let bad: [fn(&str) -> Option<String>; 3] =
            [|_| Some("0".into()), |_| Some("86401".into()), |_| Some("an hour".into())];
        for bad in bad {
            let error = read_from::<TokenSettings>(bad).expect_err("refused");
            assert!(error.0[0].starts_with("TOKEN_LIFETIME"), "{error}");
        }
    }
}
