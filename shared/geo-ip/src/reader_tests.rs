//! A reader polls the pointer at intervals, and replaces its release only with one that it can read.

use super::*;
use crate::testing::{
    Answering,
    world::{World, database, gzip},
};
use base::Clock;

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
