//! The pointer: one small object per edition that names the published release. Pointers are the only mutable objects in
//! the store, since each update uploads its release under a new name.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::edition::EditionName;
use base::{Random, Time, random};

/// The published releases of an edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pointer {
    /// The edition.
    pub edition: EditionName,
    /// The number of earlier changes. It makes each of a pointer's states, and so each of its tags, unique. Waypost
    /// 1.0.0 did not count them.
    #[serde(default)]
    pub changes: u64,
    /// The release that readers use.
    pub current: Release,
    /// The release before the current one, for a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Release>,
    /// The SHA-256 hashes of releases that were rolled back. They are not published again.
    #[serde(default)]
    pub blocked: Vec<String>,
}

/// One database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// The name of its files in the store, without the extension; see [`Release::name`].
    pub name: String,
    /// The SHA-256 of the database, in lower-case hexadecimal.
    pub sha256: String,
    /// When the provider built the database, in seconds since the Unix epoch.
    pub build_epoch: u64,
    /// The build date, to show to people.
    pub build_date: String,
    /// The database's size.
    pub size_bytes: u64,
    /// The number of nodes in its search tree.
    pub node_count: u32,
    /// The type that the database declares.
    pub database_type: String,
    /// When this deployment published the release.
    pub published_date: Time,
    /// The well-known addresses in the database. The next release must also contain them.
    #[serde(default)]
    pub known_addresses: Vec<String>,
    /// The release's origin, used to ask the provider for a newer release.
    pub source: Origin,
    /// The attribution that must be shown with its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<String>,
}

/// A release's origin, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The kind of source in the configuration.
    pub kind: String,
    /// The SHA-256 of the address, since an `ETag` is valid for one address only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_sha256: Option<String>,
    /// The MD5 of the database, if the provider supplies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<String>,
    /// The `ETag` of the served file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified` of the served file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// The provider's date of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The SHA-256 of the served file, compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_sha256: Option<String>,
}

impl Pointer {
    /// The pointer's key in the store.
    pub fn key(environment: &str, edition: &EditionName) -> String {
        format!("{environment}/{edition}/current.json")
    }

    /// The pointer after a move to this release; the current release becomes the previous one.
    pub fn moved_to(before: Option<&Self>, edition: &EditionName, release: Release) -> Self {
        Self {
            edition: edition.clone(),
            changes: before.map_or(0, |pointer| pointer.changes + 1),
            current: release,
            previous: before.map(|pointer| pointer.current.clone()),
            blocked: before.map(|pointer| pointer.blocked.clone()).unwrap_or_default(),
        }
    }

    /// The pointer with the previous release; the current one is blocked. `None` if there is no previous release.
    pub fn rolled_back(mut self) -> Option<Self> {
        let previous = self.previous.take()?;
        let bad = std::mem::replace(&mut self.current, previous);
        self.changes += 1;
        if !self.blocked.contains(&bad.sha256) {
            self.blocked.push(bad.sha256);
        }
        Some(self)
    }

    /// The pointer without this release among the blocked ones, so that it may be published again; `None` if it is not
    /// blocked.
    pub fn unblocked(mut self, sha256: &str) -> Option<Self> {
        let before = self.blocked.len();
        self.blocked.retain(|blocked| blocked != sha256);
        self.changes += 1;
        (self.blocked.len() < before).then_some(self)
    }

    /// Whether a release with this SHA-256 was rolled back.
    pub fn blocks(&self, sha256: &str) -> bool {
        self.blocked.iter().any(|blocked| blocked == sha256)
    }

    /// Whether a file in the edition's folder is obsolete: it is older than the current release, and does not belong to
    /// the previous one.
    ///
    /// No update will publish an obsolete file. The file belongs to an earlier release, or to an update that has died
    /// or has read an earlier pointer and so cannot move this one. An update that has read this pointer uploads under a
    /// later name, even if its clock is slow ([`Release::published_after`]).
    pub fn has_outlived(&self, file: &str) -> bool {
        let name = file.split('.').next().unwrap_or_default();
        let is_named =
            name == self.current.name || self.previous.as_ref().is_some_and(|previous| name == previous.name);
        !is_named && name < self.current.name.as_str()
    }
}

impl Release {
    /// An upload's unique name: the time in milliseconds since 1970, the SHA-256, and random characters, since two
    /// updates may upload a release in the same millisecond. Names sort by time until the year 2286, when the time gets
    /// a 14th digit.
    pub fn name(now: Time, sha256: &str, random: &dyn Random) -> String {
        format!("{}-{sha256}-{}", now.as_millis(), random::alphanumeric(random, 8))
    }

    /// The publication time of a release after this one: now, or a millisecond after this release if the clock is slow.
    pub fn published_after(before: Option<&Self>, now: Time) -> Time {
        before.map_or(now, |before| now.max(before.published_date + Duration::from_millis(1)))
    }

    /// When the database was built, such as `2026-11-17T03:12:07Z`.
    pub fn build_time(&self) -> String {
        build_time(self.build_epoch)
    }

    /// A unique label for people: the build time, and the beginning of the SHA-256. A provider may build two releases
    /// on one day.
    pub fn label(&self) -> String {
        let sha256 = self.sha256.get(..SHOWN_DIGITS).unwrap_or(&self.sha256);
        format!("{} (sha256 {sha256})", self.build_time())
    }

    /// The database's key in the store.
    pub fn key(&self, environment: &str, edition: &EditionName) -> String {
        format!("{environment}/{edition}/{}.mmdb", self.name)
    }

    /// The key of the provider's licence in the store, if the database has one.
    pub fn licence_key(&self, environment: &str, edition: &EditionName) -> String {
        format!("{environment}/{edition}/{}.txt", self.name)
    }
}

/// The number of digits of a SHA-256 in a label.
const SHOWN_DIGITS: usize = 12;

/// The day of a build, such as `2026-11-17`.
pub fn build_date(epoch: u64) -> String {
    let time = build_time(epoch);
    time.split_once('T').map_or(time.clone(), |(day, _)| day.to_owned())
}

/// The time of a build, such as `2026-11-17T03:12:07Z`; `unknown` for a number beyond the year 9999, which verification
/// refuses.
pub fn build_time(epoch: u64) -> String {
    /// The first second of the year 10000.
    const END: i64 = 253_402_300_800;
    let Some(seconds) = i64::try_from(epoch).ok().filter(|seconds| *seconds < END) else {
        return "unknown".to_owned();
    };
    // Builds have a precision of a second.
    Time::from_millis(seconds * 1000).to_string().replace(".000Z", "Z")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn release(name: &str, build_epoch: u64) -> Release {
        Release {
            name: format!("{build_epoch}-{name}"),
            sha256: name.repeat(64 / name.len()),
            build_epoch,
            build_date: build_date(build_epoch),
            size_bytes: 1000,
            node_count: 100,
            database_type: "GeoLite2-City".into(),
            published_date: Time::from_millis(0),
            known_addresses: Vec::new(),
            source: Origin { kind: "url".into(), ..Origin::default() },
            attribution: None,
        }
    }

    fn edition() -> EditionName {
        EditionName::parse("GeoLite2-City").expect("a name")
    }

    #[test]
    fn a_rollback_goes_back_once_and_blocks_the_release_before() {
        let first = Pointer::moved_to(None, &edition(), release("a", 1));
        assert_eq!(first.clone().rolled_back(), None);
        let second = Pointer::moved_to(Some(&first), &edition(), release("b", 2));
        let back = second.rolled_back().expect("there is a previous one");
        assert_eq!((back.current.build_epoch, &back.previous), (1, &None));
        assert!(back.blocks(&"b".repeat(64)) && !back.blocks(&"a".repeat(64)));
        let third = Pointer::moved_to(Some(&back), &edition(), release("c", 3));
        assert!(third.blocks(&"b".repeat(64)), "a blocked release stays blocked");
    }

    /// Otherwise, an update that has read the first of two equal states could move the pointer from the second to a
    /// release that was removed in between.
    #[test]
    fn no_two_states_of_a_pointer_are_equal() {
        let first = Pointer::moved_to(None, &edition(), release("a", 1));
        let second = Pointer::moved_to(Some(&first), &edition(), release("b", 2));
        let back = second.rolled_back().expect("there is a previous one");
        let again = back.unblocked(&"b".repeat(64)).expect("it was blocked");
        assert_eq!((&again.current, &again.previous, &again.blocked), (&first.current, &None, &first.blocked));
        assert_ne!(again, first);
    }

    #[test]
    fn a_release_is_later_than_the_one_before_although_the_clock_is_behind() {
        let before = Release { published_date: Time::from_millis(5_000), ..release("a", 1) };
        let after = |millis| Release::published_after(Some(&before), Time::from_millis(millis)).as_millis();
        assert_eq!([4_000, 5_000, 5_001, 6_000].map(after), [5_001, 5_001, 5_001, 6_000]);
        assert_eq!(Release::published_after(None, Time::from_millis(7)).as_millis(), 7);
    }

    #[test]
    fn an_older_file_that_the_pointer_does_not_name_is_outlived() {
        let first = Pointer::moved_to(None, &edition(), release("a", 1));
        let second = Pointer::moved_to(Some(&first), &edition(), release("b", 2));
        let third = Pointer::moved_to(Some(&second), &edition(), release("c", 3));
        for outlived in ["1-a.mmdb", "1-a.txt", "2-other.mmdb", "2-b2.mmdb", "1-a.mmdb.7-0.unfinished"] {
            assert!(third.has_outlived(outlived), "{outlived}");
        }
        for needed in ["2-b.mmdb", "3-c.mmdb", "3-c.txt", "4-d.mmdb", "4-d.mmdb.7-0.unfinished"] {
            assert!(!third.has_outlived(needed), "{needed}");
        }
        for other in ["current.json", "current.json.lock", "current.json.7-0.unfinished"] {
            assert!(!third.has_outlived(other), "{other}");
        }
        let back = third.rolled_back().expect("there is a previous one");
        assert!(!back.has_outlived("3-c.mmdb"), "the next release removes it");
    }

    #[test]
    fn two_releases_of_one_day_have_different_labels() {
        let morning = release("a", 1_795_140_000);
        let evening = release("b", 1_795_167_900);
        assert_eq!((morning.build_date.as_str(), evening.build_date.as_str()), ("2026-11-20", "2026-11-20"));
        assert_eq!(morning.label(), "2026-11-20T02:00:00Z (sha256 aaaaaaaaaaaa)");
        assert_eq!(evening.label(), "2026-11-20T09:45:00Z (sha256 bbbbbbbbbbbb)");
        assert_eq!(Release { sha256: "short".into(), ..morning }.label(), "2026-11-20T02:00:00Z (sha256 short)");
    }

    #[test]
    fn an_unblocked_release_is_no_longer_blocked_and_the_others_are() {
        let blocked = ["a", "b"].map(|name| name.repeat(64));
        let pointer = Pointer { blocked: blocked.to_vec(), ..Pointer::moved_to(None, &edition(), release("c", 3)) };
        let left = pointer.clone().unblocked(&blocked[0]).expect("it was blocked");
        assert!(!left.blocks(&blocked[0]) && left.blocks(&blocked[1]));
        assert_eq!(left.current, pointer.current);
        assert_eq!(pointer.unblocked(&"c".repeat(64)), None);
    }

    #[test]
    fn a_pointer_is_read_as_it_was_written() {
        let first = Pointer::moved_to(None, &edition(), release("a", 1_795_167_900));
        let pointer = Pointer::moved_to(Some(&first), &edition(), release("b", 1_795_267_900));
        let text = serde_json::to_string(&pointer).expect("JSON");
        assert_eq!(serde_json::from_str::<Pointer>(&text).expect("a pointer"), pointer);
        let value = serde_json::to_value(&first).expect("JSON");
        assert_eq!(value["current"]["buildDate"], "2026-11-20");
        assert!(value.get("previous").is_none());
    }

    #[test]
    fn every_build_has_a_day() {
        assert_eq!(build_date(0), "1970-01-01");
        assert_eq!(build_date(253_402_000_000), "9999-12-28");
        for strange in [253_402_300_800, u64::MAX, i64::MAX as u64] {
            assert_eq!(build_date(strange), "unknown");
        }
    }
}
