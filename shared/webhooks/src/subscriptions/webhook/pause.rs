//! A pause by a webhook's owner, as stored with the webhook. Requests for it are in `pausing`.

use serde::{Deserialize, Serialize};

use base::Time;

/// A pause by the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it began.
    #[serde(rename = "pausedSince")]
    pub(crate) since: Time,
    /// When it ends by itself. If this is missing, only the owner ends the pause.
    #[serde(rename = "pausedUntil", default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Time>,
}

impl Pause {
    /// Whether the pause is still in effect.
    pub(crate) fn lasts(self, now: Time) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Its end, or now while it is in effect.
    pub(crate) fn last_moment(self, now: Time) -> Time {
        self.until.map_or(now, |until| until.min(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Time = Time::from_millis(1_795_167_900_123);
    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn until(until: Option<Time>) -> Pause {
        Pause { since: NOW - HOUR, until }
    }

    #[test]
    fn a_pause_lasts_until_its_end_or_until_its_owner_ends_it() {
        assert!(until(None).lasts(NOW) && until(Some(NOW + HOUR)).lasts(NOW));
        assert!(!until(Some(NOW)).lasts(NOW) && !until(Some(NOW - HOUR)).lasts(NOW));
    }

    #[test]
    fn the_last_moment_of_a_pause_is_never_in_the_future() {
        let last = [None, Some(NOW + HOUR), Some(NOW - HOUR)].map(|end| until(end).last_moment(NOW));
        assert_eq!(last, [NOW, NOW, NOW - HOUR]);
    }

    #[test]
    fn a_stored_pause_has_flat_attributes() {
        let stored = |pause| serde_json::to_value(pause).expect("JSON");
        assert_eq!(stored(until(None)), serde_json::json!({ "pausedSince": NOW - HOUR }));
        assert_eq!(stored(until(Some(NOW))), serde_json::json!({ "pausedSince": NOW - HOUR, "pausedUntil": NOW }));
    }
}
