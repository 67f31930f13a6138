//! How often an action may be done in an hour, counted in the table by the kind of action and the
//! account.
//!
//! | item | pk / sk |
//! |---|---|
//! | count of actions in an hour | `ALLOWANCE#{what}#{account}` / the beginning of the hour, in seconds |

use crate::table::{Change, Key, Table, TableError, Written, absent, at_most};
use base::Time;

/// The hour in which actions are counted, in seconds.
const WINDOW: i64 = 60 * 60;

/// The kinds of action that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// Applications, secrets and keys that are made for a managing entity. Each of them is an entry
    /// in the list of revocations when it is removed, and removing is never refused, so that making
    /// is limited instead.
    Credentials,
    /// An application's tokens that stand in the list of revocations one by one. No other
    /// application spends it.
    OwnTokens,
    /// The same beyond each application's own allowance, for all applications of an owner together.
    SharedTokens,
    /// Links into the panel that are made for a managing entity. One answer lists those that are good, and the end of each may
    /// be an entry in the list of revocations.
    PanelLinks,
}

impl Allowance {
    fn name(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::OwnTokens => "own-tokens",
            Self::SharedTokens => "shared-tokens",
            Self::PanelLinks => "panel-links",
        }
    }

    /// How many there may be in an hour.
    pub const fn limit(self) -> u32 {
        match self {
            Self::Credentials | Self::SharedTokens => 1000,
            Self::OwnTokens => 50,
            Self::PanelLinks => 60,
        }
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

    /// Counts `many` more actions on an account. When the allowance has less left, nothing is
    /// counted, and the result is the time of the next allowance.
    ///
    /// The count is not in one transaction with the action, since transactions of one account would
    /// cancel each other. An action that fails after it was counted stays counted.
    pub async fn spend(
        &self,
        what: Allowance,
        many: u32,
        account: &str,
        now: Time,
    ) -> Result<Option<Time>, TableError> {
        let (begun, end) = window(now);
        let key = Key::new(format!("ALLOWANCE#{}#{account}", what.name()), format!("{begun:010}"));
        let count = Change::of(key)
            .set("expiresAt", end.as_seconds() + 1)
            .add("count", many)
            .only_if(absent("count").or(at_most("count", what.limit().saturating_sub(many))));
        Ok(match self.0.write(count, "counting what an allowance is spent on").await? {
            Written::Done(()) => None,
            Written::Lost(_) => Some(end),
        })
    }
}

/// When the hour of this moment began, in seconds, and when it ends.
fn window(now: Time) -> (i64, Time) {
    let begun = now.as_seconds() - now.as_seconds() % WINDOW;
    (begun, Time::from_millis((begun + WINDOW) * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted_by_the_hour() {
        let (hour, end) = (1_795_165_200, Time::from_millis(1_795_168_800_000));
        for millis in [1_795_165_200_000, 1_795_167_900_123, 1_795_168_799_999] {
            assert_eq!(window(Time::from_millis(millis)), (hour, end));
        }
        assert_eq!(window(end).0, hour + WINDOW);
    }
}
