//! Untrusted archives: the supported formats, and every attack that is refused.

use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tar::{Builder, Header};
use tempfile::TempDir;

use super::*;

const LIMIT: u64 = 1024 * 1024;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

/// A member's header, with a name that the library itself would refuse to write.
fn header(name: &str, kind: EntryType, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn tar(members: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, content) in members {
        builder.append(&header(name, *kind, content.len()), *content).expect("memory takes all");
    }
    builder.into_inner().expect("memory takes all")
}

fn file<'a>(name: &'a str, content: &'a [u8]) -> (&'a str, EntryType, &'a [u8]) {
    (name, EntryType::Regular, content)
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("database")
    }

    fn expand(&self, served: &[u8], limit: u64) -> Result<Expanded, ArchiveError> {
        let path = self.0.path().join("served");
        std::fs::write(&path, served).expect("written");
        expand(&path, &self.database(), limit)
    }
}

#[test]
fn files_that_hold_the_attributes_of_others_are_ignored() {
    let folder = Folder::new();
    let archive = tar(&[
        file("._City", b"attributes"),
        file("City/._City.mmdb", b"attributes"),
        file("__MACOSX/City/City.mmdb", b"attributes"),
        file("PaxHeader/City.mmdb", b"attributes"),
        file("City/PaxHeaders.123/City.mmdb", b"attributes"),
        file("City/City.mmdb", b"the database"),
        file("City/._LICENSE.txt", b"attributes"),
    ]);
    let expanded = folder.expand(&gzip(&archive), LIMIT).expect("one database");
    assert_eq!((expanded.sha256, expanded.licence), (hash::sha256(b"the database"), None));
    let none = tar(&[file("._City.mmdb", b"attributes")]);
    assert!(matches!(folder.expand(&gzip(&none), LIMIT), Err(ArchiveError::Databases(0))));
    let two = tar(&[file("a.mmdb", b"1"), file("b.mmdb", b"2")]);
    assert!(matches!(folder.expand(&gzip(&two), LIMIT), Err(ArchiveError::Databases(2))));
}

#[test]
fn all_three_forms_give_the_same_database() {
    let folder = Folder::new();
    let content = b"the database".repeat(1000);
    let plain = folder.expand(&content, LIMIT).expect("plain");
    assert_eq!((plain.size, &plain.sha256), (12_000, &hash::sha256(&content)));
    assert_eq!(folder.expand(&gzip(&content), LIMIT).expect("gzip"), plain);
    let archive = tar(&[
        ("GeoLite2-City_20261117/", EntryType::Directory, b""),
        file("GeoLite2-City_20261117/README.txt", b"Read me\n"),
        file("GeoLite2-City_20261117/COPYRIGHT.txt", b"(c) a provider\n"),
        file("GeoLite2-City_20261117/other.dat", b"ignored"),
        file("GeoLite2-City_20261117/GeoLite2-City.mmdb", &content),
    ]);
    let packed = folder.expand(&gzip(&archive), LIMIT).expect("tar.gz");
    let licence = packed.licence.as_deref().expect("kept");
    assert!(licence.starts_with("--- COPYRIGHT.txt\n\n(c) a provider\n") && licence.contains("Read me"), "{licence}");
    assert_eq!(Expanded { licence: None, ..packed }, plain);
    assert_eq!(std::fs::read(folder.database()).expect("unpacked"), content);
}

#[test]
fn an_archive_has_exactly_one_database() {
    let folder = Folder::new();
    let several = tar(&[file("a.mmdb", b"a"), file("b/a.mmdb", b"b")]);
    assert!(matches!(folder.expand(&gzip(&several), LIMIT), Err(ArchiveError::Databases(2))));
    let none = tar(&[file("a.txt", b"a")]);
    assert!(matches!(folder.expand(&gzip(&none), LIMIT), Err(ArchiveError::Databases(0))));
}

#[test]
fn a_member_that_leads_out_of_an_archive_is_refused() {
    let folder = Folder::new();
    for name in ["/etc/a.mmdb", "../a.mmdb", "a/../../a.mmdb", "a\\..\\a.mmdb"] {
        let archive = tar(&[file(name, b"a")]);
        assert!(matches!(folder.expand(&gzip(&archive), LIMIT), Err(ArchiveError::Suspicious(_))), "{name}");
    }
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char, EntryType::GNUSparse] {
        let archive = tar(&[file("a.mmdb", b"a"), ("b", kind, b"")]);
        assert!(matches!(folder.expand(&gzip(&archive), LIMIT), Err(ArchiveError::Suspicious(_))), "{kind:?}");
    }
}

#[test]
fn a_description_renames_a_member_and_cannot_do_more() {
    let folder = Folder::new();
    let pax = |text: &str| {
        (text.len() + 3..).find_map(|length| {
            let record = format!("{length} {text}\n");
            (record.len() == length).then_some(record)
        })
    };
    let describe = |text: &str| pax(text).expect("some length fits").into_bytes();
    let with = |kind: EntryType, description: &[u8]| gzip(&tar(&[("x", kind, description), file("short", b"content")]));
    let x = EntryType::XHeader;
    for good in [with(x, &describe("path=long/name.mmdb")), with(EntryType::GNULongName, b"long/name.mmdb\0")] {
        assert_eq!(folder.expand(&good, LIMIT).expect("renamed").size, 7);
    }
    let touched = gzip(&tar(&[("x", x, &describe("mtime=1.5")), file("a.mmdb", b"content")]));
    assert_eq!(folder.expand(&touched, LIMIT).expect("as Python writes it").size, 7);
    for bad in [
        with(x, &describe("path=../name.mmdb")),
        with(x, &describe("size=100000")),
        with(EntryType::GNULongName, b"/name.mmdb\0"),
        with(x, &vec![b'0'; 70_000]),
        with(EntryType::XGlobalHeader, &vec![b'0'; 70_000]),
    ] {
        assert!(matches!(folder.expand(&bad, LIMIT), Err(ArchiveError::Suspicious(_))));
    }
}

#[test]
fn a_bomb_is_stopped_at_the_limit() {
    let folder = Folder::new();
    let large = vec![0; 2 * 1024 * 1024];
    let hidden = tar(&[file("padding", &large), file("a.mmdb", b"a")]);
    let database = tar(&[file("a.mmdb", &large)]);
    let mut trailing = tar(&[file("a.mmdb", b"a")]);
    trailing.extend_from_slice(&large);
    for bomb in [gzip(&large), gzip(&hidden), gzip(&database), gzip(&trailing), large.clone()] {
        assert!(matches!(folder.expand(&bomb, LIMIT), Err(ArchiveError::TooLarge(LIMIT))));
        let left = std::fs::metadata(folder.database()).map_or(0, |file| file.len());
        assert!(left <= LIMIT + 1, "{left}");
    }
    assert!(folder.expand(&gzip(&large[..1024 * 1024]), LIMIT).is_ok(), "the limit itself is within it");
}

#[test]
fn a_file_that_is_cut_off_or_damaged_is_refused() {
    let folder = Folder::new();
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    for whole in [gzip(&content), gzip(&tar(&[file("a.mmdb", &content)]))] {
        assert!(folder.expand(&whole, LIMIT).is_ok());
        for cut in [10, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            assert!(folder.expand(&whole[..cut], LIMIT).is_err(), "{cut} of {}", whole.len());
        }
        let mut damaged = whole.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 1; // in the checksum, after the last byte of the content
        assert!(matches!(folder.expand(&damaged, LIMIT), Err(ArchiveError::Damaged(_))));
        let trailing = [&whole[..], b"garbage"].concat();
        assert!(folder.expand(&trailing, LIMIT).is_err());
    }
    assert!(matches!(folder.expand(b"", LIMIT), Err(ArchiveError::Empty)));
    assert!(matches!(folder.expand(&gzip(b""), LIMIT), Err(ArchiveError::Empty)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_archive_makes_the_unpacking_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048), packed in any::<bool>()) {
        let folder = Folder::new();
        let mut archive = tar(&[file("a.mmdb", b"a")]);
        let end = bytes.len().min(archive.len());
        archive[..end].copy_from_slice(&bytes[..end]);
        archive[257..262].copy_from_slice(b"ustar");
        let served = if packed { gzip(&archive) } else { [&[0x1f, 0x8b, 8][..], &bytes].concat() };
        let _ = folder.expand(&served, LIMIT);
    }
}
