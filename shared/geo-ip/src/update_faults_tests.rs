//! Faults of a provider: failed requests, damaged files, wrong checksums or types, and implausible databases. Each has
//! a separate sentence, and nothing is published.

use serde_json::json;

use crate::{
    hash,
    testing::{
        Answering, DatabaseBuilder,
        world::{NOW, World, database, database_with, gzip},
    },
};

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
