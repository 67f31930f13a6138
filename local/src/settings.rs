//! The settings of a local run: the contract's, as environment variables of `make run`.

use std::{collections::BTreeMap, time::Duration};

use base::wait::{Wait, WaitError};
use geo_ip::{StoreAddress, store::StoreAddressError};
use outbound::AddressRules;
use template::{ScheduleTrigger, Template};

use crate::services::{S3, S3Error};

/// A template parameter and the variable that sets it locally.
struct Setting {
    parameter: &'static str,
    variable: &'static str,
    /// The default on one machine, where it is not the template's.
    local_default: Option<&'static str>,
}

const SETTINGS: [Setting; 20] = [
    Setting { parameter: "RetrySchedule", variable: "RETRY_SCHEDULE", local_default: None },
    Setting { parameter: "DeliveryRetention", variable: "DELIVERY_RETENTION", local_default: None },
    Setting { parameter: "BreakerThreshold", variable: "BREAKER_THRESHOLD", local_default: None },
    Setting { parameter: "BreakerOpen", variable: "BREAKER_OPEN", local_default: None },
    Setting { parameter: "BreakerMax", variable: "BREAKER_MAX", local_default: None },
    Setting { parameter: "FailingAfter", variable: "FAILING_AFTER", local_default: None },
    Setting { parameter: "DisableAfter", variable: "DISABLE_AFTER", local_default: None },
    Setting { parameter: "TokenLifetime", variable: "TOKEN_LIFETIME", local_default: None },
    Setting { parameter: "TokenGuessesPerClient", variable: "TOKEN_GUESSES_PER_CLIENT", local_default: None },
    Setting { parameter: "TokenGuessesPerAddress", variable: "TOKEN_GUESSES_PER_ADDRESS", local_default: None },
    Setting { parameter: "PublishLimit", variable: "PUBLISH_LIMIT", local_default: None },
    Setting { parameter: "SigningAlgorithm", variable: "SIGNING_ALGORITHM", local_default: None },
    Setting { parameter: "SigningKeyLead", variable: "SIGNING_KEY_LEAD", local_default: None },
    Setting { parameter: "LogLevel", variable: "LOG_LEVEL", local_default: None },
    // Receivers that people try out run on this machine, without a certificate.
    Setting {
        parameter: "DeliveryAllowedNetworks",
        variable: "DELIVERY_ALLOWED_NETWORKS",
        local_default: Some("127.0.0.1/32"),
    },
    Setting { parameter: "DeliveryAllowHttp", variable: "DELIVERY_ALLOW_HTTP", local_default: Some("true") },
    Setting { parameter: "GeoIpAllowHttp", variable: "GEO_IP_ALLOW_HTTP", local_default: Some("true") },
    Setting { parameter: "CanaryPatience", variable: "CANARY_PATIENCE", local_default: None },
    Setting { parameter: "AdminPanelUrl", variable: "ADMIN_PANEL_URL", local_default: None },
    // The demo application's secret stands in a file of the one who runs it.
    Setting { parameter: "PanelCredentials", variable: "PANEL_CREDENTIALS", local_default: Some("true") },
];

/// The values of the template's parameters, and the settings of a local run alone.
#[derive(Debug)]
pub struct Settings {
    pub parameters: BTreeMap<String, String>,
    /// `SWEEP_INTERVAL`, in place of all schedules that come every minute: with a minute, as on AWS, trying out retries would be
    /// tedious.
    pub sweep_interval: Duration,
    /// `FUNCTION_IDLE`: how long a function has nothing to do before its process is ended.
    pub function_idle: Duration,
    /// `GEO_IP_STORE`: where geo-IP databases are published, if not in the folder for data.
    pub geo_ip_store: Option<StoreAddress>,
    /// `AWS_ENDPOINT_URL_S3`: where the bucket is, if they are published in one.
    pub s3: Option<S3>,
}

/// A schedule that comes as seldom as this keeps its own interval here: no test or person waits for it, and it sends requests
/// to providers that count them, or events of its own.
pub const SELDOM: Duration = Duration::from_secs(5 * 60);

/// A setting is malformed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the variable {0} is `{1}`, which is {2}")]
    Wait(&'static str, String, WaitError),
    #[error("the variable SWEEP_INTERVAL is `0s`: one sweep would follow the other without a pause")]
    NoPause,
    #[error("the variable GEO_IP_STORE cannot be read")]
    GeoIpStore(#[source] StoreAddressError),
    #[error(
        "GEO_IP_STORE names a bucket, and there is no S3 here: say in AWS_ENDPOINT_URL_S3 where one is that checks no \
         signatures, as an emulator's, or leave GEO_IP_STORE out for a folder"
    )]
    NoS3,
    #[error("the variable AWS_ENDPOINT_URL_S3 cannot be read")]
    S3(#[source] S3Error),
}

impl Settings {
    /// Reads the settings with `variable`, over the template's defaults.
    pub fn read(template: &Template, variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let mut parameters = template.defaults().clone();
        for setting in SETTINGS {
            if let Some(value) = variable(setting.variable).or(setting.local_default.map(str::to_owned)) {
                parameters.insert(setting.parameter.to_owned(), value);
            }
        }
        let wait = |name: &'static str, default: &str| {
            let value = variable(name).unwrap_or_else(|| default.to_owned());
            value.parse::<Wait>().map(|wait| wait.0).map_err(|error| SettingsError::Wait(name, value, error))
        };
        let (sweep_interval, function_idle) = (wait("SWEEP_INTERVAL", "1s")?, wait("FUNCTION_IDLE", "2m")?);
        if sweep_interval.is_zero() {
            return Err(SettingsError::NoPause);
        }
        let geo_ip_store = variable("GEO_IP_STORE").filter(|store| !store.is_empty());
        let geo_ip_store = geo_ip_store.map(|store| store.parse()).transpose().map_err(SettingsError::GeoIpStore)?;
        let s3 = match &geo_ip_store {
            Some(StoreAddress::S3 { .. }) => {
                let address = variable("AWS_ENDPOINT_URL_S3").filter(|address| !address.is_empty());
                Some(address.ok_or(SettingsError::NoS3)?.parse().map_err(SettingsError::S3)?)
            }
            _ => None,
        };
        Ok(Self { parameters, sweep_interval, function_idle, geo_ip_store, s3 })
    }
}

/// The times of a schedule on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From the start to the first event.
    pub first: Duration,
    /// From one event to the next.
    pub every: Duration,
}

impl Settings {
    /// The times of a schedule on this machine. One that comes seldom does not come at the start either.
    pub fn pace(&self, trigger: &ScheduleTrigger) -> Pace {
        if trigger.every >= SELDOM {
            Pace { first: trigger.every, every: trigger.every }
        } else {
            Pace { first: Duration::ZERO, every: self.sweep_interval }
        }
    }

    /// The addresses to which the service may send. A malformed network is left out: the start has refused it before.
    pub fn address_rules(&self) -> AddressRules {
        let value = |parameter: &str| self.parameters.get(parameter).map(String::as_str).unwrap_or_default();
        AddressRules {
            allowed_networks: value("DeliveryAllowedNetworks")
                .split(',')
                .filter_map(|network| network.trim().parse().ok())
                .collect(),
            allow_http: value("DeliveryAllowHttp") == "true",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        Template::parse(
            "Parameters: {TokenLifetime: {Default: 3600}, DeliveryAllowHttp: {Default: 'false'}}\nResources: {}",
        )
        .expect("well formed")
    }

    #[test]
    fn a_variable_wins_over_the_local_default_and_that_over_the_template() {
        let settings =
            Settings::read(&template(), |name| (name == "TOKEN_LIFETIME").then(|| "5".to_owned())).expect("readable");
        assert_eq!(settings.parameters["TokenLifetime"], "5");
        assert_eq!(settings.parameters["DeliveryAllowHttp"], "true");
        assert_eq!(settings.sweep_interval, Duration::from_secs(1));
    }

    #[test]
    fn a_schedule_of_every_five_minutes_or_less_often_keeps_its_interval() {
        let settings =
            Settings::read(&template(), |name| (name == "SWEEP_INTERVAL").then(|| "5ms".to_owned())).expect("readable");
        let pace = |seconds| settings.pace(&ScheduleTrigger { every: Duration::from_secs(seconds), input: None });
        assert_eq!(pace(60), Pace { first: Duration::ZERO, every: Duration::from_millis(5) });
        for seconds in [300, 86_400] {
            let own = Duration::from_secs(seconds);
            assert_eq!(pace(seconds), Pace { first: own, every: own });
        }
    }

    #[test]
    fn a_malformed_interval_or_store_is_refused() {
        assert!(Settings::read(&template(), |name| (name == "GEO_IP_STORE").then(|| "here".to_owned())).is_err());
        for (name, value) in [("SWEEP_INTERVAL", "soon"), ("SWEEP_INTERVAL", "0s"), ("FUNCTION_IDLE", "soon")] {
            let read = Settings::read(&template(), |asked| (asked == name).then(|| value.to_owned()));
            assert!(read.is_err_and(|error| error.to_string().contains(name)), "{name}={value}");
        }
    }

    #[test]
    fn a_bucket_needs_the_address_of_an_s3_and_a_folder_none() {
        let read = |store: &str, s3: &str| {
            Settings::read(&template(), |name| match name {
                "GEO_IP_STORE" => Some(store.to_owned()),
                "AWS_ENDPOINT_URL_S3" => Some(s3.to_owned()),
                _ => None,
            })
        };
        assert!(matches!(read("s3://bucket", ""), Err(SettingsError::NoS3)));
        assert!(matches!(read("s3://bucket", "here"), Err(SettingsError::S3(_))));
        assert!(read("s3://bucket", "http://127.0.0.1:4566").expect("readable").s3.is_some());
        // A variable that is there for other programs says nothing here.
        assert!(read("file:///folder", "here").expect("readable").s3.is_none());
    }
}
