//! A write to a webhook that is there: what it sets, and what must still be as it was read. Whatever is not named stays, so
//! that writes at once never undo each other.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    endpoint::{Kept, Part},
    masked::Headers,
    members::Members,
    secret::SealedSecret,
    webhook::Webhook,
};
use base::clock::Time;
use storage::table::{TableError, number, text, write_value};

/// The change of an endpoint; a part that is absent stays as it is.
#[derive(Default)]
pub struct EndpointChange {
    /// Its URL.
    pub url: Option<PartChange<String>>,
    /// Its headers.
    pub headers: Option<PartChange<Headers>>,
}

/// What a change makes of a part of an endpoint.
pub struct PartChange<T> {
    /// The part from then on.
    pub kept: Kept<T>,
    /// Whether it is another than it was.
    pub differs: bool,
    /// What it was made of, which must still be there then.
    pub made_of: Option<Kept<T>>,
}

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
    pub fn change(
        read: &Webhook,
        members: &Members,
        endpoint: &EndpointChange,
        of_version: bool,
        now: Time,
    ) -> Result<Self, TableError> {
        const DOING: &str = "changing a webhook";
        let Members { name, enabled, event_list, .. } = members;
        let given = [
            ("name", name.as_ref().map(text)),
            ("enabled", enabled.map(AttributeValue::Bool)),
            ("eventList", event_list.as_ref().map(|list| write_value(list, DOING)).transpose()?),
        ];
        let mut writes = Writes::default();
        writes.set.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        writes.set.push(("lastUpdate", text(now)));
        writes.expected.push(("enabled", Some(AttributeValue::Bool(read.enabled))));
        if of_version {
            writes.expected.push(("version", Some(number(read.version))));
        }
        // Why the service disabled it is of no interest once its owner has enabled it.
        writes.remove.extend((*enabled == Some(true)).then_some("disabledReason"));
        writes.part(["eventUrl", "sealedEventUrl"], endpoint.url.as_ref(), DOING)?;
        writes.part(["headers", "sealedHeaders"], endpoint.headers.as_ref(), DOING)?;
        Ok(Self::new(writes, true))
    }

    /// Other signing secrets in the place of those that were read. Without a new version: that guards what a change sets,
    /// and an owner who replaces a secret has not made anybody's change one of something else.
    pub fn secrets(read: &[SealedSecret], now_on: &[SealedSecret], now: Time) -> Result<Self, TableError> {
        const DOING: &str = "replacing a signing secret";
        let writes = Writes {
            set: vec![("signingSecrets", write_value(&now_on, DOING)?), ("lastUpdate", text(now))],
            remove: Vec::new(),
            expected: vec![("signingSecrets", Some(write_value(&read, DOING)?))],
        };
        Ok(Self::new(writes, false))
    }

    fn new(Writes { set, remove, expected }: Writes, counts: bool) -> Self {
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
            let Some(value) = value else {
                conditions.push(format!("attribute_not_exists({})", named(name)));
                continue;
            };
            conditions.push(format!("{} = :read_{name}", named(name)));
            values.insert(format!(":read_{name}"), value);
        }
        let removes: Vec<_> = remove.iter().map(|name| named(name)).collect();
        let removes = if removes.is_empty() { String::new() } else { format!(" REMOVE {}", removes.join(", ")) };
        Self { update: format!("SET {}{removes}", sets.join(", ")), condition: conditions.join(" AND "), names, values }
    }
}

/// The attributes of a webhook that a change writes.
#[derive(Debug, Default)]
struct Writes {
    set: Vec<(&'static str, AttributeValue)>,
    remove: Vec<&'static str>,
    /// What must be there as it was read; or must be absent.
    expected: Vec<(&'static str, Option<AttributeValue>)>,
}

impl Writes {
    /// A part of the endpoint, which is two attributes: the shown text and the sealed one.
    fn part<T: Part>(
        &mut self,
        [shown, sealed]: [&'static str; 2],
        change: Option<&PartChange<T>>,
        doing: &'static str,
    ) -> Result<(), TableError> {
        let Some(PartChange { kept, made_of, .. }) = change else { return Ok(()) };
        self.set.push((shown, write_value(&kept.shown, doing)?));
        match &kept.sealed {
            Some(value) => self.set.push((sealed, text(value))),
            None => self.remove.push(sealed),
        }
        if let Some(read) = made_of {
            self.expected.push((shown, Some(write_value(&read.shown, doing)?)));
            self.expected.push((sealed, read.sealed.as_ref().map(text)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::webhook::tests::webhook;

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn part<T>(shown: T, sealed: Option<&str>) -> Kept<T> {
        Kept { shown, sealed: sealed.map(str::to_owned) }
    }

    fn change(members: Members, of_version: bool) -> Revision {
        Revision::change(&webhook(), &members, &EndpointChange::default(), of_version, NOW).expect("written")
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
    fn what_is_shown_and_what_is_sealed_are_written_together_and_of_what_was_read_only_if_it_is_still_there() {
        let (url, headers) = ("https://example.com/?a=***".to_owned(), Headers::new());
        let endpoint = EndpointChange {
            url: Some(PartChange {
                kept: part(url.clone(), Some("k.new")),
                differs: true,
                made_of: Some(part(url, Some("k.old"))),
            }),
            headers: Some(PartChange { kept: part(headers, None), differs: true, made_of: None }),
        };
        let change = Revision::change(&webhook(), &Members::default(), &endpoint, false, NOW).expect("written");
        assert_eq!(
            change.update,
            "SET #lastUpdate = :lastUpdate, #eventUrl = :eventUrl, #sealedEventUrl = :sealedEventUrl, \
             #headers = :headers, #version = #version + :one REMOVE #sealedHeaders"
        );
        assert_eq!(
            change.condition,
            "#enabled = :read_enabled AND #eventUrl = :read_eventUrl AND #sealedEventUrl = :read_sealedEventUrl"
        );
        assert_eq!(change.values[":read_sealedEventUrl"], text("k.old"));
    }

    #[test]
    fn values_that_a_former_release_kept_are_sealed_only_if_nothing_is_sealed_there_yet() {
        let bare = part("https://example.com/?a=1".to_owned(), None);
        let kept = part("https://example.com/?a=***".to_owned(), Some("k.new"));
        let url = PartChange { kept, differs: false, made_of: Some(bare) };
        let endpoint = EndpointChange { url: Some(url), headers: None };
        let change = Revision::change(&webhook(), &Members::default(), &endpoint, false, NOW).expect("written");
        assert!(change.condition.ends_with(" AND attribute_not_exists(#sealedEventUrl)"), "{}", change.condition);
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
