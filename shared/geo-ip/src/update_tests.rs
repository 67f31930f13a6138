//! Updates publish newer releases, download only changed files, and keep the store tidy.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::testing::{
    Answering,
    world::{NOW, World, database, gzip},
};
use base::{SystemRandom, Time};

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

#[test]
fn sizes_are_rounded_for_people() {
    assert_eq!([size(999), size(1_499), size(999_999), size(61_600_000)], ["999 bytes", "1 KB", "1000 KB", "62 MB"]);
}
