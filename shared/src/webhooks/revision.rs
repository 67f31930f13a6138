//! A write to a webhook that is there: what it sets, and what must still be as it was read. Whatever is not named stays, so
//! that writes at once never undo each other.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{Webhook, members::Members, secret::SealedSecret};
use crate::{
    clock::Time,
    table::{TableError, number, text, write_value},
};

/// The write, as DynamoDB is told it. Names of attributes stand for themselves, since some are words of its language.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// What becomes of the attributes.
    pub update: String,
    /// What must hold.
    pub condition: String,
    /// The attributes that are named in both.
    pub names: HashMap<String, String>,
    /// The values in both.
    pub values: HashMap<String, AttributeValue>,
}

impl Revision {
    /// What its owner wants. On condition of the version that was read when the owner named one; else only of what the change
    /// itself depends on, so that of many at once each is made, one after the other.
    pub fn change(read: &Webhook, members: &Members, of_version: bool, now: Time) -> Result<Self, TableError> {
        const DOING: &str = "changing a webhook";
        let Members { name, enabled, event_url, event_list, headers } = members;
        let given = [
            ("name", name.as_ref().map(text)),
            ("enabled", enabled.map(AttributeValue::Bool)),
            ("eventUrl", event_url.as_ref().map(text)),
            ("eventList", event_list.as_ref().map(|list| write_value(list, DOING)).transpose()?),
            ("headers", headers.as_ref().map(|headers| write_value(headers, DOING)).transpose()?),
        ];
        let set = given.into_iter().filter_map(|(name, value)| Some((name, value?))).chain([("lastUpdate", text(now))]);
        let mut expected = vec![("enabled", AttributeValue::Bool(read.enabled))];
        if of_version {
            expected.push(("version", number(read.version)));
        }
        // Why the service disabled it is of no interest once its owner has enabled it.
        let remove: &[_] = if *enabled == Some(true) { &["disabledReason"] } else { &[] };
        Ok(Self::new(set, remove, expected, true))
    }

    /// Other signing secrets in the place of those that were read. Without a new version: that guards what a change sets,
    /// and an owner who replaces a secret has not made anybody's change one of something else.
    pub fn secrets(read: &[SealedSecret], now_on: &[SealedSecret], now: Time) -> Result<Self, TableError> {
        const DOING: &str = "replacing a signing secret";
        let set = [("signingSecrets", write_value(&now_on, DOING)?), ("lastUpdate", text(now))];
        Ok(Self::new(set, &[], [("signingSecrets", write_value(&read, DOING)?)], false))
    }

    fn new(
        set: impl IntoIterator<Item = (&'static str, AttributeValue)>,
        remove: &[&'static str],
        expected: impl IntoIterator<Item = (&'static str, AttributeValue)>,
        counts: bool,
    ) -> Self {
        let (mut names, mut values) = (HashMap::new(), HashMap::new());
        let mut named = |name: &str| {
            names.insert(format!("#{name}"), name.to_owned());
            format!("#{name}")
        };
        let mut sets = Vec::new();
        for (name, value) in set {
            sets.push(format!("{} = :{name}", named(name)));
            values.insert(format!(":{name}"), value);
        }
        if counts {
            sets.push(format!("{0} = {0} + :one", named("version")));
            values.insert(":one".to_owned(), number(1));
        }
        let mut conditions = Vec::new();
        for (name, value) in expected {
            conditions.push(format!("{} = :read_{name}", named(name)));
            values.insert(format!(":read_{name}"), value);
        }
        let removes: Vec<_> = remove.iter().map(|name| named(name)).collect();
        let removes = if removes.is_empty() { String::new() } else { format!(" REMOVE {}", removes.join(", ")) };
        Self { update: format!("SET {}{removes}", sets.join(", ")), condition: conditions.join(" AND "), names, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::webhook::tests::webhook;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn change(members: Members, of_version: bool) -> Revision {
        Revision::change(&webhook(), &members, of_version, NOW).expect("written")
    }

    #[test]
    fn only_what_is_given_is_set_and_every_change_counts() {
        let change = change(Members { name: Some("m".into()), ..Members::default() }, false);
        assert_eq!(change.update, "SET #name = :name, #lastUpdate = :lastUpdate, #version = #version + :one");
        assert_eq!(change.condition, "#enabled = :read_enabled");
        assert_eq!(change.values[":name"], text("m"));
        assert_eq!(change.values[":read_enabled"], AttributeValue::Bool(false));
        assert_eq!(change.names.len(), 4);
    }

    #[test]
    fn a_change_of_a_version_is_made_of_no_other() {
        let change = change(Members { event_list: Some(Vec::new()), ..Members::default() }, true);
        assert_eq!(change.condition, "#enabled = :read_enabled AND #version = :read_version");
        assert_eq!(change.values[":read_version"], number(7));
        assert_eq!(change.values[":eventList"], AttributeValue::L(Vec::new()));
    }

    #[test]
    fn enabling_takes_the_reason_away_and_nothing_else_does() {
        let enabling = change(Members { enabled: Some(true), ..Members::default() }, false);
        assert!(enabling.update.ends_with(" REMOVE #disabledReason"));
        let disabling = change(Members { enabled: Some(false), ..Members::default() }, false);
        assert!(!disabling.update.contains("REMOVE"));
    }

    #[test]
    fn secrets_are_replaced_on_condition_of_those_that_were_read_and_leave_the_version_alone() {
        let secret = |sealed: &str| SealedSecret { sealed: sealed.into(), expires_date: None };
        let revision = Revision::secrets(&[secret("a")], &[secret("b"), secret("a")], NOW).expect("written");
        assert_eq!(revision.update, "SET #signingSecrets = :signingSecrets, #lastUpdate = :lastUpdate");
        assert_eq!(revision.condition, "#signingSecrets = :read_signingSecrets");
        assert!(!revision.names.contains_key("#version"));
    }
}
