//! A webhook's circuit breaker: a pure state machine of counts, times and settings.
//!
//! While the breaker is *closed*, attempts are made. A number of consecutive attempts that never completed *opens* it,
//! and attempts are on hold for a pause. After the pause, one attempt is made, the *probe*, and the others wait for its
//! outcome. A response with any status closes the breaker. A probe that gets no response opens it again for twice as
//! long, up to a limit. An attempt that a person requested may be the probe before the end of the pause; if it gets no
//! response, nothing changes.
//!
//! Many dispatchers count for the same webhook concurrently. So none of them writes a state that it computed from an
//! earlier read. Each makes an addition, which the table computes (`Tally`), or a conditional step ([`Consequence`]).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::subscriptions::health::tally::Tally;
use base::{
    clock::Time,
    environment::{AtLeastOne, Environment, FromEnvironment},
    wait::Wait,
};

/// A probe's lease: the longest exchange, 15 s, and time to count it.
pub const PROBE_LEASE: Duration = Duration::from_secs(25);
/// How long deliveries wait for the first probe: most probes end quickly.
const FIRST_PROBE_WAIT: Duration = Duration::from_secs(5);

/// The number of consecutive failed attempts after which a webhook counts as failing. A single delivery makes this many
/// within three hours; fewer failures may be due to a deployment of the endpoint.
const FAILING_AFTER: u32 = 5;

/// When a webhook's breaker opens, and when the webhook is disabled: `BREAKER_THRESHOLD`, `BREAKER_OPEN`, `BREAKER_MAX`
/// and `DISABLE_AFTER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// The breaker opens after this many consecutive attempts that never completed.
    pub threshold: u32,
    /// The length of the first pause.
    pub open_for: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// How long all of a webhook's attempts must have failed before it is disabled. If there is no attempt for this
    /// long, a streak of failures ends.
    pub disable_after: Duration,
}

impl Default for BreakerSettings {
    /// The contract's settings.
    fn default() -> Self {
        Self {
            threshold: 20,
            open_for: Duration::from_secs(30),
            longest: Duration::from_secs(10 * 60),
            disable_after: Duration::from_secs(5 * 24 * 60 * 60),
        }
    }
}

impl BreakerSettings {
    /// The length of the n-th consecutive pause, counted from 1.
    fn opening(&self, opens: u32) -> Duration {
        let doubled = 2u32.checked_pow(opens.saturating_sub(1)).and_then(|factor| self.open_for.checked_mul(factor));
        doubled.unwrap_or(self.longest).min(self.longest)
    }
}

/// A webhook's health, as its owner sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// The endpoint accepts its events.
    #[default]
    Healthy,
    /// The latest attempts failed.
    Failing,
    /// The latest attempts never completed, and the breaker is open.
    Open,
}

/// The failures of a webhook's latest attempts. A webhook without such an item is healthy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthItem {
    /// The number of failed attempts since the last success.
    pub failures_in_row: u32,
    /// The number of attempts that never completed since the last one that did.
    pub incomplete_in_row: u32,
    /// When the first attempt after the last success failed.
    pub failing_since: Option<Time>,
    /// The time of the first failure after the last success or the last long silence. It determines when the webhook is
    /// disabled.
    pub streak_since: Option<Time>,
    /// Whether enough attempts have failed to call the webhook failing.
    pub failing: bool,
    /// When the streak may be announced, if that was postponed because another streak had just been announced.
    #[serde(rename = "tellAfter", skip_serializing_if = "Option::is_none")]
    pub announce_after: Option<Time>,
    /// The end of the breaker's pause; absent while the breaker is closed.
    pub open_until: Option<Time>,
    /// How many times in succession the breaker has opened.
    pub opens: u32,
    /// The end of the probe's lease.
    pub probe_until: Option<Time>,
    /// The status of the last failed attempt; `None` if it never completed.
    pub last_http_status: Option<u16>,
    /// Why the last failed attempt never completed: a stable code and a sentence.
    pub last_error: Option<String>,
}

/// The breaker's decision on an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerDecision {
    /// The attempt is made.
    Go,
    /// The attempt is made as the probe, if it takes the probe's lease before any other attempt does.
    Probe,
    /// The attempt waits until this time, when the breaker decides on it again.
    Wait(Time),
}

/// A streak of failures to be announced, from the first failure after the last success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureStreak {
    /// The time of its first failure.
    pub since: Time,
    /// The item's `announce_after` as it was read. It is a condition of the write, so that one of two concurrent
    /// dispatchers loses.
    pub announce_after: Option<Time>,
}

/// A consequence of a webhook's health, with a condition that holds for only one of many dispatchers.
///
/// Closing the breaker is not a consequence: the count of a completed attempt removes `openUntil` (`health.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// Open the breaker, if it is still closed and enough consecutive attempts never completed.
    Open {
        /// The end of the pause.
        until: Time,
    },
    /// Open the breaker again after a failed probe, if the probed pause is still the last one.
    Reopen {
        /// The end of the probed pause.
        seen: Time,
        /// How many times in succession the breaker will have opened.
        opens: u32,
        /// The end of the pause.
        until: Time,
    },
    /// End a failed probe that a person requested before the end of the pause. The pause continues, and another probe
    /// may be made.
    EndProbe {
        /// The end of the probe's lease, which is unique to it.
        lease: Time,
    },
    /// Announce that the webhook is failing, if that has not been announced yet and no attempt has succeeded in the
    /// meantime.
    AnnounceFailing(FailureStreak),
    /// Disable the webhook, if it is enabled.
    Disable {
        /// The beginning of the streak of failures.
        since: Time,
    },
}

impl HealthItem {
    /// The health that the owner sees.
    pub const fn health(&self) -> Health {
        if self.open_until.is_some() {
            Health::Open
        } else if self.failing {
            Health::Failing
        } else {
            Health::Healthy
        }
    }

    /// The decision on an attempt made now.
    pub fn decision(&self, now: Time) -> BreakerDecision {
        match self.open_until {
            Some(end) if now < end => BreakerDecision::Wait(end),
            _ => self.decision_when_requested(now),
        }
    }

    /// The decision on an attempt that a person requested: it waits only for a probe in progress, not for the end of
    /// the pause.
    pub fn decision_when_requested(&self, now: Time) -> BreakerDecision {
        match (self.open_until, self.probe_until) {
            (None, _) => BreakerDecision::Go,
            (Some(_), Some(end)) if now < end => BreakerDecision::Wait(end.min(self.after_probe(now))),
            (Some(_), _) => BreakerDecision::Probe,
        }
    }

    /// When the deliveries waiting for a probe are checked again. The wait grows with the endpoint's silence, since its
    /// probe is then more likely to time out, and more deliveries are waiting for it.
    pub fn after_probe(&self, now: Time) -> Time {
        let doubled = 2u32.saturating_pow(self.opens.saturating_sub(1).min(8));
        now + FIRST_PROBE_WAIT.saturating_mul(doubled).min(PROBE_LEASE)
    }

    /// The consequences of this health, which includes the tally; `was` is the health before the attempts.
    pub fn consequences(
        &self,
        was: Option<&Self>,
        tally: &Tally,
        settings: &BreakerSettings,
        now: Time,
    ) -> Vec<Consequence> {
        let mut consequences = Vec::new();
        consequences.extend(self.opening(was, tally, settings, now));
        if let Some(since) = self.failing_since.filter(|_| tally.failures > 0) {
            let is_due = !self.failing || self.announce_after.is_some_and(|time| time <= now);
            if is_due && self.failures_in_row >= FAILING_AFTER {
                consequences
                    .push(Consequence::AnnounceFailing(FailureStreak { since, announce_after: self.announce_after }));
            }
        }
        if let Some(since) = self.streak_since.filter(|_| tally.failures > 0) {
            // A few failures that are far apart are no reason to disable the webhook.
            if since + settings.disable_after <= now && self.failures_in_row >= FAILING_AFTER {
                consequences.push(Consequence::Disable { since });
            }
        }
        consequences
    }

    fn opening(&self, was: Option<&Self>, tally: &Tally, settings: &BreakerSettings, now: Time) -> Option<Consequence> {
        if tally.completed {
            return None;
        }
        // An attempt made while the breaker was open was its probe.
        let probed = was.and_then(|was| was.open_until);
        match self.open_until {
            // Doubling the pause would penalize the owner for a person's request.
            Some(seen) if probed == Some(seen) && now < seen => {
                was.and_then(|was| was.probe_until).map(|lease| Consequence::EndProbe { lease })
            }
            Some(seen) if probed == Some(seen) => {
                let opens = self.opens.saturating_add(1);
                Some(Consequence::Reopen { seen, opens, until: now + settings.opening(opens) })
            }
            None if self.incomplete_in_row >= settings.threshold => {
                Some(Consequence::Open { until: now + settings.opening(1) })
            }
            _ => None,
        }
    }
}

impl FromEnvironment for BreakerSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let default = Self::default();
        let threshold = environment.parsed("BREAKER_THRESHOLD", AtLeastOne(default.threshold));
        let open_for = environment.parsed("BREAKER_OPEN", Wait(default.open_for));
        let longest = environment.parsed("BREAKER_MAX", Wait(default.longest));
        let disable_after = environment.parsed("DISABLE_AFTER", Wait(default.disable_after));
        let open_for = open_for?.0;
        let longest = longest?.0;
        if open_for > longest {
            let value = environment.optional("BREAKER_OPEN").unwrap_or_default();
            environment.fault("BREAKER_OPEN", &value, &"longer than BREAKER_MAX, the longest pause");
            return None;
        }
        Some(Self { threshold: threshold?.0, open_for, longest, disable_after: disable_after?.0 })
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
