//! Updates that run at the same time as other updates or a rollback.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use super::*;
use crate::{
    rollback::roll_back,
    testing::{
        Answering,
        world::{DAY, ENOUGH, NOW, World, database, gzip},
    },
};
use base::Clock;

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
