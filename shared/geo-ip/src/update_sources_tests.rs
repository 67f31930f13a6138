//! Updates from MaxMind, DB-IP and IPinfo.

use serde_json::json;

use crate::{
    hash,
    testing::{
        Answering, DatabaseBuilder,
        world::{NOW, World, database, gzip},
    },
};

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
