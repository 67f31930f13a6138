//! Killed updates: the next update need not wait, and the published release is complete at all times.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use contract_test::contract_test;
use fakes::update_server::{archive, sha256};
use serde_json::json;

use crate::harness::{
    Api, ApiResponse, Behaviour, Bundle, LONG, Settings, Suite, UpdateServer,
    geo_ip::{call, database_of, day, files, folder, maxmind, operator, published, task, task_result},
    until,
};

const CITY: &str = "City";
const FUNCTION: &str = "geo-ip-update";

/// A database of several megabytes.
fn database(days_ago: i64) -> Vec<u8> {
    database_of(CITY, days_ago, 20_000)
}

/// A bundle, its provider, and its store.
struct World {
    bundle: Bundle,
    api: Api,
    server: UpdateServer,
    store: PathBuf,
}

impl World {
    /// Makes the provider offer a release; returns its file.
    fn offer(&self, days_ago: i64) -> Vec<u8> {
        let database = database(days_ago);
        self.server.offer(CITY, &day(days_ago), &database);
        self.server.forget();
        database
    }

    /// Fails unless this database is published.
    fn expect(&self, database: &[u8]) {
        let files = files(&self.store);
        assert!(published(&files, CITY).as_deref() == Some(database), "another release is published");
    }

    /// The folder that contains the edition's releases.
    fn folder(&self) -> PathBuf {
        self.store.join("local").join(CITY)
    }

    fn pointer_lock(&self) -> File {
        let lock = File::open(self.folder().join("current.json.lock")).expect("the first release created it");
        lock.lock().expect("the lock is free");
        lock
    }

    /// Kills the function and waits for the next process, since an earlier request may reach the dying one.
    async fn kill(&self) {
        let process = self.bundle.process(FUNCTION).await;
        process.kill();
        until("another process of the function", LONG, async || {
            (self.bundle.process(FUNCTION).await != process).then_some(())
        })
        .await;
    }

    /// Begins an update, and kills it once `reached` completes.
    async fn kill_when(&self, reached: impl Future<Output = ()>) {
        let running = tokio::spawn({
            let api = self.api.clone();
            async move { task(&api, "?live=true").await }
        });
        reached.await;
        self.kill().await;
        let answer = running.await.expect("it did not panic");
        assert!(answer.is_none_or(|answer| !is_success(&answer)), "a killed update reports success");
    }

    /// Fails unless the next update publishes this database and leaves no other files.
    async fn recovers(&self, days_ago: i64, database: &[u8]) {
        let (success, message) = task_result(&call(&self.api, "?live=true").await);
        assert!(success && message.contains(&day(days_ago)), "{message}");
        self.expect(database);
        let left: Vec<_> = files(&self.store).into_keys().filter(|path| !is_object(path)).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

/// Whether an update reports success. If the kill comes late, the update has already reported that it ran out of time.
fn is_success(answer: &ApiResponse) -> bool {
    answer.status == 200 && task_result(answer).0
}

/// Whether a folder has a file whose name contains this part.
fn has_file(folder: &Path, part: &str, end: &str) -> bool {
    let mut entries = fs::read_dir(folder).expect("there").flatten();
    entries.any(|entry| entry.file_name().to_str().is_some_and(|name| name.contains(part) && name.ends_with(end)))
}

fn is_object(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["json", "mmdb", "txt"].iter().any(|known| extension == *known))
}

#[contract_test]
async fn a_killed_update_is_taken_over_and_the_pointer_is_always_valid(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let secrets = [("geo-ip", json!({ "editions": [maxmind(CITY, &server)] }))];
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &secrets).await;
    let store = folder(&api);
    let mut world = World { bundle, api, server, store };
    let first = world.offer(30);
    world.recovers(30, &first).await;

    killed_after_the_metadata_request(&world, &first).await;
    killed_in_the_middle_of_the_download(&world).await;
    killed_in_the_middle_of_the_upload(&world).await;
    killed_before_the_pointer_moves(&world).await;
    killed_after_the_pointer_moved(&world).await;
    everything_killed_in_the_middle_of_the_download(&suite, &mut world).await;
    a_rollback_is_not_undone(&world).await;
    assert!(world.bundle.stop().await.success());
}

async fn killed_after_the_metadata_request(world: &World, before: &[u8]) {
    let database = world.offer(28);
    world.server.instead(UpdateServer::METADATA, [Behaviour::hang()]);
    world.kill_when(world.server.until(UpdateServer::METADATA, 1)).await;
    world.expect(before);
    // The update has only as long as a call over HTTP, so it does not wait for the killed one.
    world.recovers(28, &database).await;
}

async fn killed_in_the_middle_of_the_download(world: &World) {
    let before = database(28);
    let database = world.offer(26);
    let archive = archive(CITY, &database);
    let download = UpdateServer::download(CITY);
    world.server.instead(&download, [Behaviour::stalled_body(200, &archive, archive.len() / 2)]);
    world.kill_when(world.server.until(&download, 1)).await;
    world.expect(&before);
    world.recovers(26, &database).await;
}

async fn killed_in_the_middle_of_the_upload(world: &World) {
    let before = database(26);
    let database = world.offer(24);
    // An upload takes a few milliseconds. If the upload ends before the test notices it, the pointer is still waiting
    // for this lock.
    let lock = world.pointer_lock();
    let folder = world.folder();
    let name = sha256(&database);
    let begun = move || {
        let end = Instant::now() + LONG;
        while !has_file(&folder, &name, "") {
            assert!(Instant::now() < end, "no upload began");
            thread::sleep(Duration::from_micros(100));
        }
    };
    world.kill_when(async { tokio::task::spawn_blocking(begun).await.expect("it ends") }).await;
    drop(lock);
    world.expect(&before);
    world.recovers(24, &database).await;
}

async fn killed_before_the_pointer_moves(world: &World) {
    let before = database(24);
    let database = world.offer(22);
    let lock = world.pointer_lock();
    let folder = world.folder();
    let name = sha256(&database);
    // The licence is uploaded after everything else.
    world
        .kill_when(until("the upload of a release", LONG, async || has_file(&folder, &name, ".txt").then_some(())))
        .await;
    drop(lock);
    world.expect(&before);
    world.recovers(22, &database).await;
}

async fn killed_after_the_pointer_moved(world: &World) {
    let database = world.offer(21);
    let running = tokio::spawn({
        let api = world.api.clone();
        async move { task(&api, "?live=true").await }
    });
    let pointer = world.folder().join("current.json");
    let name = sha256(&database);
    until("the pointer names the release", LONG, async || {
        fs::read_to_string(&pointer).is_ok_and(|pointer| pointer.contains(&name)).then_some(())
    })
    .await;
    world.kill().await;
    drop(running.await.expect("it did not panic")); // the response may have been faster than the kill
    world.expect(&database);
    world.recovers(21, &database).await;
}

async fn everything_killed_in_the_middle_of_the_download(suite: &Suite, world: &mut World) {
    let before = database(21);
    let database = world.offer(20);
    let archive = archive(CITY, &database);
    let download = UpdateServer::download(CITY);
    world.server.instead(&download, [Behaviour::stalled_body(200, &archive, archive.len() / 2)]);
    let running = tokio::spawn({
        let api = world.api.clone();
        async move { task(&api, "?live=true").await }
    });
    world.server.until(&download, 1).await;
    world.bundle.cut_power().await;
    let answer = running.await.expect("it did not panic");
    assert!(answer.is_none_or(|answer| !is_success(&answer)), "a killed update reports success");
    world.expect(&before);
    world.bundle.start_again(Settings::default()).await;
    world.api = Api::of(&world.bundle, &suite.contract);
    world.recovers(20, &database).await;
}

async fn a_rollback_is_not_undone(world: &World) {
    let before = database(21);
    let bad = database(20);
    let lookup = async |days_ago: i64| {
        let (success, said) = operator(&world.api, &["lookup", "1.1.1.77", "--edition", CITY]).await;
        assert!(success && said.contains(&format!("\"daysAgo\": {days_ago}")), "{said}");
        assert!(said.contains("1.1.1.0/24") && said.contains(&day(days_ago)), "{said}");
    };
    lookup(20).await;
    let (success, said) = operator(&world.api, &["rollback", CITY]).await;
    assert!(success && said.contains("is current again") && said.contains("is blocked"), "{said}");
    world.expect(&before);
    lookup(21).await;
    let (success, said) = operator(&world.api, &["rollback", CITY]).await;
    assert!(!success && said.contains("no earlier release of City"), "{said}");

    let pointer = world.store.join("local/City/current.json");
    let content = fs::read(&pointer).expect("it is there");
    for query in ["", "?live=true"] {
        let (success, message) = task_result(&call(&world.api, query).await);
        let expected = format!("the release with the SHA-256 {} was rolled back and is blocked", sha256(&bad));
        assert!(!success && message.contains(&expected), "{message}");
    }
    assert_eq!(fs::read(&pointer).expect("it is there"), content);
    let next = world.offer(18);
    world.recovers(18, &next).await;
    lookup(18).await;
}
