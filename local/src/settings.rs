//! A local run's settings, from the environment variables of `make run`.

use std::{collections::BTreeMap, time::Duration};

use base::wait::{Wait, WaitError};
use geo_ip::{StoreAddress, store::StoreAddressError};
use outbound::AddressRules;
use template::{ScheduleTrigger, Template};

/// A template parameter and the variable that sets it locally.
struct Setting {
    parameter: &'static str,
    variable: &'static str,
    /// The default on one machine, if it differs from the template's.
    local_default: Option<&'static str>,
}

const SETTINGS: &[Setting] = &[
    Setting { parameter: "RetrySchedule", variable: "RETRY_SCHEDULE", local_default: None },
    Setting { parameter: "DeliveryRetention", variable: "DELIVERY_RETENTION", local_default: None },
    Setting { parameter: "SubjectMembers", variable: "SUBJECT_MEMBERS", local_default: None },
    Setting { parameter: "KeepUnmatchedEvents", variable: "KEEP_UNMATCHED_EVENTS", local_default: None },
    Setting { parameter: "EventValidation", variable: "EVENT_VALIDATION", local_default: None },
    Setting { parameter: "BreakerThreshold", variable: "BREAKER_THRESHOLD", local_default: None },
    Setting { parameter: "BreakerOpen", variable: "BREAKER_OPEN", local_default: None },
    Setting { parameter: "BreakerMax", variable: "BREAKER_MAX", local_default: None },
    Setting { parameter: "DisableAfter", variable: "DISABLE_AFTER", local_default: None },
    Setting { parameter: "TokenLifetime", variable: "TOKEN_LIFETIME", local_default: None },
    Setting { parameter: "TokenGuessesPerClient", variable: "TOKEN_GUESSES_PER_CLIENT", local_default: None },
    Setting { parameter: "TokenGuessesPerAddress", variable: "TOKEN_GUESSES_PER_ADDRESS", local_default: None },
    Setting { parameter: "PublishLimit", variable: "PUBLISH_LIMIT", local_default: None },
    Setting { parameter: "SigningAlgorithm", variable: "SIGNING_ALGORITHM", local_default: None },
    Setting { parameter: "LogLevel", variable: "LOG_LEVEL", local_default: None },
    // Receivers that people try out run on this machine without a certificate.
    Setting {
        parameter: "DeliveryAllowedNetworks",
        variable: "DELIVERY_ALLOWED_NETWORKS",
        local_default: Some("127.0.0.1/32"),
    },
    Setting { parameter: "DeliveryAllowHttp", variable: "DELIVERY_ALLOW_HTTP", local_default: Some("true") },
    Setting { parameter: "GeoIpAllowHttp", variable: "GEO_IP_ALLOW_HTTP", local_default: Some("true") },
    Setting { parameter: "AdminPanelUrl", variable: "ADMIN_PANEL_URL", local_default: None },
    Setting { parameter: "PanelFrameAncestors", variable: "PANEL_FRAME_ANCESTORS", local_default: None },
    Setting { parameter: "PanelName", variable: "PANEL_NAME", local_default: None },
    Setting { parameter: "PanelAccentColor", variable: "PANEL_ACCENT_COLOR", local_default: None },
    // The demo application's secret is in a file that belongs to the person running the service.
    Setting { parameter: "PanelCredentials", variable: "PANEL_CREDENTIALS", local_default: Some("true") },
];

/// The values for the template's parameters, and the settings for local runs.
#[derive(Debug)]
pub struct Settings {
    pub parameters: BTreeMap<String, String>,
    /// `SWEEP_INTERVAL`, the interval for all schedules shorter than [`LONG_INTERVAL`]. At one minute, as on AWS,
    /// trying out retries would be tedious.
    pub sweep_interval: Duration,
    /// `GEO_IP_STORE`, the store for published geo-IP databases, by default in the data folder.
    pub geo_ip_store: Option<StoreAddress>,
}

/// Schedules with at least this interval keep it locally: no test or person waits for them, and they send the canary's
/// events, or requests to rate-limited providers.
pub const LONG_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// A malformed setting.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the variable SWEEP_INTERVAL is `{0}`, which is {1}")]
    SweepInterval(String, WaitError),
    #[error("the variable SWEEP_INTERVAL is `0s`: sweeps would run without a pause")]
    NoPause,
    #[error("the variable GEO_IP_STORE cannot be read")]
    GeoIpStore(#[source] StoreAddressError),
}

impl Settings {
    /// Reads the settings through `variable`; they override the template's defaults.
    pub fn read(template: &Template, variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let mut parameters = template.defaults().clone();
        for setting in SETTINGS {
            if let Some(value) = variable(setting.variable).or(setting.local_default.map(str::to_owned)) {
                parameters.insert(setting.parameter.to_owned(), value);
            }
        }
        let sweep_interval = variable("SWEEP_INTERVAL").unwrap_or_else(|| "1s".to_owned());
        let Wait(sweep_interval) =
            sweep_interval.parse().map_err(|error| SettingsError::SweepInterval(sweep_interval, error))?;
        if sweep_interval.is_zero() {
            return Err(SettingsError::NoPause);
        }
        let geo_ip_store = variable("GEO_IP_STORE").filter(|store| !store.is_empty());
        let geo_ip_store = geo_ip_store.map(|store| store.parse()).transpose().map_err(SettingsError::GeoIpStore)?;
        Ok(Self { parameters, sweep_interval, geo_ip_store })
    }
}

/// A schedule's times on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The time from the start to the first event.
    pub first: Duration,
    /// The time from one event to the next.
    pub every: Duration,
}

impl Settings {
    /// A schedule's times on this machine. A schedule with a long interval does not run at startup.
    pub fn pace(&self, trigger: &ScheduleTrigger) -> Pace {
        if trigger.every >= LONG_INTERVAL {
            Pace { first: trigger.every, every: trigger.every }
        } else {
            Pace { first: Duration::ZERO, every: self.sweep_interval }
        }
    }

    /// The addresses that the service may send requests to. Malformed networks are ignored here, since startup has
    /// already refused them.
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
        for value in ["soon", "0s"] {
            let read = Settings::read(&template(), |asked| (asked == "SWEEP_INTERVAL").then(|| value.to_owned()));
            assert!(read.is_err_and(|error| error.to_string().contains("SWEEP_INTERVAL")), "{value}");
        }
    }
}
