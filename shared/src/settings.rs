//! The only reader of the environment: read once, at the start, every fault reported at once with its variable's name.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use http::Uri;
use ipnet::IpNet;
use url::Url;

use crate::{
    auth::signing::SigningAlgorithm,
    deliveries::schedule::{RetrySchedule, Wait},
    events::share::ShareSettings,
    geo_ip::StoreAddress,
    oauth::guesses::GuessSettings,
    webhooks::breaker::BreakerSettings,
};

/// What every function needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `BASE_URL`: the API's address, without a slash at its end; the audience of tokens and the base of Problem types.
    pub base_url: String,
    /// `AUTH_URL`: the token issuer's address, without a slash at its end; the `iss` of tokens.
    pub auth_url: String,
    /// `TABLE_NAME`: the DynamoDB table.
    pub table_name: String,
    /// `ENVIRONMENT`: the name of this deployment, such as `production`.
    pub environment: String,
}

/// How much is logged: `LOG_LEVEL`, one of `error`, `warn`, `info`, `debug`, `trace`.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// `info` unless set.
    pub level: String,
}

/// How AWS is reached: what Lambda puts into the environment, and the SDKs' own variables for other endpoints.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
#[derive(Clone)]
pub struct AwsSettings {
    /// `AWS_REGION`.
    pub region: String,
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key_id: String,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: String,
    /// `AWS_SESSION_TOKEN`: always there on Lambda.
    pub session_token: Option<String>,
    /// `AWS_ENDPOINT_URL_DYNAMODB`, where it is not AWS's own.
    pub dynamodb_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_SQS`, where it is not AWS's own.
    pub sqs_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_SECRETS_MANAGER`, where it is not AWS's own.
    pub secrets_manager_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_S3`, where it is not AWS's own.
    pub s3_endpoint: Option<String>,
}

impl fmt::Debug for AwsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsSettings").field("region", &self.region).finish_non_exhaustive()
    }
}

/// Where the secrets are: `SECRETS_PREFIX`, put before each name in Secrets Manager.
#[derive(Debug, Clone)]
pub struct SecretSettings {
    /// Ends with a slash, by convention.
    pub prefix: String,
}

/// Where due deliveries are announced: `QUEUE_URL` and `SLOW_QUEUE_URL`.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The address of the SQS queue.
    pub url: String,
    /// The address of that for webhooks that are slow.
    pub slow_url: String,
}

/// Where events of the bus go that cannot be published: `REJECTED_EVENTS_URL`.
#[derive(Debug, Clone)]
pub struct RejectedEventsSettings {
    /// The address of the SQS queue.
    pub url: String,
}

/// How tokens are issued: `TOKEN_LIFETIME`.
#[derive(Debug, Clone, Copy)]
pub struct TokenSettings {
    /// In seconds; 3600 unless set.
    pub lifetime: u32,
}

/// How the keys that sign tokens are rotated: `SIGNING_ALGORITHM` and `SIGNING_KEY_LEAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SigningSettings {
    /// What new keys are for; ES256 unless set.
    pub algorithm: SigningAlgorithm,
    /// How long a key is published before it signs; 10 minutes unless set.
    pub lead: Duration,
}

/// When deliveries are tried and for how long they are kept: `RETRY_SCHEDULE` and `DELIVERY_RETENTION`.
#[derive(Debug, Clone)]
pub struct ScheduleSettings {
    /// The wait before each attempt.
    pub schedule: RetrySchedule,
    /// How long a delivery is kept, with its event and its attempts; 90 days unless set.
    pub retention: Duration,
}

/// Whereto the service may send: `DELIVERY_ALLOWED_NETWORKS` and `DELIVERY_ALLOW_HTTP`.
#[derive(Debug, Clone, Default)]
pub struct EndpointSettings {
    /// Networks that are excepted from the ban on addresses that are not public. Empty on AWS.
    pub allowed_networks: Vec<IpNet>,
    /// Whether `http` is allowed beside `https`. Not on AWS.
    pub allow_http: bool,
}

/// Where geo-IP databases are published and how they are fetched: `GEO_IP_STORE`, `GEO_IP_ALLOW_HTTP` and
/// `DELIVERY_ALLOWED_NETWORKS`.
#[derive(Debug, Clone)]
pub struct GeoIpSettings {
    /// `file:///folder` or `s3://bucket/prefix`.
    pub store: StoreAddress,
    /// Whereto a provider may lead: the networks that deliveries may reach, and with `http` on one machine only.
    pub rules: EndpointSettings,
    /// `TMPDIR`: where files may be put for a while.
    pub scratch: PathBuf,
    /// `AWS_LAMBDA_FUNCTION_MEMORY_SIZE`, in MB: databases are verified in memory.
    pub memory: u64,
}

/// Where people go who come back from a payment provider: `ADMIN_PANEL_URL`, or our own page below `BASE_URL`.
#[derive(Debug, Clone)]
pub struct PanelSettings {
    /// The admin panel's address, perhaps with a path, without a slash at its end.
    pub address: String,
}

/// Settings that can be read from the environment.
pub trait FromEnvironment: Sized {
    /// Reads them; what is wrong goes into the reader, and the value is then thrown away by [`read`].
    fn from_environment(environment: &mut Environment) -> Option<Self>;
}

/// The variables, and what is wrong with them.
#[derive(Debug)]
pub struct Environment {
    variable: fn(&str) -> Option<String>,
    faults: Vec<String>,
}

/// The variables that are missing or malformed: all of them, each with its name.
#[derive(PartialEq, Eq, thiserror::Error)]
#[error("the environment is not as it should be: {}", .0.join("; "))]
pub struct SettingsError(pub Vec<String>);

impl fmt::Debug for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads settings from the process's environment, or reports everything that is wrong with it.
pub fn read<S: FromEnvironment>() -> Result<S, SettingsError> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    read_from(|name| std::env::var(name).ok())
}

fn read_from<S: FromEnvironment>(variable: fn(&str) -> Option<String>) -> Result<S, SettingsError> {
    let mut environment = Environment { variable, faults: Vec::new() };
    match S::from_environment(&mut environment) {
        Some(settings) if environment.faults.is_empty() => Ok(settings),
        _ => Err(SettingsError(environment.faults)),
    }
}

impl Environment {
    /// A variable that must be there and not be empty.
    pub fn required(&mut self, name: &str) -> Option<String> {
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        if value.is_none() {
            self.faults.push(format!("{name} is not set"));
        }
        value
    }

    /// A variable that may be there.
    pub fn optional(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// A variable with a form of its own; when it is not set or empty, the default.
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

    fn fault(&mut self, name: &str, value: &str, error: &dyn fmt::Display) {
        self.faults.push(format!("{name} is `{value}`, which is {error}"));
    }

    fn address(&mut self, name: &str) -> Option<String> {
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
                    &"not an address such as https://api.example.com, without a path or slash at its end",
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
                // Each is read before any is given up, so that all faults come to light at once.
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

impl FromEnvironment for Settings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let (base_url, auth_url) = (environment.address("BASE_URL"), environment.address("AUTH_URL"));
        let (table_name, name) = (environment.required("TABLE_NAME"), environment.required("ENVIRONMENT"));
        Some(Self { base_url: base_url?, auth_url: auth_url?, table_name: table_name?, environment: name? })
    }
}

impl FromEnvironment for AwsSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let [region, access_key_id, secret_access_key] =
            ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| environment.required(name));
        Some(Self {
            region: region?,
            access_key_id: access_key_id?,
            secret_access_key: secret_access_key?,
            session_token: environment.optional("AWS_SESSION_TOKEN"),
            dynamodb_endpoint: environment.optional("AWS_ENDPOINT_URL_DYNAMODB"),
            sqs_endpoint: environment.optional("AWS_ENDPOINT_URL_SQS"),
            secrets_manager_endpoint: environment.optional("AWS_ENDPOINT_URL_SECRETS_MANAGER"),
            s3_endpoint: environment.optional("AWS_ENDPOINT_URL_S3"),
        })
    }
}

impl FromEnvironment for LogSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { level: environment.parsed("LOG_LEVEL", "info".to_owned())? })
    }
}

impl FromEnvironment for SecretSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { prefix: environment.required("SECRETS_PREFIX")? })
    }
}

impl FromEnvironment for QueueSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let (url, slow_url) = (environment.required("QUEUE_URL"), environment.required("SLOW_QUEUE_URL"));
        Some(Self { url: url?, slow_url: slow_url? })
    }
}

impl FromEnvironment for RejectedEventsSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { url: environment.required("REJECTED_EVENTS_URL")? })
    }
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

impl FromEnvironment for SigningSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        // Twice as long as published keys are kept by whoever verifies with them.
        const LEAD: Wait = Wait(Duration::from_secs(10 * 60));
        let algorithm = environment.parsed("SIGNING_ALGORITHM", SigningAlgorithm::default());
        let lead = environment.parsed("SIGNING_KEY_LEAD", LEAD);
        Some(Self { algorithm: algorithm?, lead: lead?.0 })
    }
}

impl FromEnvironment for ScheduleSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        const RETENTION: Wait = Wait(Duration::from_secs(90 * 24 * 60 * 60));
        let schedule = environment.parsed("RETRY_SCHEDULE", RetrySchedule::default());
        let retention = environment.parsed("DELIVERY_RETENTION", RETENTION);
        let (schedule, Wait(retention)) = (schedule?, retention?);
        // A delivery must be over before it is forgotten, with whatever pauses its endpoint asks for.
        if retention < schedule.whole() * 2 {
            let value = format!("{} s", retention.as_secs());
            environment.fault("DELIVERY_RETENTION", &value, &"less than twice the whole of RETRY_SCHEDULE");
            return None;
        }
        Some(Self { schedule, retention })
    }
}

impl FromEnvironment for BreakerSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let default = Self::default();
        let threshold = environment.parsed("BREAKER_THRESHOLD", AtLeastOne(default.threshold));
        let open_for = environment.parsed("BREAKER_OPEN", Wait(default.open_for));
        let longest = environment.parsed("BREAKER_MAX", Wait(default.longest));
        let failing_after = environment.parsed("FAILING_AFTER", AtLeastOne(default.failing_after));
        let disable_after = environment.parsed("DISABLE_AFTER", Wait(default.disable_after));
        Some(Self {
            threshold: threshold?.0,
            open_for: open_for?.0,
            longest: longest?.0,
            failing_after: failing_after?.0,
            disable_after: disable_after?.0,
        })
    }
}

impl FromEnvironment for GuessSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let default = Self::default();
        let per_client = environment.parsed("TOKEN_GUESSES_PER_CLIENT", AtLeastOne(default.per_client));
        let per_address = environment.parsed("TOKEN_GUESSES_PER_ADDRESS", AtLeastOne(default.per_address));
        Some(Self { per_client: per_client?.0, per_address: per_address?.0 })
    }
}

impl FromEnvironment for ShareSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let per_minute = environment.parsed("PUBLISH_LIMIT", AtLeastOne(Self::default().per_minute));
        Some(Self { per_minute: per_minute?.0 })
    }
}

impl FromEnvironment for EndpointSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let networks = environment.parsed("DELIVERY_ALLOWED_NETWORKS", Networks(Vec::new()));
        let allow_http = environment.parsed("DELIVERY_ALLOW_HTTP", Switch(false));
        Some(Self { allowed_networks: networks?.0, allow_http: allow_http?.0 })
    }
}

impl FromEnvironment for GeoIpSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let store = environment.required("GEO_IP_STORE").and_then(|address| {
            address.parse().map_err(|error| environment.fault("GEO_IP_STORE", &address, &error)).ok()
        });
        let networks = environment.parsed("DELIVERY_ALLOWED_NETWORKS", Networks(Vec::new()));
        let allow_http = environment.parsed("GEO_IP_ALLOW_HTTP", Switch(false));
        let memory = environment.parsed("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", 512);
        let rules = EndpointSettings { allowed_networks: networks?.0, allow_http: allow_http?.0 };
        let scratch = environment.optional("TMPDIR").unwrap_or_else(|| "/tmp".to_owned()).into();
        Some(Self { store: store?, rules, scratch, memory: memory? })
    }
}

impl FromEnvironment for PanelSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        match environment.optional("ADMIN_PANEL_URL") {
            Some(value) => {
                let address = panel_address(&value);
                if address.is_none() {
                    let wanted = "not an address such as https://panel.example.com/admin, without a query or fragment";
                    environment.fault("ADMIN_PANEL_URL", &value, &wanted);
                }
                address.map(|address| Self { address })
            }
            // That it is missing is a fault of the settings that every function has.
            None => Some(Self { address: format!("{}/panel", environment.optional("BASE_URL")?) }),
        }
    }
}

fn panel_address(value: &str) -> Option<String> {
    let url = Url::parse(value).ok()?;
    let plain =
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    (matches!(url.scheme(), "http" | "https") && plain).then(|| url.as_str().trim_end_matches('/').to_owned())
}

/// `true` or `false`, and nothing else.
struct Switch(bool);

impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| "neither `true` nor `false`")
    }
}

/// A number that is not 0.
struct AtLeastOne(u32);

impl FromStr for AtLeastOne {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().filter(|number| *number > 0).map(Self).ok_or("not a whole number from 1")
    }
}

/// Networks, separated by commas.
struct Networks(Vec<IpNet>);

impl FromStr for Networks {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let networks: Result<_, _> = text.split(',').map(|network| network.trim().parse()).collect();
        networks.map(Self).map_err(|_| "not a list of networks such as `10.0.0.0/8,fd00::/8`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_reported_at_once_by_name() {
        let error =
            read_from::<(Settings, (SecretSettings, EndpointSettings), TokenSettings, ScheduleSettings)>(|name| {
                match name {
                    "BASE_URL" => Some("https://api.example.com/".into()),
                    "AUTH_URL" => Some("nonsense".into()),
                    "DELIVERY_ALLOW_HTTP" => Some("yes".into()),
                    "DELIVERY_ALLOWED_NETWORKS" => Some("10.0.0.0/33".into()),
                    "TOKEN_LIFETIME" => Some("0".into()),
                    "RETRY_SCHEDULE" => Some("soon".into()),
                    _ => None,
                }
            })
            .expect_err("nothing is right");
        let names = [
            "BASE_URL",
            "AUTH_URL",
            "TABLE_NAME",
            "ENVIRONMENT",
            "SECRETS_PREFIX",
            "DELIVERY_ALLOWED_NETWORKS",
            "DELIVERY_ALLOW_HTTP",
            "TOKEN_LIFETIME",
            "RETRY_SCHEDULE",
        ];
        for (fault, name) in error.0.iter().zip(names) {
            assert!(fault.starts_with(name), "{fault} should be about {name}");
        }
        assert_eq!(error.0.len(), names.len());
    }

    #[test]
    fn the_panel_is_our_own_where_nothing_else_is_set() {
        let own = read_from::<PanelSettings>(|name| (name == "BASE_URL").then(|| "https://api.example.com".into()));
        assert_eq!(own.expect("the default").address, "https://api.example.com/panel");
        let set = read_from::<PanelSettings>(|name| match name {
            "ADMIN_PANEL_URL" => Some("https://Panel.example.com:8443/admin/".into()),
            _ => None,
        });
        assert_eq!(set.expect("set").address, "https://panel.example.com:8443/admin");
    }

    #[test]
    fn a_panel_that_is_no_plain_address_is_refused_by_name() {
        for good in ["http://127.0.0.1:3000", "https://panel.example.com/", "https://panel.example.com/a/b"] {
            assert!(panel_address(good).is_some(), "{good}");
        }
        for bad in [
            "panel.example.com",
            "/panel",
            "ftp://panel.example.com",
            "javascript:alert(1)",
            "https://",
            "https://panel.example.com/?",
            "https://panel.example.com/#",
            "https://panel.example.com/?a=b",
            "https://user@panel.example.com",
            "https://user:secret@panel.example.com",
        ] {
            assert_eq!(panel_address(bad), None, "{bad}");
        }
        let error = read_from::<PanelSettings>(|_| Some("nonsense".into())).expect_err("refused");
        assert!(error.0.len() == 1 && error.0[0].starts_with("ADMIN_PANEL_URL"), "{error}");
    }

    #[test]
    fn what_is_not_set_has_the_default_of_the_contract() {
        let (token, endpoints, schedule) =
            read_from::<(TokenSettings, EndpointSettings, ScheduleSettings)>(|_| None).expect("defaults");
        assert_eq!(token.lifetime, 3600);
        assert!(!endpoints.allow_http && endpoints.allowed_networks.is_empty());
        assert_eq!(schedule.schedule.attempts(), 10);
    }

    #[test]
    fn keys_are_rotated_as_it_is_usual_unless_something_else_is_set() {
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
    fn guessing_is_limited_as_the_contract_says_unless_something_else_is_set() {
        let settings = read_from::<GuessSettings>(|_| None).expect("defaults");
        assert_eq!(settings, GuessSettings { per_client: 100, per_address: 1000 });
        let error = read_from::<GuessSettings>(|_| Some("0".into())).expect_err("refused").0;
        let about = |number: usize, name: &str| error[number].starts_with(name);
        assert!(about(0, "TOKEN_GUESSES_PER_CLIENT") && about(1, "TOKEN_GUESSES_PER_ADDRESS"), "{error:?}");
    }

    #[test]
    fn an_entity_may_publish_so_much_unless_something_else_is_set_and_never_nothing() {
        assert_eq!(read_from::<ShareSettings>(|_| None).expect("the default").per_minute, 60_000);
        assert_eq!(read_from::<ShareSettings>(|_| Some("1".into())).expect("set").per_minute, 1);
        let bad: [fn(&str) -> Option<String>; 3] =
            [|_| Some("0".into()), |_| Some("many".into()), |_| Some("4294967296".into())];
        for variable in bad {
            let error = read_from::<ShareSettings>(variable).expect_err("refused").0;
            assert!(error.len() == 1 && error[0].starts_with("PUBLISH_LIMIT"), "{error:?}");
        }
    }

    #[test]
    fn what_opens_a_breaker_is_read_in_the_words_of_the_schedule() {
        let settings = read_from::<BreakerSettings>(|name| match name {
            "BREAKER_THRESHOLD" => Some("3".into()),
            "BREAKER_OPEN" => Some("500ms".into()),
            "DISABLE_AFTER" => Some("2h".into()),
            _ => None,
        });
        let expected = BreakerSettings {
            threshold: 3,
            open_for: Duration::from_millis(500),
            disable_after: Duration::from_secs(2 * 60 * 60),
            ..BreakerSettings::default()
        };
        assert_eq!(settings.expect("readable"), expected);
        let error =
            read_from::<BreakerSettings>(|name| Some(if name == "BREAKER_OPEN" { "soon" } else { "0" }.to_owned()));
        let faults = error.expect_err("refused").0;
        let about = |name: &str| faults.iter().any(|fault| fault.starts_with(name));
        for name in ["BREAKER_THRESHOLD", "BREAKER_OPEN", "BREAKER_MAX", "FAILING_AFTER", "DISABLE_AFTER"] {
            assert!(about(name), "{name}: {faults:?}");
        }
    }
}
