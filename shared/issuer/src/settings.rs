//! How tokens are issued, and how the keys that sign them are rotated.

use std::{str::FromStr, time::Duration};

use auth::{signing::SigningAlgorithm, token::LONGEST_LIFETIME};
use base::{
    Environment, FromEnvironment,
    wait::{Wait, WaitError},
};

/// How tokens are issued: `TOKEN_LIFETIME`.
#[derive(Debug, Clone, Copy)]
pub struct TokenSettings {
    /// In seconds; an hour unless set, and at most.
    pub lifetime: u32,
}

impl FromEnvironment for TokenSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { lifetime: environment.parsed("TOKEN_LIFETIME", Lifetime(LONGEST_LIFETIME))?.0 })
    }
}

/// Seconds that a token lives.
struct Lifetime(u32);

impl FromStr for Lifetime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = text.parse().ok().filter(|seconds| (1..=LONGEST_LIFETIME).contains(seconds));
        seconds.map(Self).ok_or("not a whole number of seconds from 1 to 3600, an hour")
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
        let algorithm = environment.parsed("SIGNING_ALGORITHM", SigningAlgorithm::default());
        let lead = environment.parsed("SIGNING_KEY_LEAD", Lead(LEAST_LEAD));
        Some(Self { algorithm: algorithm?, lead: lead?.0 })
    }
}

/// Twice as long as a function keeps the published keys that it verifies with.
const LEAST_LEAD: Duration = Duration::from_secs(10 * 60);

/// A lead that makes no valid token look like a forged one, or none at all, for tests.
struct Lead(Duration);

/// A text that is no lead.
#[derive(Debug, thiserror::Error)]
enum LeadError {
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error(
        "less than 10m: verifiers keep published keys for five minutes, and would refuse the tokens of a key that \
         they do not know yet (`0s` is for tests)"
    )]
    Short,
}

impl FromStr for Lead {
    type Err = LeadError;

    fn from_str(text: &str) -> Result<Self, LeadError> {
        let Wait(lead) = text.parse()?;
        if lead.is_zero() || lead >= LEAST_LEAD { Ok(Self(lead)) } else { Err(LeadError::Short) }
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
    fn a_key_signs_no_sooner_than_all_verifiers_know_it_or_in_tests_at_once() {
        for short in [|_: &str| Some("1m".into()), |_: &str| Some("599s".into())] as [fn(&str) -> Option<String>; 2] {
            let error = read_from::<Alone>(short).expect_err("too short").to_string();
            assert!(error.contains("SIGNING_KEY_LEAD is `") && error.contains("less than 10m"), "{error}");
        }
        let lead = |variable| read_from::<Alone>(variable).expect("long enough").0;
        assert_eq!(lead(|_| Some("0s".into())), Duration::ZERO);
        assert_eq!(lead(|_| Some("600s".into())), LEAST_LEAD);
        assert_eq!(lead(|_| Some("1d".into())), Duration::from_secs(86_400));
    }

    /// The lead without the algorithm, since the variables of these tests all have one value.
    #[derive(Debug)]
    struct Alone(Duration);

    impl FromEnvironment for Alone {
        fn from_environment(environment: &mut Environment) -> Option<Self> {
            environment.parsed("SIGNING_KEY_LEAD", Lead(LEAST_LEAD)).map(|lead| Self(lead.0))
        }
    }

    #[test]
    fn a_token_lives_an_hour_at_most_and_unless_less_is_set() {
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
