//! A source's offer: a database's addresses, its type, and its checksum.

use http::{HeaderName, HeaderValue, header};
use url::Url;

use crate::{
    download::DownloadError,
    hash,
    pointer::{Origin, Release},
};

/// A source's response.
#[derive(Debug)]
pub enum SourceAnswer {
    /// The published release is the newest.
    Unchanged,
    /// There is, or may be, a newer release.
    Offer(Box<Offer>),
}

/// A release that can be downloaded.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The addresses. The first one that exists is downloaded.
    pub candidates: Vec<Candidate>,
    /// The credentials, sent to the candidates' own servers only.
    pub authorization: Option<HeaderValue>,
    pub checksum: Option<Checksum>,
    pub database_type: DatabaseType,
    /// The part of the release's origin that is known before the download.
    pub origin: Origin,
    /// The attribution that must be shown with the data.
    pub attribution: Option<&'static str>,
}

/// An address, with the download's conditions.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub url: Url,
    /// A conditional request's headers.
    pub conditions: Vec<(HeaderName, HeaderValue)>,
    /// The provider's date of the file.
    pub date: Option<String>,
}

/// A provider's checksum, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// The MD5 of the database.
    DatabaseMd5(String),
    /// The SHA-256 of the served file, compressed.
    ServedSha256(String),
}

/// The required type of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseType {
    /// This type.
    Is(String),
    /// This type with any suffix, such as a version.
    BeginsWith(&'static str),
}

/// Why querying a source failed.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{asking}")]
    Download {
        asking: &'static str,
        /// The download's error.
        source: DownloadError,
    },
    #[error("{asking}: the answer {what}")]
    Answer { asking: &'static str, what: &'static str },
}

impl SourceError {
    pub(super) fn download(asking: &'static str) -> impl Fn(DownloadError) -> Self {
        move |source| Self::Download { asking, source }
    }
}

impl DatabaseType {
    /// Whether a database of this type is admitted.
    pub fn admits(&self, database_type: &str) -> bool {
        match self {
            Self::Is(wanted) => database_type == wanted,
            Self::BeginsWith(wanted) => database_type.starts_with(wanted),
        }
    }
}

impl std::fmt::Display for DatabaseType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Is(wanted) => write!(f, "`{wanted}`"),
            Self::BeginsWith(wanted) => write!(f, "`{wanted}…`"),
        }
    }
}

impl Candidate {
    /// A candidate that is downloaded only if it differs from the published release.
    pub(super) fn unless_published(url: Url, published: Option<&Release>) -> Self {
        let same =
            published.filter(|release| release.source.address_sha256.as_deref() == Some(&Self::fingerprint(&url)));
        let conditions = same.into_iter().flat_map(|release| {
            let Origin { etag, last_modified, .. } = &release.source;
            [(header::IF_NONE_MATCH, etag), (header::IF_MODIFIED_SINCE, last_modified)]
        });
        let conditions = conditions
            .filter_map(|(name, value)| Some((name, HeaderValue::from_str(value.as_deref()?).ok()?)))
            .collect();
        Self { url, conditions, date: None }
    }

    /// A hash that identifies this address without revealing it.
    pub fn fingerprint(url: &Url) -> String {
        hash::sha256(url.as_str().as_bytes())
    }
}

/// A path on the provider's server, or on the configured replacement.
pub(super) fn address(server: Option<&Url>, own: &'static str, path: &str) -> Url {
    let mut url = server.cloned().unwrap_or_else(|| Url::parse(own).expect("the provider's address is an address"));
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{base}{path}"));
    url
}

/// Finds a file's SHA-256 in the formats of common tools: the digits alone, `sha256sum` lines (`digits name`, or
/// `digits *name`), or lines of BSD and OpenSSL (`SHA256 (name) = digits`). If there is only one checksum, it counts
/// regardless of the name.
pub(super) fn sha256_of(text: &str, file: &str) -> Option<String> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    let all: Vec<_> = lines.filter_map(|line| line_of_sha256sum(line).or_else(|| line_of_bsd(line))).collect();
    let named = |name: &str| name.rsplit(['/', '\\']).next() == Some(file);
    let mut ours: Vec<_> = match all.as_slice() {
        [(digits, _)] => vec![digits],
        several => several.iter().filter(|(_, name)| named(name)).map(|(digits, _)| digits).collect(),
    };
    ours.dedup();
    // If two checksums for the file differ, use neither.
    if let [digits] = ours.as_slice() { Some((*digits).clone()) } else { None }
}

/// The digits and the file's name, if there is one.
fn line_of_sha256sum(line: &str) -> Option<(String, &str)> {
    let (digits, name) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
    Some((sha256_digits(digits)?, name.trim_start().trim_start_matches('*')))
}

fn line_of_bsd(line: &str) -> Option<(String, &str)> {
    let (before, digits) = line.trim().rsplit_once('=')?;
    let (algorithm, name) = before.trim_end().strip_suffix(')')?.split_once('(')?;
    let sha256 = ["sha256", "sha2-256"].iter().any(|known| algorithm.trim().eq_ignore_ascii_case(known));
    Some((sha256_digits(digits.trim()).filter(|_| sha256)?, name))
}

fn sha256_digits(text: &str) -> Option<String> {
    (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointer::tests::release;

    #[test]
    fn a_checksum_is_read_as_every_tool_writes_it() {
        let ours = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";
        let other = "f".repeat(64);
        let file = "City 1.mmdb.gz";
        for good in [
            ours.to_owned(),
            format!("\u{feff}\n {ours}\r\n"),
            format!("{ours}  another-name.gz\n"),
            format!("{ours} *{file}"),
            format!("SHA256 ({file}) = {ours}\n"),
            format!("SHA2-256(./dist/{file})= {ours}"),
            format!("{other}  other.gz\n{ours}  dist/{file}\n"),
            format!("# sums\n{ours} *{file}\r\n{other} *x{file}\r\n"),
            format!("MD5 ({file}) = {}\nSHA256 ({file}) = {ours}\nSHA256 (other) = {other}\n", "a".repeat(32)),
            format!("{ours}  {file}\n{}  {file}\n", "a".repeat(128)),
            format!("{ours}  {file}\n{ours}  {file}\n{other}  other"),
        ] {
            assert_eq!(sha256_of(&good, file), Some(ours.to_lowercase()), "{good}");
        }
        for bad in [
            String::new(),
            ours[1..].to_owned(),
            format!("{ours}0"),
            ours.replace('0', "g"),
            "ä".repeat(64),
            format!("SHA512 ({file}) = {ours}"),
            format!("{ours}  one.gz\n{other}  two.gz"),
            format!("{ours}  {file}\n{other}  {file}"),
        ] {
            assert_eq!(sha256_of(&bad, file), None, "{bad}");
        }
    }

    #[test]
    fn the_tag_of_one_address_is_no_condition_for_another() {
        let url = |text: &str| Url::parse(text).expect("an address");
        let mut published = release("a", 1);
        published.source.etag = Some("\"1\"".into());
        published.source.address_sha256 = Some(Candidate::fingerprint(&url("https://example.com/a")));
        let conditions = |text| Candidate::unless_published(url(text), Some(&published)).conditions;
        assert_eq!(conditions("https://example.com/a"), [(header::IF_NONE_MATCH, HeaderValue::from_static("\"1\""))]);
        assert_eq!(conditions("https://example.com/b"), []);
    }

    #[test]
    fn a_path_is_put_behind_the_configured_server() {
        let server = |text: &str| Url::parse(text).expect("an address");
        for (base, whole) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/a/b"),
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000/a/b"),
            ("https://mirror.example.com/maxmind/", "https://mirror.example.com/maxmind/a/b"),
        ] {
            assert_eq!(address(Some(&server(base)), "https://own.example", "/a/b").as_str(), whole);
        }
        assert_eq!(address(None, "https://own.example", "/a/b").as_str(), "https://own.example/a/b");
    }
}
