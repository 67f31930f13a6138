//! Databases that pass the checks, and databases that are refused.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{pointer::tests::release, testing::DatabaseBuilder};

const NOW: i64 = 1_795_167_900; // 2026-11-20

fn written(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mmdb");
    fs::write(&path, bytes).expect("written");
    (folder, path)
}

fn examined(bytes: &[u8]) -> Result<Facts, VerifyError> {
    let (_folder, path) = written(bytes);
    examine(&path)
}

fn database() -> DatabaseBuilder {
    DatabaseBuilder::new("GeoLite2-City", NOW as u64 - DAY)
        .with("1.1.1.0/24", json!({"country": {"iso_code": "AU"}}))
        .with("81.2.69.142/31", json!({"country": {"iso_code": "GB"}, "location": {"latitude": 51.5}}))
        .with("2001:4860::/32", json!({"country": {"iso_code": "US"}, "tags": [1, true, "x"]}))
}

fn judged(facts: &Facts, published: Option<&Release>) -> Result<(), String> {
    let wanted = DatabaseType::Is("GeoLite2-City".into());
    judge(facts, &wanted, published, Time::from_millis(NOW * 1000)).map_err(|error| error.to_string())
}

#[test]
fn a_whole_database_is_read_as_it_was_built() {
    for record_size in [24, 28, 32] {
        for ip_version in [4, 6] {
            let mut builder = DatabaseBuilder::new("GeoLite2-City", 5);
            builder.record_size = record_size;
            builder.ip_version = ip_version;
            let bytes = builder.with("1.1.1.0/24", json!({"a": "b"})).build();
            let facts = examined(&bytes).expect("whole");
            assert_eq!((facts.build_epoch, facts.size_bytes), (5, bytes.len() as u64), "{record_size} {ip_version}");
            assert_eq!(facts.known_addresses, ["1.1.1.1"]);
        }
    }
    assert_eq!(examined(&database().build()).expect("whole").known_addresses, ["1.1.1.1", "2001:4860:4860::8888"]);
}

#[test]
fn a_file_that_is_empty_cut_off_or_no_database_is_refused() {
    let whole = database().build();
    for bad in [&b""[..], b"<html>Not found</html>", &whole[..whole.len() / 2], &whole[..whole.len() - 1], &whole[1..]]
    {
        assert!(matches!(examined(bad), Err(VerifyError::Damaged(_))), "{} bytes", bad.len());
    }
    let empty = DatabaseBuilder::new("GeoLite2-City", 5).build();
    assert!(matches!(examined(&empty), Err(VerifyError::Implausible(_))));
}

#[test]
fn a_database_of_another_type_is_refused() {
    let facts = Facts { database_type: "GeoLite2-Country".into(), ..examined(&database().build()).expect("whole") };
    let error = judged(&facts, None).expect_err("another type");
    assert!(error.contains("`GeoLite2-Country`, but `GeoLite2-City` was expected"), "{error}");
    let preset = DatabaseType::BeginsWith("GeoLite2");
    assert!(judge(&facts, &preset, None, Time::from_millis(NOW * 1000)).is_ok());
}

#[test]
fn a_build_is_newer_than_the_published_one_and_of_our_time() {
    let built = |epoch: i64| Facts { build_epoch: epoch as u64, ..examined(&database().build()).expect("whole") };
    let day = DAY as i64;
    assert_eq!(judged(&built(NOW + day), None), Ok(()));
    assert!(judged(&built(NOW + day + 1), None).expect_err("ahead").contains("in the future"));
    assert!(judged(&built(-1), None).expect_err("far ahead").contains("in the future"));
    assert_eq!(judged(&built(NOW - 400 * day), None), Ok(()));
    assert!(judged(&built(NOW - 400 * day - 1), None).expect_err("old").contains("400 days"));
    let facts = built(NOW - 3 * day);
    let mut published =
        Release { size_bytes: facts.size_bytes, node_count: facts.node_count, ..release("a", facts.build_epoch - 1) };
    assert_eq!(judged(&facts, Some(&published)), Ok(()));
    for (epoch, words) in [(facts.build_epoch, "but the content differs"), (facts.build_epoch + 1, "not newer")] {
        published.build_epoch = epoch;
        assert!(judged(&facts, Some(&published)).expect_err(words).contains(words));
    }
}

#[test]
fn a_database_that_differs_much_from_the_published_one_is_implausible() {
    let facts = Facts { size_bytes: 1000, node_count: 1000, ..examined(&database().build()).expect("whole") };
    let published = |size, nodes| Release {
        size_bytes: size,
        node_count: nodes,
        known_addresses: vec!["1.1.1.1".into()],
        ..release("a", 1)
    };
    for (size, nodes) in [(1000, 1000), (1428, 1000), (770, 1000), (1000, 1428), (1000, 770)] {
        assert_eq!(judged(&facts, Some(&published(size, nodes))), Ok(()), "{size} {nodes}");
    }
    for (size, nodes) in [(1429, 1000), (769, 1000), (1000, 1429), (1000, 769), (0, 1000)] {
        let error = judged(&facts, Some(&published(size, nodes))).expect_err("implausible");
        assert!(error.contains("implausible"), "{error}");
    }
    let forgetful = Facts { known_addresses: vec!["8.8.8.8".into()], ..facts };
    assert!(judged(&forgetful, Some(&published(1000, 1000))).expect_err("lost").contains("has 1.1.1.1, this one"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_damage_makes_the_examination_panic(position in any::<prop::sample::Index>(), flip in 1_u8.., cut in any::<prop::sample::Index>()) {
        let mut bytes = database().build();
        let position = position.index(bytes.len());
        bytes[position] ^= flip;
        let _ = examined(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = examined(&bytes);
    }

    #[test]
    fn every_network_is_found_by_any_of_its_addresses(networks in proptest::collection::vec((any::<u32>(), 8_u8..=32), 1..40)) {
        let mut builder = DatabaseBuilder::new("GeoLite2-City", 5);
        for (address, length) in &networks {
            builder = builder.with(&format!("{}/{length}", std::net::Ipv4Addr::from(*address)), json!({"is": address}));
        }
        let bytes = builder.build();
        prop_assert!(examined(&bytes).is_ok());
        let reader = Reader::from_source(bytes).expect("whole");
        for (address, _) in networks {
            let found = reader.lookup(std::net::Ipv4Addr::from(address).into()).expect("looked up");
            prop_assert!(found.has_data());
        }
    }
}
