//! A write to a webhook that exists: the attributes that it sets, and those that must still be as
//! they were read. Attributes that it does not name stay, so that writes at once never undo each
//! other.

use super::{
    endpoint::{Kept, Part},
    masked::Headers,
    members::Members,
    secret::SealedSecret,
    webhook::Webhook,
};
use base::clock::Time;
use storage::table::{Change, Condition, Key, TableError, Value, absent, is};

/// The change of an endpoint; a part that is absent stays as it is.
#[derive(Default)]
pub struct EndpointChange {
    /// Its URL.
    pub url: Option<PartChange<String>>,
    /// Its headers.
    pub headers: Option<PartChange<Headers>>,
}

/// The change of a part of an endpoint.
pub struct PartChange<T> {
    /// The part from then on.
    pub kept: Kept<T>,
    /// Whether it is another than it was.
    pub differs: bool,
    /// The part that it was made of, which must still be there then.
    pub made_of: Option<Kept<T>>,
}

/// The write.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Revision {
    set: Vec<(&'static str, Value)>,
    removed: Vec<&'static str>,
    conditions: Vec<Condition>,
    is_new_version: bool,
}

impl Revision {
    /// A change that the owner wants. Where the owner named the version that was read, it is the
    /// condition; otherwise the conditions are only what the change itself depends on, so that of
    /// many changes at once each is made.
    pub fn change(
        read: &Webhook,
        members: &Members,
        endpoint: &EndpointChange,
        of_version: bool,
        now: Time,
    ) -> Result<Self, TableError> {
        const DOING: &str = "changing a webhook";
        let Members { name, enabled, event_list, .. } = members;
        let mut revision = Self { is_new_version: true, ..Self::default() };
        revision.set.extend(name.as_ref().map(|name| ("name", name.as_str().into())));
        revision.set.extend(enabled.map(|enabled| ("enabled", enabled.into())));
        if let Some(list) = event_list {
            revision.set.push(("eventList", Value::of(list, DOING)?));
        }
        revision.set.push(("lastUpdate", now.into()));
        revision.conditions.push(is("enabled", read.enabled));
        if of_version {
            revision.conditions.push(is("version", read.version));
        }
        // The reason of the service is obsolete once the owner has enabled the webhook.
        revision.removed.extend((*enabled == Some(true)).then_some("disabledReason"));
        revision.part(["eventUrl", "sealedEventUrl"], endpoint.url.as_ref(), DOING)?;
        revision.part(["headers", "sealedHeaders"], endpoint.headers.as_ref(), DOING)?;
        Ok(revision)
    }

    /// Other signing secrets in the place of those that were read. The version stays: it guards
    /// what a change sets, and a new secret makes no change obsolete.
    pub fn secrets(read: &[SealedSecret], now_on: &[SealedSecret], now: Time) -> Result<Self, TableError> {
        const DOING: &str = "replacing a signing secret";
        Ok(Self {
            set: vec![("signingSecrets", Value::of(&now_on, DOING)?), ("lastUpdate", now.into())],
            conditions: vec![is("signingSecrets", Value::of(&read, DOING)?)],
            ..Self::default()
        })
    }

    /// Adds a part of the endpoint, which is two attributes: the shown text and the sealed one.
    fn part<T: Part>(
        &mut self,
        [shown, sealed]: [&'static str; 2],
        change: Option<&PartChange<T>>,
        doing: &'static str,
    ) -> Result<(), TableError> {
        let Some(PartChange { kept, made_of, .. }) = change else { return Ok(()) };
        self.set.push((shown, Value::of(&kept.shown, doing)?));
        match &kept.sealed {
            Some(value) => self.set.push((sealed, value.as_str().into())),
            None => self.removed.push(sealed),
        }
        if let Some(read) = made_of {
            self.conditions.push(is(shown, Value::of(&read.shown, doing)?));
            self.conditions.push(match &read.sealed {
                Some(value) => is(sealed, value.as_str()),
                None => absent(sealed),
            });
        }
        Ok(())
    }

    /// The write to the webhook with this key.
    pub fn at(self, key: impl Into<Key>) -> Change {
        let change = Change::of(key);
        let change = self.set.into_iter().fold(change, |change, (name, value)| change.set(name, value));
        let change = self.removed.into_iter().fold(change, |change, name| change.remove(name));
        let change = if self.is_new_version { change.add("version", 1_u32) } else { change };
        self.conditions.into_iter().fold(change, Change::only_if)
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

    fn key() -> Key {
        Key::new("ENT#demo-hotel", "WHK#1")
    }

    fn change(members: Members, of_version: bool) -> Change {
        let revision = Revision::change(&webhook(), &members, &EndpointChange::default(), of_version, NOW);
        revision.expect("written").at(key())
    }

    fn change_of(endpoint: &EndpointChange) -> Change {
        Revision::change(&webhook(), &Members::default(), endpoint, false, NOW).expect("written").at(key())
    }

    #[test]
    fn only_what_is_given_is_set_and_every_change_counts() {
        let expected = Change::of(key()).set("name", "m").set("lastUpdate", NOW).add("version", 1_u32);
        let change = change(Members { name: Some("m".into()), ..Members::default() }, false);
        assert_eq!(change, expected.only_if(is("enabled", false)));
    }

    #[test]
    fn a_change_of_a_version_is_made_of_no_other() {
        let nothing = Value::of(&Vec::<String>::new(), "").expect("a list");
        let expected = Change::of(key()).set("eventList", nothing).set("lastUpdate", NOW).add("version", 1_u32);
        let change = change(Members { event_list: Some(Vec::new()), ..Members::default() }, true);
        assert_eq!(change, expected.only_if(is("enabled", false)).only_if(is("version", 7_u64)));
    }

    #[test]
    fn what_is_shown_and_what_is_sealed_are_written_together_and_of_what_was_read_only_if_it_is_still_there() {
        let (url, headers) = ("https://example.com/?a=***", Headers::new());
        let endpoint = EndpointChange {
            url: Some(PartChange {
                kept: part(url.to_owned(), Some("k.new")),
                differs: true,
                made_of: Some(part(url.to_owned(), Some("k.old"))),
            }),
            headers: Some(PartChange { kept: part(headers.clone(), None), differs: true, made_of: None }),
        };
        let expected = Change::of(key())
            .set("lastUpdate", NOW)
            .set("eventUrl", url)
            .set("sealedEventUrl", "k.new")
            .set("headers", Value::of(&headers, "").expect("a map"))
            .remove("sealedHeaders")
            .add("version", 1_u32)
            .only_if(is("enabled", false))
            .only_if(is("eventUrl", url))
            .only_if(is("sealedEventUrl", "k.old"));
        assert_eq!(change_of(&endpoint), expected);
    }

    #[test]
    fn values_that_a_former_release_kept_are_sealed_only_if_nothing_is_sealed_there_yet() {
        let bare = "https://example.com/?a=1";
        let kept = part("https://example.com/?a=***".to_owned(), Some("k.new"));
        let url = PartChange { kept, differs: false, made_of: Some(part(bare.to_owned(), None)) };
        let expected = Change::of(key())
            .set("lastUpdate", NOW)
            .set("eventUrl", "https://example.com/?a=***")
            .set("sealedEventUrl", "k.new")
            .add("version", 1_u32)
            .only_if(is("enabled", false))
            .only_if(is("eventUrl", bare))
            .only_if(absent("sealedEventUrl"));
        assert_eq!(change_of(&EndpointChange { url: Some(url), headers: None }), expected);
    }

    #[test]
    fn enabling_takes_the_reason_away_and_nothing_else_does() {
        let set = |enabled: bool| Change::of(key()).set("enabled", enabled).set("lastUpdate", NOW);
        let enabling = set(true).remove("disabledReason").add("version", 1_u32).only_if(is("enabled", false));
        assert_eq!(change(Members { enabled: Some(true), ..Members::default() }, false), enabling);
        let disabling = set(false).add("version", 1_u32).only_if(is("enabled", false));
        assert_eq!(change(Members { enabled: Some(false), ..Members::default() }, false), disabling);
    }

    #[test]
    fn secrets_are_replaced_on_condition_of_those_that_were_read_and_leave_the_version_alone() {
        let secret = |sealed: &str| SealedSecret { sealed: sealed.into(), expires_date: None };
        let (read, now_on) = ([secret("a")], [secret("b"), secret("a")]);
        let list = |secrets: &[SealedSecret]| Value::of(&secrets, "").expect("a list");
        let expected = Change::of(key()).set("signingSecrets", list(&now_on)).set("lastUpdate", NOW);
        let revision = Revision::secrets(&read, &now_on, NOW).expect("written");
        assert_eq!(revision.at(key()), expected.only_if(is("signingSecrets", list(&read))));
    }
}
