//! The number of a webhook's waiting deliveries, by the reason for their wait.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    commands::deliveries::{Found, found},
    failure::Failure,
    service::Service,
};

/// The maximum number of open deliveries that are counted.
const MOST: usize = 300;
/// The reason of deliveries that do not wait.
const SENDING: &str = "being sent";

/// How many deliveries are waiting, by `waitingFor`.
pub struct Waiting {
    counts: BTreeMap<String, usize>,
    is_complete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Open {
    waiting_for: Option<String>,
}

impl Waiting {
    /// Counts a webhook's open deliveries.
    pub async fn of(service: &Service, webhook: &str) -> Result<Self, Failure> {
        let filters = [("status", "pending,retrying".to_owned()), ("webhookIdentifier", webhook.to_owned())];
        let Found { deliveries, is_complete } = found(service, &filters, MOST).await?;
        let mut counts = BTreeMap::new();
        for delivery in deliveries {
            let Open { waiting_for } = service.read(delivery.get())?;
            *counts.entry(waiting_for.unwrap_or_else(|| SENDING.to_owned())).or_default() += 1;
        }
        Ok(Self { counts, is_complete })
    }

    /// The number with its reasons.
    pub fn text(&self) -> String {
        let total: usize = self.counts.values().sum();
        let least = if self.is_complete { "" } else { "at least " };
        let reasons = match self.counts.len() {
            0 => String::new(),
            1 => self.counts.keys().cloned().collect(),
            _ => self.counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", "),
        };
        if reasons.is_empty() { "none".to_owned() } else { format!("{least}{total} ({reasons})") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_deliveries_are_counted_by_their_reasons() {
        let text = |counts: &[(&str, usize)], is_complete| {
            let counts = counts.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
            Waiting { counts, is_complete }.text()
        };
        assert_eq!(text(&[], true), "none");
        assert_eq!(text(&[("pause", 12)], true), "12 (pause)");
        assert_eq!(text(&[("schedule", 2), ("pause", 12)], true), "14 (12 pause, 2 schedule)");
        assert_eq!(text(&[("breaker", 300)], false), "at least 300 (breaker)");
    }
}
