//! A database provider: its releases, and how it reacts to requests.

use std::{io::Write, sync::Arc};

use aws_lc_rs::digest;
use fastrand::Rng;
use flate2::{Compression, write::GzEncoder};
use geo_ip::testing::DatabaseBuilder;
use md5::{Digest, Md5};
use serde_json::json;

use crate::aws::bucket::hex;

/// How a provider serves an edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderMood {
    /// Serves the file correctly, after this many milliseconds.
    Serves(u64),
    /// Responds with this status.
    Status(u16),
    /// Sends half of the file, then nothing more.
    Stalls,
    /// Sends half of the file, then closes the connection.
    Half,
    /// Serves the file with one wrong byte.
    Wrong,
    /// Serves the previous release's file with the newest release's checksum.
    Stale,
    /// Closes the connection without a response.
    Refuses,
}

impl ProviderMood {
    /// A random way of serving, which is the correct one half of the time.
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.u8(0..16) {
            0..=7 => Self::Serves(rng.u64(0..4_000)),
            8 => Self::Status(if rng.bool() { 403 } else { 404 }),
            9 => Self::Status(if rng.bool() { 500 } else { 429 }),
            10 => Self::Serves(rng.u64(9_000..12_000)),
            11 => Self::Stalls,
            12 => Self::Half,
            13 => Self::Wrong,
            14 => Self::Stale,
            _ => Self::Refuses,
        }
    }
}

/// A database that was released.
#[derive(Debug, Clone)]
pub struct Release {
    /// When it was built, in seconds.
    pub epoch: u64,
    /// The SHA-256 hash of the database.
    pub sha256: String,
    /// The MD5 hash of the database.
    pub md5: String,
    /// The file that the provider serves.
    pub file: Vec<u8>,
}

/// The provider of a single edition.
#[derive(Debug)]
pub struct Provider {
    edition: &'static str,
    /// How the provider serves the edition.
    pub mood: ProviderMood,
    /// The provider's releases, oldest first.
    pub releases: Vec<Arc<Release>>,
}

impl Provider {
    /// A provider without any releases.
    pub fn new(edition: &'static str) -> Self {
        Self { edition, mood: ProviderMood::Serves(50), releases: Vec::new() }
    }

    /// Releases a database built at this time, in milliseconds.
    pub fn release(&mut self, now: u64) {
        let last = self.releases.last().map_or(0, |release| release.epoch);
        let epoch = (now / 1_000).max(last + 1);
        let number = self.releases.len() as u64;
        let database = DatabaseBuilder::new(self.edition, epoch)
            .with_many(30 + u32::try_from(number % 3).unwrap_or_default())
            .with("1.1.1.0/24", json!({ "number": number }))
            .build();
        let digest = digest::digest(&digest::SHA256, &database);
        let md5 = Md5::digest(&database);
        let file = if self.edition.starts_with("GeoLite2") { tar_gz(self.edition, &database) } else { gzip(&database) };
        let release = Release { epoch, sha256: hex(digest.as_ref()), md5: hex(&md5), file };
        self.releases.push(Arc::new(release));
    }

    /// The response to a request for this path: a status, a body, and the number of bytes that are sent; `None` if all
    /// are.
    pub fn answer(&self, path: &str) -> (u16, Vec<u8>, Option<usize>) {
        let Some(newest) = self.releases.last() else { return (404, Vec::new(), None) };
        if let ProviderMood::Status(status) = self.mood {
            return (status, Vec::new(), None);
        }
        if path.ends_with(".sha256") {
            return (200, hex(digest::digest(&digest::SHA256, &newest.file).as_ref()).into_bytes(), None);
        }
        if path.starts_with("/geoip/updates/metadata") {
            let database = json!({ "edition_id": self.edition, "md5": newest.md5, "date": "2027-01-15" });
            return (200, json!({ "databases": [database] }).to_string().into_bytes(), None);
        }
        let mut file = newest.file.clone();
        match self.mood {
            ProviderMood::Wrong => {
                // A gzip file ends with its checksum and size.
                let middle = file.len() / 2;
                file[middle] ^= 0x10;
            }
            ProviderMood::Stale => {
                let before = self.releases.iter().rev().nth(1).unwrap_or(newest);
                file.clone_from(&before.file);
            }
            _ => {}
        }
        let is_cut = matches!(self.mood, ProviderMood::Half | ProviderMood::Stalls);
        let sent = is_cut.then_some(file.len() / 2);
        (200, file, sent)
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn tar_gz(edition: &str, database: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let name = format!("{edition}/{edition}.mmdb");
    for (name, content) in [("LICENSE.txt", &b"Be kind."[..]), (name.as_str(), database)] {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content).expect("memory takes all");
    }
    gzip(&builder.into_inner().expect("memory takes all"))
}
