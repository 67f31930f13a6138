//! A provider of geo-IP databases on plain TCP: MaxMind's update server, and files with checksum files at any path. It
//! counts requests, and misbehaves on request.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use md5::{Digest, Md5};
use serde_json::json;
use tar::{EntryType, Header};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Behaviour, LONG, Received, http::serve, locked, until};

/// The only account that exists.
pub const ACCOUNT: &str = "123456";
/// The account's licence key, which contains characters that clients must encode.
pub const LICENCE_KEY: &str = "k3y:with/colon+and=more";

/// A listening server, which stops when it is dropped.
pub struct UpdateServer {
    /// The server's address.
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    editions: Mutex<HashMap<String, Edition>>,
    files: Mutex<HashMap<String, Vec<u8>>>,
    instead: Mutex<HashMap<String, Vec<Behaviour>>>,
    received: Mutex<Vec<Received>>,
}

/// MaxMind's data for an edition.
struct Edition {
    date: String,
    md5: String,
    archive: Vec<u8>,
    refused: bool,
}

impl UpdateServer {
    /// A server on a free port, at first without databases.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State::default());
        let serving = Arc::clone(&state);
        let accepting = serve(listener, move |received| serving.answer(received));
        Self { address, state, accepting }
    }

    /// The URL for a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves this edition's database as MaxMind does: in an archive with the licence.
    pub fn offer(&self, edition: &str, date: &str, database: &[u8]) {
        self.offer_archive(edition, date, &md5(database), archive(edition, database));
    }

    /// Serves this archive, announcing this checksum for its database.
    pub fn offer_archive(&self, edition: &str, date: &str, md5: &str, archive: Vec<u8>) {
        let offered = Edition { date: date.to_owned(), md5: md5.to_owned(), archive, refused: false };
        locked(&self.state.editions).insert(edition.to_owned(), offered);
    }

    /// From now on, refuses every licence key for an edition.
    pub fn refuse(&self, edition: &str) {
        if let Some(edition) = locked(&self.state.editions).get_mut(edition) {
            edition.refused = true;
        }
    }

    /// Serves a file at a path; its `ETag` is its checksum.
    pub fn serve(&self, path: &str, file: impl Into<Vec<u8>>) {
        locked(&self.state.files).insert(path.to_owned(), file.into());
    }

    /// Sets misbehaviours for requests to a path, with any query: one per request, after which normal responses resume.
    pub fn instead(&self, path: &str, script: impl Into<Vec<Behaviour>>) {
        locked(&self.state.instead).insert(path.to_owned(), script.into());
    }

    /// The requests so far to a path, with any query.
    pub fn received(&self, path: &str) -> Vec<Received> {
        let received = locked(&self.state.received);
        received.iter().filter(|received| path_of(received) == path).cloned().collect()
    }

    /// Waits for `count` requests to a path.
    pub async fn until(&self, path: &str, count: usize) {
        until(&format!("{count} requests to {path}"), LONG, async || {
            (self.received(path).len() >= count).then_some(())
        })
        .await;
    }

    /// Forgets all requests so far.
    pub fn forget(&self) {
        locked(&self.state.received).clear();
    }

    /// MaxMind's path for edition metadata.
    pub const METADATA: &str = "/geoip/updates/metadata";

    /// MaxMind's path for an edition.
    pub fn download(edition: &str) -> String {
        format!("/geoip/databases/{edition}/download")
    }

    /// The requests for an edition's metadata.
    pub fn metadata_requests(&self, edition: &str) -> usize {
        let wanted = format!("{}?edition_id={edition}", Self::METADATA);
        locked(&self.state.received).iter().filter(|received| received.path == wanted).count()
    }
}

impl Drop for UpdateServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl State {
    fn answer(&self, received: Received) -> Behaviour {
        let behaviour = self.instead(&received).unwrap_or_else(|| self.as_it_should_be(&received));
        locked(&self.received).push(received);
        behaviour
    }

    fn instead(&self, received: &Received) -> Option<Behaviour> {
        let mut instead = locked(&self.instead);
        let script = instead.get_mut(path_of(received))?;
        (!script.is_empty()).then(|| script.remove(0))
    }

    fn as_it_should_be(&self, received: &Received) -> Behaviour {
        let path = path_of(received);
        if let Some(file) = locked(&self.files).get(path) {
            let etag = format!("\"{}\"", sha256(file));
            let headers = [("ETag", etag.as_str())];
            return if received.header("if-none-match") == etag {
                Behaviour::answer(304, &headers, "")
            } else {
                Behaviour::answer(200, &headers, file)
            };
        }
        let editions = locked(&self.editions);
        let query = received.path.split_once('?').map_or("", |(_, query)| query);
        let asked = if path == UpdateServer::METADATA {
            query.strip_prefix("edition_id=")
        } else {
            path.strip_prefix("/geoip/databases/").and_then(|rest| rest.strip_suffix("/download"))
        };
        let Some((name, edition)) = asked.and_then(|asked| editions.get_key_value(asked)) else {
            return Behaviour::status(404);
        };
        let credentials = BASE64_STANDARD.encode(format!("{ACCOUNT}:{LICENCE_KEY}"));
        if edition.refused || received.header("authorization") != format!("Basic {credentials}") {
            return Behaviour::status(401);
        }
        if path == UpdateServer::METADATA {
            let about = json!({ "edition_id": name, "md5": edition.md5, "date": edition.date });
            return Behaviour::answer(200, &[], json!({ "databases": [about] }).to_string());
        }
        if query != format!("date={}&suffix=tar.gz", edition.date.replace('-', "")) {
            return Behaviour::status(404);
        }
        Behaviour::answer(200, &[], &edition.archive)
    }
}

fn path_of(received: &Received) -> &str {
    received.path.split('?').next().unwrap_or_default()
}

/// An archive that contains a database with its licence, like MaxMind's.
pub fn archive(edition: &str, database: &[u8]) -> Vec<u8> {
    let name = |file: &str| format!("{edition}_20261117/{file}");
    gzip(&tar(&[
        (&name("COPYRIGHT.txt"), b"Nobody's, it is made for a test."),
        (&name("LICENSE.txt"), b"Be kind."),
        (&name(&format!("{edition}.mmdb")), database),
    ]))
}

/// An archive of these members, whose names are arbitrary.
///
/// # Panics
/// Fails if a name does not fit into a header.
pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = Header::new_ustar();
        // Bypass the library's check, which refuses the same names that a client must refuse.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).expect("memory takes everything");
    }
    builder.into_inner().expect("memory takes everything")
}

/// Compresses bytes with gzip.
///
/// # Panics
/// Never fails, since writing to memory cannot fail.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

/// The MD5 hash, in lower-case hexadecimal.
pub fn md5(content: &[u8]) -> String {
    hexadecimal(&Md5::digest(content))
}

/// The SHA-256 hash, in lower-case hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    hexadecimal(digest::digest(&digest::SHA256, content).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
