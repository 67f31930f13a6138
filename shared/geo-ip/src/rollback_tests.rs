//! A rollback returns to the previous release, and blocks the one that it replaces.

use super::*;
use crate::testing::{
    Answering,
    world::{World, database, gzip},
};

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
