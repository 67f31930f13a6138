//! Updates into a folder, from a provider on this machine.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use super::{Answering, DatabaseBuilder, Server};
use crate::{
    Configuration,
    configuration::ConfiguredEdition,
    download::Web,
    edition::EditionName,
    pointer::Pointer,
    reader::DatabaseReader,
    store::{FolderStore, Store},
    update::Updater,
};
use base::{Clock, SystemRandom, Time, logging, testing::FixedClock};
use outbound::AddressRules;

/// The time of the tests, in seconds since the Unix epoch.
pub const NOW: i64 = 1_795_167_900; // 2026-11-20
/// The number of seconds in a day.
pub const DAY: i64 = 24 * 60 * 60;
/// More time than an update needs on any machine.
pub const ENOUGH: Duration = Duration::from_secs(3_600);

type Answers = Arc<Mutex<Vec<(&'static str, Answering)>>>;

/// A provider, a store, and the updater between them.
pub struct World {
    pub folder: TempDir,
    pub server: Server,
    answers: Answers,
    pub updater: Updater,
    pub clock: FixedClock,
}

impl World {
    /// A provider without files, and an empty store.
    pub async fn new() -> Self {
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
    pub fn says(&self, path: &'static str, answer: Answering) {
        let mut answers = self.answers.lock().expect("no test panics while it holds the lock");
        answers.retain(|(said, _)| *said != path);
        answers.push((path, answer));
    }

    /// The edition with this source. A text that begins with a slash is a path at the provider.
    pub fn configured(&self, source: serde_json::Value) -> ConfiguredEdition {
        let mut entry = json!({"edition": "GeoLite2-City", "source": "url"});
        for (name, value) in source.as_object().expect("an object") {
            let text = value.as_str().unwrap_or_default();
            entry[name] = if text.starts_with('/') { self.server.url(text).as_str().into() } else { value.clone() };
        }
        let configuration = Configuration::read(&json!({"editions": [entry]})).expect("a configuration");
        configuration.editions.into_iter().next().expect("one edition")
    }

    /// Updates from a source; returns the outcome or the error as a text.
    pub async fn update(&self, source: serde_json::Value) -> Result<String, String> {
        self.update_as(source, true).await
    }

    /// Updates from a source; without `live`, changes nothing.
    pub async fn update_as(&self, source: serde_json::Value, live: bool) -> Result<String, String> {
        self.clock.set(self.clock.now() + Duration::from_secs(1));
        let until = Instant::now() + ENOUGH;
        let outcome = self.updater.update(&self.configured(source), live, until).await;
        let left = std::fs::read_dir(self.folder.path().join("scratch")).expect("there").count();
        assert_eq!(left, 0, "an update leaves nothing behind");
        outcome.map(|outcome| outcome.to_string()).map_err(|error| logging::chain(&error))
    }

    /// Updates from the file `/a.mmdb.gz`.
    pub async fn plain(&self) -> Result<String, String> {
        self.update(json!({"url": "/a.mmdb.gz"})).await
    }

    /// The name of the edition.
    pub fn edition() -> EditionName {
        EditionName::parse("GeoLite2-City").expect("a name")
    }

    /// The edition's pointer.
    pub async fn pointer(&self) -> Option<Pointer> {
        self.updater.pointer(&Self::edition()).await.expect("readable").map(|(pointer, _)| pointer)
    }

    /// The names of the edition's databases and licences in the store.
    pub fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("store/local/GeoLite2-City")) else {
            return vec![];
        };
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(".mmdb") || name.ends_with(".txt"));
        names.sort();
        names
    }

    /// A reader of the edition.
    pub fn reader(&self) -> DatabaseReader {
        let Updater { store, environment, scratch, clock, random, .. } = self.updater.clone();
        DatabaseReader::new(store, environment, Self::edition(), scratch, clock, random)
    }
}

/// A database that was built this many days before `NOW`.
pub fn database(days_ago: i64) -> Vec<u8> {
    database_with(days_ago, 40)
}

/// A database that was built this many days before `NOW`, and has this many networks.
pub fn database_with(days_ago: i64, networks: u32) -> Vec<u8> {
    let epoch = (NOW - days_ago * DAY) as u64;
    DatabaseBuilder::new("GeoLite2-City", epoch)
        .with_many(networks)
        .with("1.1.1.0/24", json!({"days": days_ago}))
        .build()
}

/// The content, compressed.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::Write::write_all(&mut encoder, content).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}
