//! Limits on guessing: failed attempts to authenticate are counted per minute, both for each client identifier from
//! each address and for each address. After too many failures the address is blocked for a few minutes, even with valid
//! credentials; other addresses are not affected. Attempts are never counted for a client identifier alone, since a
//! stranger could then lock its client out.
//!
//! | item | pk / sk |
//! |---|---|
//! | attempts for one client identifier | `GUESSES#{address}` / hash of the identifier |
//! | attempts for all client identifiers | `GUESSES#{address}` / `*` |
//!
//! Each minute is an attribute, such as `m29919465`. Successful and blocked attempts write nothing.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::Value;

use base::{Environment, FromEnvironment, Time, environment::AtLeastOne};
use problem::RateLimit;
use storage::table::{Change, Delete, Key, Query, Table, TableError};

/// How many minutes count in addition to the current one: a failed attempt counts for five to six minutes.
const MINUTES: i64 = 5;
/// The minutes that count, in seconds.
const WINDOW: u32 = (MINUTES as u32 + 1) * 60;
/// The longest time that a response asks a client to wait. A client that returns too early gets another 429.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a count is kept in the table after its last attempt.
const RETENTION: Duration = Duration::from_secs(60 * 60);
/// How many counts are removed concurrently: an address may have tried many client identifiers.
const REMOVED_AT_ONCE: usize = 16;
/// The sort key of all attempts from an address. It cannot be a hash.
const ALL: &str = "*";

/// The limits of failed attempts in the current minute and the five before it: `TOKEN_GUESSES_PER_CLIENT` and
/// `TOKEN_GUESSES_PER_ADDRESS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuessSettings {
    /// For one client identifier from one address.
    pub per_client: u32,
    /// From one address, for all client identifiers together.
    pub per_address: u32,
}

impl Default for GuessSettings {
    fn default() -> Self {
        Self { per_client: 100, per_address: 1000 }
    }
}

/// The failed attempts in the table.
#[derive(Debug, Clone)]
pub struct Guesses {
    table: Table,
    limits: GuessSettings,
}

/// The failed attempts that apply to one request.
#[derive(Debug, Clone)]
pub struct Tally {
    limits: GuessSettings,
    pk: String,
    client: String,
    for_client: Attempts,
    from_address: Attempts,
}

/// The limit that blocks a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// The limit.
    pub limit: RateLimit,
    /// How long every attempt is refused.
    pub wait: Duration,
}

/// An item of failed attempts, by its sort key.
#[derive(Debug, Deserialize)]
struct Counted {
    sk: String,
}

/// Failed attempts, by the minute since the epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "HashMap<String, Value>")]
struct Attempts(BTreeMap<i64, u64>);

impl From<HashMap<String, Value>> for Attempts {
    fn from(item: HashMap<String, Value>) -> Self {
        let minute = |(name, count): (&String, &Value)| Some((name.strip_prefix('m')?.parse().ok()?, count.as_u64()?));
        Self(item.iter().filter_map(minute).collect())
    }
}

impl Attempts {
    /// The number of attempts that count in this minute.
    fn at(&self, minute: i64) -> u64 {
        self.0.range(minute - MINUTES..).map(|(_, count)| count).sum()
    }

    /// The minutes that will never count again.
    fn stale(&self, minute: i64) -> impl Iterator<Item = i64> {
        self.0.range(..minute - MINUTES).map(|(minute, _)| *minute)
    }

    /// The time until fewer than `limit` attempts count; zero if fewer count now.
    fn wait(&self, limit: u32, now: Time) -> Duration {
        let minute = minute_of(now);
        let free = (minute..=minute + MINUTES)
            .find(|later| self.at(*later) < u64::from(limit))
            .unwrap_or(minute + MINUTES + 1);
        Time::from_millis(free * 60_000).since(now)
    }
}

fn minute_of(time: Time) -> i64 {
    time.as_seconds().div_euclid(60)
}

impl Tally {
    /// The limit that blocks this client identifier from this address for longer; `None` while the attempts are below
    /// the limits.
    pub fn blocked(&self, now: Time) -> Option<Blocked> {
        let blocked = |name, attempts: &Attempts, limit| {
            let wait = attempts.wait(limit, now).min(LONGEST_WAIT);
            Blocked { limit: RateLimit { name, limit, window: WINDOW }, wait }
        };
        let by_address = blocked("failed-authentications-of-address", &self.from_address, self.limits.per_address);
        let by_client = blocked("failed-authentications-of-client", &self.for_client, self.limits.per_client);
        [by_address, by_client].into_iter().max_by_key(|blocked| blocked.wait).filter(|blocked| !blocked.wait.is_zero())
    }

    /// Whether more attempts than the limit were counted, which can happen if many requests arrive at once.
    pub fn exceeded(&self, now: Time) -> bool {
        let minute = minute_of(now);
        let over = |attempts: &Attempts, limit| attempts.at(minute) > u64::from(limit);
        over(&self.for_client, self.limits.per_client) || over(&self.from_address, self.limits.per_address)
    }
}

impl Guesses {
    /// Creates the store of counts in this table, with these limits.
    pub fn new(table: Table, limits: GuessSettings) -> Self {
        Self { table, limits }
    }

    /// The failed attempts so far, for this client identifier and from this address.
    pub async fn tally(&self, source: Option<IpAddr>, client_id: &str) -> Result<Tally, TableError> {
        const DOING: &str = "reading failed attempts";
        let pk = partition(source);
        let client = hashed(client_id);
        let (for_client, from_address) = tokio::join!(
            self.table.read::<Attempts>((pk.clone(), client.clone()), DOING),
            self.table.read::<Attempts>((pk.clone(), ALL.to_owned()), DOING),
        );
        let for_client = for_client?.unwrap_or_default();
        let from_address = from_address?.unwrap_or_default();
        Ok(Tally { limits: self.limits, pk, client, for_client, from_address })
    }

    /// Counts a failed attempt and returns the new counts.
    ///
    /// # Errors
    /// If the attempt could not be counted. The caller must then not reveal its result; otherwise, guessing would be
    /// unlimited while the table is unreachable.
    pub async fn count(&self, tally: &Tally, now: Time) -> Result<Tally, TableError> {
        let (for_client, from_address) = tokio::join!(
            self.add(&tally.pk, &tally.client, &tally.for_client, now),
            self.add(&tally.pk, ALL, &tally.from_address, now),
        );
        Ok(Tally { for_client: for_client?, from_address: from_address?, ..tally.clone() })
    }

    /// Removes the failed attempts from an address for one client identifier or, by default, for all. If only one is
    /// removed, the attempts from the address as a whole still count. Returns the number of client identifiers that had
    /// failed attempts.
    pub async fn forget(&self, source: IpAddr, client_id: Option<&str>) -> Result<usize, TableError> {
        const DOING: &str = "forgetting failed attempts";
        let pk = partition(Some(source));
        let counted: Vec<Counted> = self.table.all(Query::partition(pk.as_str()).attributes(&["sk"]), DOING).await?;
        let client = client_id.map(hashed);
        let wanted: Vec<_> =
            counted.into_iter().filter(|one| client.as_ref().is_none_or(|client| one.sk == *client)).collect();
        let removals = wanted.iter().map(|one| self.table.write(Delete::of(Key::new(&*pk, &*one.sk)), DOING));
        stream::iter(removals).buffer_unordered(REMOVED_AT_ONCE).try_for_each(async |_| Ok(())).await?;
        Ok(wanted.iter().filter(|one| one.sk != ALL).count())
    }

    async fn add(&self, pk: &str, sk: &str, known: &Attempts, now: Time) -> Result<Attempts, TableError> {
        let minute = minute_of(now);
        let change = Change::of(Key::new(pk, sk))
            .set("expiresAt", (now + RETENTION).as_seconds())
            .add(format!("m{minute}"), 1_u32);
        let change = known.stale(minute).fold(change, |change, minute| change.remove(format!("m{minute}")));
        let counted = self.table.write_and_read(change, "counting a failed attempt").await?;
        counted.done().ok_or(TableError::Missing("the count of failed attempts"))
    }
}

/// The partition of an address. An IPv6 client has a whole network of addresses (RFC 6177), which are counted together.
fn partition(source: Option<IpAddr>) -> String {
    match source.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => format!("GUESSES#{address}"),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("GUESSES#{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        None => "GUESSES#unknown".to_owned(),
    }
}

/// A client identifier's hash. People send their secret instead by mistake, and strangers send anything, so it must
/// neither be readable in the table nor exceed a key's length.
fn hashed(client_id: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, client_id.as_bytes()))
}

impl FromEnvironment for GuessSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let default = Self::default();
        let per_client = environment.parsed("TOKEN_GUESSES_PER_CLIENT", AtLeastOne(default.per_client));
        let per_address = environment.parsed("TOKEN_GUESSES_PER_ADDRESS", AtLeastOne(default.per_address));
        Some(Self { per_client: per_client?.0, per_address: per_address?.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 30 s after the start of a minute.
    const NOW: Time = Time::from_millis(1_795_167_930_000);
    const MINUTE: i64 = 1_795_167_900 / 60;

    fn attempts(counts: &[(i64, u64)]) -> Attempts {
        Attempts(counts.iter().map(|(ago, count)| (MINUTE - ago, *count)).collect())
    }

    fn tally(for_client: Attempts, from_address: Attempts) -> Tally {
        let limits = GuessSettings { per_client: 3, per_address: 5 };
        Tally { limits, pk: String::new(), client: String::new(), for_client, from_address }
    }

    #[test]
    fn the_current_minute_and_the_five_before_it_count() {
        assert_eq!(attempts(&[(0, 1), (5, 2), (6, 4)]).at(MINUTE), 3);
        assert_eq!(
            attempts(&[(0, 1), (5, 2), (6, 4), (90, 1)]).stale(MINUTE).collect::<Vec<_>>(),
            [MINUTE - 90, MINUTE - 6]
        );
        assert_eq!(attempts(&[(-1, 2)]).at(MINUTE), 2, "the clock of another machine may be ahead");
    }

    #[test]
    fn at_the_limit_every_attempt_is_blocked_until_enough_expire() {
        let none = Attempts::default;
        assert_eq!(tally(none(), none()).blocked(NOW), None);
        assert_eq!(tally(attempts(&[(0, 2)]), attempts(&[(0, 4)])).blocked(NOW), None);
        let blocked = |for_client, from_address| {
            tally(for_client, from_address).blocked(NOW).map(|Blocked { limit, wait }| (limit.name, wait))
        };
        let by_client = |wait| Some(("failed-authentications-of-client", wait));
        let by_address = |wait| Some(("failed-authentications-of-address", wait));
        // The two attempts from five minutes ago stop counting when this minute ends.
        assert_eq!(blocked(attempts(&[(0, 2), (5, 2)]), none()), by_client(Duration::from_secs(30)));
        assert_eq!(blocked(attempts(&[(4, 3)]), none()), by_client(LONGEST_WAIT));
        let of_several = attempts(&[(0, 3), (5, 3)]);
        assert_eq!(blocked(attempts(&[(0, 1)]), of_several), by_address(Duration::from_secs(30)));
        assert_eq!(blocked(attempts(&[(0, 9)]), none()), by_client(LONGEST_WAIT));
    }

    #[test]
    fn attempts_exceed_the_limit_only_when_many_arrive_at_once() {
        assert!(!tally(attempts(&[(0, 3)]), attempts(&[(0, 5)])).exceeded(NOW));
        assert!(tally(attempts(&[(0, 4)]), Attempts::default()).exceeded(NOW));
        assert!(tally(Attempts::default(), attempts(&[(1, 6)])).exceeded(NOW));
    }

    #[test]
    fn an_item_is_read_by_its_minutes() {
        let item = json!({ "pk": "GUESSES#192.0.2.1", "sk": "*", "expiresAt": 7, "m29919465": 2, "mx": 3 });
        let read: Attempts = serde_json::from_value(item).expect("an item");
        assert_eq!(read, Attempts(BTreeMap::from([(29_919_465, 2)])));
    }

    #[test]
    fn addresses_of_one_client_count_together() {
        let of = |address: &str| partition(address.parse().ok());
        assert_eq!(of("192.0.2.1"), "GUESSES#192.0.2.1");
        assert_eq!(of("::ffff:192.0.2.1"), "GUESSES#192.0.2.1");
        assert_eq!(of("2001:db8:0:7::1"), "GUESSES#2001:db8:0:7::/64");
        assert_eq!(of("2001:db8:0:7:ffff::2"), of("2001:db8:0:7::1"));
        assert_ne!(of("2001:db8:0:8::1"), of("2001:db8:0:7::1"));
    }

    #[test]
    fn no_client_identifier_has_the_key_of_the_whole_address() {
        for id in ["*", "", &"x".repeat(5000)] {
            assert_eq!(hashed(id).len(), 43);
        }
        assert_ne!(hashed("a"), hashed("b"));
    }

    use base::environment::read_from;
    #[test]
    fn guessing_is_limited_as_the_contract_says_by_default() {
        let settings = read_from::<GuessSettings>(|_| None).expect("defaults");
        assert_eq!(settings, GuessSettings { per_client: 100, per_address: 1000 });
        let error = read_from::<GuessSettings>(|_| Some("0".into())).expect_err("refused").0;
        let about = |number: usize, name: &str| error[number].starts_with(name);
        assert!(about(0, "TOKEN_GUESSES_PER_CLIENT") && about(1, "TOKEN_GUESSES_PER_ADDRESS"), "{error:?}");
    }
}
