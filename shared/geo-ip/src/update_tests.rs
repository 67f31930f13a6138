//! Updates into a folder, from a provider on this machine.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use futures::future::join_all;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    Configuration, hash,
    reader::{DatabaseReader, ReaderError},
    rollback::{RollbackError, roll_back},
    store::FolderStore,
    testing::{Answering, DatabaseBuilder, Server},
};
use base::{Clock, SystemRandom, Time, logging, testing::FixedClock};
use outbound::AddressRules;

const NOW: i64 = 1_795_167_900; // 2026-11-20
const DAY: i64 = 24 * 60 * 60;
/// More time than an update needs on any machine.
const ENOUGH: Duration = Duration::from_secs(3_600);

/// A database that was built this many days before `NOW`.
fn database(days_ago: i64) -> Vec<u8> {
    database_with(days_ago, 40)
}

fn database_with(days_ago: i64, networks: u32) -> Vec<u8> {
    let epoch = (NOW - days_ago * DAY) as u64;
    DatabaseBuilder::new("GeoLite2-City", epoch)
        .with_many(networks)
        .with("1.1.1.0/24", json!({"days": days_ago}))
        .build()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::Write::write_all(&mut encoder, content).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn tar_gz(database: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in [("G/LICENSE.txt", &b"Be kind."[..]), ("G/GeoLite2-City.mmdb", database)] {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content).expect("memory takes all");
    }
    gzip(&builder.into_inner().expect("memory takes all"))
}

fn md5(content: &[u8]) -> String {
    let mut both = hash::Both::default();
    both.update(content);
    both.finish().1
}

type Answers = Arc<Mutex<Vec<(&'static str, Answering)>>>;

/// A provider, a store, and the updater between them.
struct World {
    folder: TempDir,
    server: Server,
    answers: Answers,
    updater: Updater,
    clock: FixedClock,
}

impl World {
    async fn new() -> Self {
        let answers = Answers::default();
        let said = answers.clone();
        let server = Server::start(move |request| {
            let said = said.lock().expect("no test panics while it holds the lock");
            let answer = said.iter().find(|(path, _)| request.path.starts_with(path)).map(|(_, answer)| answer.clone());
            match answer {
                Some(_) if request.header("if-none-match").as_deref() == Some("\"same\"") => Answering::status(304),
                Some(answer) => answer,
                None => Answering::status(404),
            }
        })
        .await;
        let folder = tempfile::tempdir().expect("a folder");
        let clock = FixedClock::at(Time::from_millis(NOW * 1000));
        std::fs::create_dir(folder.path().join("scratch")).expect("made");
        let updater = Updater {
            store: Store::Folder(FolderStore::new(folder.path().join("store"))),
            environment: "local".to_owned(),
            web: Web::within(AddressRules {
                allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")],
                allow_http: true,
            }),
            scratch: folder.path().join("scratch"),
            largest: 1024 * 1024,
            clock: Arc::new(clock.clone()),
            random: Arc::new(SystemRandom),
        };
        Self { folder, server, answers, updater, clock }
    }

    /// Sets the provider's response for a path.
    fn says(&self, path: &'static str, answer: Answering) {
        let mut answers = self.answers.lock().expect("no test panics while it holds the lock");
        answers.retain(|(said, _)| *said != path);
        answers.push((path, answer));
    }

    fn configured(&self, source: serde_json::Value) -> ConfiguredEdition {
        let mut entry = json!({"edition": "GeoLite2-City", "source": "url"});
        for (name, value) in source.as_object().expect("an object") {
            let text = value.as_str().unwrap_or_default();
            entry[name] = if text.starts_with('/') { self.server.url(text).as_str().into() } else { value.clone() };
        }
        let configuration = Configuration::read(&json!({"editions": [entry]})).expect("a configuration");
        configuration.editions.into_iter().next().expect("one edition")
    }

    async fn update(&self, source: serde_json::Value) -> Result<String, String> {
        self.update_as(source, true).await
    }

    async fn update_as(&self, source: serde_json::Value, live: bool) -> Result<String, String> {
        self.clock.set(self.clock.now() + Duration::from_secs(1));
        let until = Instant::now() + ENOUGH;
        let outcome = self.updater.update(&self.configured(source), live, until).await;
        let left = std::fs::read_dir(self.folder.path().join("scratch")).expect("there").count();
        assert_eq!(left, 0, "an update leaves nothing behind");
        outcome.map(|outcome| outcome.to_string()).map_err(|error| logging::chain(&error))
    }

    async fn plain(&self) -> Result<String, String> {
        self.update(json!({"url": "/a.mmdb.gz"})).await
    }

    fn edition() -> EditionName {
        EditionName::parse("GeoLite2-City").expect("a name")
    }

    async fn pointer(&self) -> Option<Pointer> {
        self.updater.pointer(&Self::edition()).await.expect("readable").map(|(pointer, _)| pointer)
    }

    fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("store/local/GeoLite2-City")) else {
            return vec![];
        };
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(".mmdb") || name.ends_with(".txt"));
        names.sort();
        names
    }

    fn reader(&self) -> DatabaseReader {
        let Updater { store, environment, scratch, clock, random, .. } = self.updater.clone();
        DatabaseReader::new(store, environment, Self::edition(), scratch, clock, random)
    }
}

#[tokio::test]
async fn a_release_is_published_and_a_newer_one_takes_its_place() {
    let world = World::new().await;
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))));
    assert!(world.plain().await.expect("published").starts_with("published build 2026-11-17T"));
    assert!(world.plain().await.expect("the same").starts_with("is up to date: build 2026-11-17T"));
    let first = world.pointer().await.expect("published");
    assert_eq!((&first.current.database_type, &first.previous), (&"GeoLite2-City".to_owned(), &None));
    for (days, names) in [(2, 2), (1, 2), (0, 2)] {
        world.says("/a.mmdb.gz", Answering::ok(gzip(&database(days))));
        assert!(world.plain().await.expect("published").contains("was 2026-11-"));
        assert_eq!(world.files().len(), names, "the current release and the one before");
    }
    let last = world.pointer().await.expect("published");
    assert!(world.files().contains(&format!("{}.mmdb", last.current.name)));
    assert_eq!(last.previous.map(|release| release.build_date).as_deref(), Some("2026-11-19"));
}

#[tokio::test]
async fn a_dry_run_does_everything_but_publish() {
    let world = World::new().await;
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))));
    let source = json!({"url": "/a.mmdb.gz"});
    let line = world.update_as(source.clone(), false).await.expect("all is well");
    assert!(line.starts_with("would publish build 2026-11-17T") && line.ends_with(", the first"), "{line}");
    assert_eq!((world.pointer().await, world.files()), (None, vec![]));
    world.plain().await.expect("published");
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(1))));
    assert!(world.update_as(source, false).await.expect("all is well").contains(", is 2026-11-17T"));
    assert_eq!(world.pointer().await.expect("published").current.build_date, "2026-11-17");
}

#[tokio::test]
async fn a_fault_of_a_provider_has_a_sentence_and_publishes_nothing() {
    let world = World::new().await;
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(5))));
    world.plain().await.expect("published");
    let before = world.pointer().await;
    let newer = gzip(&database(1));
    let mut damaged = database(1);
    damaged.truncate(damaged.len() / 2);
    let other = DatabaseBuilder::new("GeoLite2-ASN", NOW as u64 - 5).with_many(40).build();
    for (answer, words) in [
        (Answering::status(404), "does not have the file (status 404)"),
        (Answering::status(401), "refused the credentials"),
        (Answering::status(429), "download limit"),
        (Answering::status(503), "the server failed (status 503)"),
        (Answering::nothing(), "the connection broke"),
        (Answering::ok(newer.clone()).cut_after(newer.len() / 2), "the connection broke"),
        (Answering::ok(&newer[..newer.len() / 2]), "damaged"),
        (Answering::ok(""), "empty"),
        (Answering::ok("Sorry"), "not a MaxMind database"),
        (Answering::ok("<html>Sorry</html>"), "a web page (HTML or XML) instead of a database: open the address"),
        (Answering::ok(gzip(b"<html>Sorry</html>")), "returned a web page (HTML or XML)"),
        (Answering::ok(r#"{"message": "x"}"#), "JSON instead of a database: use the address of the file"),
        (Answering::ok("version https://git-lfs.github.com/spec/v1\noid"), "a Git LFS pointer instead"),
        (Answering::ok("PK\x03\x04"), "a ZIP archive, which is not supported: use the address"),
        (
            Answering::ok(gzip(&database_with(5, 41))),
            "the build time 2026-11-15T09:45:00Z is that of the published database, but",
        ),
        (Answering::ok(gzip(b"nothing")), "not a MaxMind database"),
        (Answering::ok(gzip(&damaged)), "not a MaxMind database"),
        (Answering::ok(gzip(&vec![0; 2 * 1024 * 1024])), "larger than 1 MB when unpacked"),
        (Answering::ok(gzip(&database(9))), "is not newer than the published build, 2026-11-15T"),
        (Answering::ok(gzip(&database(-2))), "in the future"),
        (Answering::ok(gzip(&other)), "`GeoLite2-ASN`, but `GeoLite2-City` was expected"),
        (Answering::ok(gzip(&database_with(1, 10))), "implausible"),
        (Answering::ok(gzip(&database_with(1, 100))), "implausible"),
    ] {
        world.says("/a.mmdb.gz", answer);
        let error = world.plain().await.expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(world.pointer().await, before);
        assert_eq!(world.files().len(), 1);
    }
    world.says("/a.mmdb.gz", Answering::ok(newer));
    assert!(world.plain().await.is_ok());
}

#[tokio::test]
async fn a_database_has_the_type_that_the_configuration_names() {
    let world = World::new().await;
    let named = "DBIP-Location-ISP (compat=Enterprise)";
    let database = DatabaseBuilder::new(named, NOW as u64 - 5).with_many(40).build();
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database)));
    let words = world.plain().await.expect_err("another type than the edition's name");
    assert!(words.contains("`DBIP-Location-ISP (compat=Enterprise)`, but `GeoLite2-City` was expected; if"), "{words}");
    world.update(json!({"url": "/a.mmdb.gz", "databaseType": named})).await.expect("published");
    let other = world.update(json!({"url": "/a.mmdb.gz", "databaseType": "DBIP-Location-ISP"})).await;
    assert!(other.is_ok(), "the same file is not looked at again");
}

#[tokio::test]
async fn a_checksum_beside_the_file_decides() {
    let world = World::new().await;
    let served = gzip(&database(3));
    let source = json!({"url": "/a.mmdb.gz", "sha256Url": "/sum"});
    world.says("/a.mmdb.gz", Answering::ok(served.clone()));
    assert!(world.update(source.clone()).await.expect_err("no checksum").contains("requesting the checksum"));
    world.says("/sum", Answering::ok("none"));
    assert!(world.update(source.clone()).await.expect_err("no checksum").contains("not a SHA-256"));
    world.says("/sum", Answering::ok(format!("{}  a.mmdb.gz\n", hash::sha256(b"another"))));
    assert!(world.update(source.clone()).await.expect_err("another").contains("file's checksum"));
    world.says("/a.mmdb.gz", Answering::ok("<html>Sorry</html>"));
    assert!(world.update(source.clone()).await.expect_err("a page").contains("a web page"));
    world.says("/a.mmdb.gz", Answering::ok(served.clone()));
    assert_eq!(world.pointer().await, None);
    let sums = format!("SHA256 (b.gz) = {}\nSHA256 (a.mmdb.gz) = {}\n", hash::sha256(b"b"), hash::sha256(&served));
    world.says("/sum", Answering::ok(sums));
    world.update(source.clone()).await.expect("published");
    let before = world.server.requests().len();
    assert!(world.update(source).await.expect("the same").starts_with("is up to date"));
    let asked: Vec<_> = world.server.requests()[before..].iter().map(|request| request.path.clone()).collect();
    assert_eq!(asked, ["/sum"]);
}

#[tokio::test]
async fn an_unchanged_file_is_not_downloaded() {
    let world = World::new().await;
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))).with_header("etag", "\"same\""));
    world.plain().await.expect("published");
    assert!(world.plain().await.expect("the same").starts_with("is up to date: build 2026-11-17T"));
    assert_eq!(world.server.requests()[1].header("if-none-match").as_deref(), Some("\"same\""));
    // Requests to another address have no conditions.
    world.says("/b.mmdb.gz", Answering::ok(gzip(&database(1))).with_header("etag", "\"same\""));
    assert!(world.update(json!({"url": "/b.mmdb.gz"})).await.expect("published").contains("was 2026-11-17"));
}

#[tokio::test]
async fn maxmind_is_queried_first_and_a_new_release_downloaded() {
    let world = World::new().await;
    let source = json!({"source": "maxmind", "url": "/", "accountId": 42, "licenseKey": "key"});
    let metadata = |md5: &str| {
        let databases = json!([{"edition_id": "GeoLite2-City", "md5": md5, "date": "2026-11-17"}]);
        Answering::ok(json!({"databases": databases}).to_string())
    };
    world.says("/geoip/updates/metadata?edition_id=GeoLite2-City", metadata(&md5(&database(3)).to_uppercase()));
    let path = "/geoip/databases/GeoLite2-City/download?date=20261117&suffix=tar.gz";
    world.says(path, Answering::ok(tar_gz(&database(3))));
    world.update(source.clone()).await.expect("published");
    for request in world.server.requests() {
        assert_eq!(request.header("authorization").as_deref(), Some("Basic NDI6a2V5"), "{}", request.path);
    }
    let pointer = world.pointer().await.expect("published");
    assert!(pointer.current.attribution.as_deref().is_some_and(|text| text.contains("MaxMind")));
    let licence = format!("{}.txt", pointer.current.name);
    assert!(world.files().contains(&licence), "the licence is kept beside the database");
    let before = world.server.requests().len();
    assert!(world.update(source.clone()).await.expect("the same").starts_with("is up to date"));
    assert_eq!(world.server.requests().len(), before + 1, "no download");
    // The content does not match the checksum.
    world.says("/geoip/updates/metadata?edition_id=GeoLite2-City", metadata(&md5(b"another")));
    world.says(path, Answering::ok(tar_gz(&database(1))));
    assert!(world.update(source.clone()).await.expect_err("another").contains("file's checksum"));
    for wrong in [
        "nonsense",
        r#"{"databases": []}"#,
        r#"{"databases": [{"edition_id": "GeoLite2-City", "md5": "x", "date": "y"}]}"#,
    ] {
        world.says("/geoip/updates/metadata?edition_id=GeoLite2-City", Answering::ok(wrong));
        assert!(world.update(source.clone()).await.expect_err(wrong).contains("from MaxMind"));
    }
}

#[tokio::test]
async fn the_last_month_of_db_ip_will_do_and_ipinfo_has_its_checksum() {
    let world = World::new().await;
    let built = |kind: &str| DatabaseBuilder::new(kind, NOW as u64 - 5).with_many(40).build();
    world.says("/free/dbip-city-lite-2026-10.mmdb.gz", Answering::ok(gzip(&built("DBIP-City-Lite"))));
    let source = json!({"edition": "dbip-city-lite", "source": "db-ip-lite", "url": "/"});
    // Servers respond with 404, and S3 with 403.
    world.says("/free/dbip-city-lite-2026-11.mmdb.gz", Answering::status(403));
    world.update_as(source.clone(), false).await.expect("the last month is good");
    world.says("/free/dbip-city-lite-2026-11.mmdb.gz", Answering::status(404));
    world.update(source.clone()).await.expect("published");
    world.says("/free/dbip-city-lite-2026-10.mmdb.gz", Answering::status(403));
    assert!(world.update(source).await.expect_err("neither is there").contains("(status 403)"));
    let database = built("ipinfo ipinfo_lite.mmdb");
    let sums = json!({"checksums": {"md5": "", "sha1": "", "sha256": hash::sha256(&database)}});
    world.says("/data/ipinfo_lite.mmdb/checksums?token=t%26", Answering::ok(sums.to_string()));
    world.says("/data/ipinfo_lite.mmdb?token=t%26", Answering::ok(database));
    let source = json!({"edition": "ipinfo_lite", "source": "ipinfo-lite", "token": "t&", "url": "/"});
    world.update(source.clone()).await.expect("published");
    assert!(world.update(source).await.expect("the same").starts_with("is up to date"));
}

#[tokio::test]
async fn a_release_that_was_rolled_back_stays_away_until_a_newer_one_comes() {
    let world = World::new().await;
    let store = world.updater.store.clone();
    let edition = World::edition();
    let back = async || roll_back(&store, "local", &edition).await;
    assert!(matches!(back().await, Err(RollbackError::NothingPublished(_))));
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))));
    world.plain().await.expect("published");
    assert!(matches!(back().await, Err(RollbackError::NothingBefore(_))));
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(2))));
    world.plain().await.expect("published");
    let reader = world.reader();
    let bad = reader.refresh().await.expect("readable").release.clone();
    let kept = || world.files().contains(&format!("{}.mmdb", bad.name));
    let done = back().await.expect("rolled back");
    assert_eq!((done.from.build_date.as_str(), done.to.build_date.as_str()), ("2026-11-18", "2026-11-17"));
    assert_eq!(reader.refresh().await.expect("readable").release, done.to);
    assert!(world.plain().await.expect_err("blocked").contains(&format!("{} was rolled back", bad.sha256)));
    assert!(matches!(back().await, Err(RollbackError::NothingBefore(_))));
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(1))));
    assert!(kept());
    assert!(world.plain().await.expect("published").contains("was 2026-11-17"));
    assert!(!kept(), "the rolled-back release is removed");
}

#[tokio::test]
async fn a_reader_keeps_its_release_while_the_new_one_is_bad() {
    let world = World::new().await;
    let reader = world.reader();
    assert!(reader.fresh().await.is_none());
    assert!(matches!(reader.refresh().await, Err(ReaderError::NothingPublished(_))));
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))));
    world.plain().await.expect("published");
    let days = |reader: &DatabaseReader| {
        let database = reader.current().expect("read before");
        let found = database.lookup::<serde_json::Value>("1.1.1.77".parse().expect("an address")).expect("looked up");
        let found = found.expect("known");
        assert_eq!(found.network, "1.1.1.0/24");
        assert!(
            database.lookup::<serde_json::Value>("2001:db8::1".parse().expect("one")).expect("looked up").is_none()
        );
        found.value["days"].clone()
    };
    reader.refresh().await.expect("readable");
    assert_eq!(days(&reader), 3);
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(2))));
    world.plain().await.expect("published");
    let file = format!("{}.mmdb", world.pointer().await.expect("published").current.name);
    let file = world.folder.path().join("store/local/GeoLite2-City").join(file);
    let whole = std::fs::read(&file).expect("published");
    std::fs::write(&file, &whole[1..]).expect("written");
    assert!(matches!(reader.refresh().await, Err(ReaderError::Damaged(_))));
    std::fs::remove_file(&file).expect("removed");
    assert!(matches!(reader.refresh().await, Err(ReaderError::Gone(_))));
    assert!(reader.fresh().await.is_some());
    assert_eq!(days(&reader), 3, "the old one stays in use");
    std::fs::write(&file, &whole).expect("written");
    reader.fresh().await;
    assert_eq!(days(&reader), 3, "not looked at again so soon");
    world.clock.set(world.clock.now() + Duration::from_secs(60));
    reader.fresh().await;
    assert_eq!(days(&reader), 2);
}

#[tokio::test]
async fn an_update_that_has_no_time_left_changes_nothing() {
    let world = World::new().await;
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))).silent_after(10));
    let source = world.configured(json!({"url": "/a.mmdb.gz"}));
    let until = Instant::now() + Duration::from_millis(200);
    let error = world.updater.update(&source, true, until).await.expect_err("late");
    assert!(matches!(error, UpdateError::Late), "{error}");
    assert_eq!((world.pointer().await, world.files()), (None, vec![]));
}

#[tokio::test]
async fn the_files_of_a_killed_upload_are_removed_by_the_next_one() {
    let world = World::new().await;
    let folder = world.folder.path().join("store/local/GeoLite2-City");
    std::fs::create_dir_all(&folder).expect("made");
    let name_at = |second: i64| Release::name(Time::from_millis(second * 1000), "a", &SystemRandom);
    let [earlier, later] = [NOW - 1, NOW + 60].map(name_at);
    let name = |name: &str, ending: &str| format!("{name}.{ending}");
    let dead = [name(&earlier, "mmdb"), name(&earlier, "txt"), name(&earlier, "mmdb.1-0.unfinished")];
    let alive = [name(&later, "mmdb.2-0.unfinished"), "current.json.3-0.unfinished".to_owned()];
    for file in dead.iter().chain(&alive) {
        std::fs::write(folder.join(file), "half of it").expect("written");
    }
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(3))));
    world.plain().await.expect("published");
    assert!(dead.iter().all(|file| !folder.join(file).exists()));
    assert!(alive.iter().all(|file| folder.join(file).exists()), "another update or a rollback may be writing them");
}

#[tokio::test]
async fn two_updates_at_once_both_succeed() {
    let world = World::new().await;
    for days_ago in [5, 3] {
        world.says("/a.mmdb.gz", Answering::ok(gzip(&database(days_ago))));
        let source = world.configured(json!({"url": "/a.mmdb.gz"}));
        let until = Instant::now() + ENOUGH;
        world.clock.set(world.clock.now() + Duration::from_secs(1));
        let updates = (0..2).map(|_| world.updater.update(&source, true, until));
        let outcomes: Vec<_> = join_all(updates).await.into_iter().map(|outcome| outcome.expect("succeeded")).collect();
        let published = outcomes.iter().filter(|outcome| matches!(outcome, UpdateOutcome::Published(..))).count();
        assert_eq!(published, 1, "although both have the same clock: {outcomes:?}");
        let database = world.reader().refresh().await.expect("readable");
        assert_eq!(database.release.build_epoch, (NOW - days_ago * DAY) as u64);
    }
}

#[tokio::test]
async fn an_update_yields_to_a_rollback_that_comes_before_it() {
    let world = World::new().await;
    for days_ago in [5, 3] {
        world.says("/a.mmdb.gz", Answering::ok(gzip(&database(days_ago))));
        world.plain().await.expect("published");
    }
    let (before, tag) = world.updater.pointer(&World::edition()).await.expect("readable").expect("published");
    roll_back(&world.updater.store, "local", &World::edition()).await.expect("rolled back");
    let newer = Release { build_epoch: NOW as u64, ..before.current.clone() };
    let moved = world.updater.move_pointer(&World::edition(), Some(&before), Some(&tag), newer).await;
    assert!(matches!(moved, Err(UpdateError::PointerMoved)));
    let pointer = world.pointer().await.expect("published");
    assert!(pointer.current.build_date == "2026-11-15" && pointer.blocks(&before.current.sha256));
}

#[tokio::test]
async fn of_two_updates_at_once_the_newer_release_stays() {
    let world = World::new().await;
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(5))));
    world.plain().await.expect("published");
    let (pointer, tag) = world.updater.pointer(&World::edition()).await.expect("readable").expect("published");
    world.says("/a.mmdb.gz", Answering::ok(gzip(&database(1))));
    world.plain().await.expect("published");
    let release = |days: i64| Release {
        build_epoch: (NOW - days * DAY) as u64,
        sha256: "0".repeat(64),
        ..pointer.current.clone()
    };
    let publish =
        async |days| world.updater.move_pointer(&World::edition(), Some(&pointer), Some(&tag), release(days)).await;
    assert!(matches!(publish(2).await, Ok(UpdateOutcome::Overtaken(now)) if now.build_date == "2026-11-19"));
    assert!(matches!(publish(0).await, Err(UpdateError::PointerMoved)));
    assert_eq!(world.pointer().await.expect("published").current.build_date, "2026-11-19");
}

#[test]
fn sizes_are_rounded_for_people() {
    assert_eq!([size(999), size(1_499), size(999_999), size(61_600_000)], ["999 bytes", "1 KB", "1000 KB", "62 MB"]);
}
