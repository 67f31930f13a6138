//! Rate limits per hour, minute or ten seconds, counted in the table by kind of action and account.
//!
//! | item | pk / sk |
//! |---|---|
//! | count of actions | `ALLOWANCE#{what}#{account}` / the beginning of the window, in seconds |

use crate::table::{Change, Key, Table, TableError, Written, absent, at_most};
use base::Time;
use problem::RateLimit;

/// A minute, in seconds.
const MINUTE: u32 = 60;
/// An hour, in seconds.
const HOUR: u32 = 60 * MINUTE;

/// The kinds of limited action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// Applications, secrets and keys created for a managing entity. Removing one adds an entry to the list of
    /// revocations and is never refused, so creating them is limited instead.
    Credentials,
    /// Revocations of an application's single tokens.
    OwnTokens,
    /// Revocations of single tokens beyond the applications' allowances, for all applications of an owner together.
    SharedTokens,
    /// Panel links created for a managing entity. One response lists all valid links, and removing one adds an entry to
    /// the list of revocations.
    PanelLinks,
    /// Recoveries of a managing entity's deliveries, and pauses that the entity ends. Each may cause thousands of
    /// attempts.
    Recoveries,
    /// Replays of events to a managing entity's webhooks, and counts of such events. Each may read a thousand events
    /// and cause thousands of attempts.
    Replays,
    /// A managing entity's test events.
    Tests,
    /// Deliveries that a managing entity resends.
    Resends,
    /// Dry runs of a managing entity's filters. Each may read a hundred bodies of 256 KiB.
    FilterChecks,
    /// Webhooks whose open deliveries a managing entity lists together. For each webhook, a page reads three parts of
    /// an index.
    OpenLists,
    /// A managing entity's requests that read feeds.
    FeedReads,
    /// Reads of a managing entity's feeds that are waiting because the feed is empty. Each occupies an invocation for
    /// up to ten seconds, and all functions share the account's concurrency. The limit is the maximum number of an
    /// entity's webhooks.
    FeedWaits,
    /// A managing entity's publish requests that are waiting for their turn in a subject's line. Each occupies an
    /// invocation for a few seconds.
    LineWaits,
}

impl Allowance {
    /// The limit as a refused client sees it.
    pub const fn rate_limit(self) -> RateLimit {
        RateLimit { name: self.name(), limit: self.limit(), window: self.window() }
    }

    /// The name, here and on the wire.
    const fn name(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::OwnTokens => "own-tokens",
            Self::SharedTokens => "shared-tokens",
            Self::PanelLinks => "panel-links",
            Self::Recoveries => "recoveries",
            Self::Replays => "replays",
            Self::Tests => "tests",
            Self::Resends => "resends",
            Self::FilterChecks => "filter-checks",
            Self::OpenLists => "open-lists",
            Self::FeedReads => "feed-reads",
            Self::FeedWaits => "feed-waits",
            Self::LineWaits => "line-waits",
        }
    }

    /// The limit per window.
    pub const fn limit(self) -> u32 {
        match self {
            Self::Credentials | Self::SharedTokens => 1000,
            Self::OwnTokens => 50,
            Self::PanelLinks | Self::Tests | Self::FilterChecks => 60,
            Self::Recoveries | Self::Replays => 20,
            Self::Resends => 300,
            // 60 pages for an entity with 200 webhooks.
            Self::OpenLists => 12_000,
            Self::FeedReads => 1_200,
            Self::FeedWaits | Self::LineWaits => 200,
        }
    }

    /// The length of a window, in seconds.
    pub const fn window(self) -> u32 {
        match self {
            Self::FeedWaits | Self::LineWaits => 10,
            Self::Credentials | Self::OwnTokens | Self::SharedTokens | Self::PanelLinks => HOUR,
            Self::Recoveries
            | Self::Replays
            | Self::Tests
            | Self::Resends
            | Self::FilterChecks
            | Self::OpenLists
            | Self::FeedReads => MINUTE,
        }
    }

    /// The beginning of the current window, in seconds, and its end.
    fn window_at(self, now: Time) -> (i64, Time) {
        let window = i64::from(self.window());
        let begun = now.as_seconds() - now.as_seconds() % window;
        (begun, Time::from_millis((begun + window) * 1000))
    }
}

/// The counts of actions in the table.
#[derive(Debug, Clone)]
pub struct Allowances(Table);

impl Allowances {
    /// The counts in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Counts `many` more actions for an account. If that would exceed the limit, counts nothing and returns the
    /// beginning of the next window.
    ///
    /// The count and the action are not in one transaction, since one account's transactions would cancel each other.
    /// So an action that fails later is still counted.
    pub async fn spend(
        &self,
        what: Allowance,
        many: u32,
        account: &str,
        now: Time,
    ) -> Result<Option<Time>, TableError> {
        let (begun, end) = what.window_at(now);
        let key = Key::new(format!("ALLOWANCE#{}#{account}", what.name()), format!("{begun:010}"));
        let count = Change::of(key)
            .set("expiresAt", end.as_seconds() + 1)
            .add("count", many)
            .only_if(absent("count").or(at_most("count", what.limit().saturating_sub(many))));
        Ok(match self.0.write(count, "counting the use of an allowance").await? {
            Written::Done(()) => None,
            Written::Lost(_) => Some(end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_counted_by_the_hour_and_recoveries_by_the_minute() {
        let hour = 1_795_165_200;
        let end = Time::from_millis(1_795_168_800_000);
        for millis in [1_795_165_200_000, 1_795_167_900_123, 1_795_168_799_999] {
            assert_eq!(Allowance::Credentials.window_at(Time::from_millis(millis)), (hour, end));
        }
        assert_eq!(Allowance::Credentials.window_at(end).0, hour + i64::from(HOUR));
        let minute = 1_795_167_900;
        let end = Time::from_millis(1_795_167_960_000);
        for millis in [1_795_167_900_000, 1_795_167_959_999] {
            assert_eq!(Allowance::Recoveries.window_at(Time::from_millis(millis)), (minute, end));
        }
        assert_eq!(Allowance::Recoveries.window_at(end).0, minute + i64::from(MINUTE));
    }

    #[test]
    fn waits_of_one_entity_take_less_than_half_of_an_accounts_invocations() {
        const OF_ACCOUNT: i64 = 1_000;
        const LONGEST_WAIT: i64 = 10;
        let waits = Allowance::FeedWaits;
        // Waits that begin at the end of a window overlap with those of the next.
        let windows = LONGEST_WAIT / i64::from(waits.window()) + 1;
        assert!(windows * i64::from(waits.limit()) < OF_ACCOUNT / 2);
    }
}
