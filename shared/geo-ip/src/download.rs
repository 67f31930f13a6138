//! Fetching from a provider: redirects are followed here, few and never to less security; credentials go to the first
//! server only; and what is downloaded goes to a file piece by piece, hashed on its way and bounded in size.

use std::{io, path::Path};

use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::{fs::File, io::AsyncWriteExt};
use url::Url;

use crate::hash::Sha256;
use outbound::{AttemptError, EndpointSettings, ResponseStream, StreamLimits, addresses::AddressRules, stream};

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// The largest answer that is read as a text: metadata and checksums are far smaller.
const MAX_TEXT: usize = 64 * 1024;
/// The largest file that is downloaded, compressed as it is.
pub const MAX_SERVED: u64 = 300 * 1024 * 1024;
/// How much is downloaded between two lines in the log.
const PROGRESS: u64 = 16 * 1024 * 1024;

/// The way to the providers.
#[derive(Debug, Clone, Default)]
pub struct Web {
    /// Whereto connections may be made.
    pub rules: AddressRules,
    /// How long each step may take.
    pub limits: StreamLimits,
}

/// A file that was downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Its size.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// What the server calls this state of it.
    pub etag: Option<String>,
    /// When the server says it last changed.
    pub last_modified: Option<String>,
}

/// How a download ended.
#[derive(Debug)]
pub enum Downloaded {
    /// The file is there.
    File(Served),
    /// The server has nothing new.
    NotModified,
}

/// Why something could not be fetched. No address is in it, since there may be a secret in one.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// There was no complete answer.
    #[error(transparent)]
    Exchange(#[from] AttemptError),
    /// The answer is a refusal.
    #[error("{}", told(.0))]
    Status(StatusCode),
    /// Too many redirects.
    #[error("there were more than {MAX_REDIRECTS} redirects")]
    TooManyRedirects,
    /// A redirect that is not followed.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// It is too large.
    #[error("the answer is larger than the {} MB that are read", .0 / (1024 * 1024))]
    TooLarge(u64),
    /// A text was expected.
    #[error("the answer is not a text of at most 64 KB")]
    NotText,
    /// It could not be kept.
    #[error("{}", on_disk(.0))]
    Disk(#[source] io::Error),
}

fn told(status: &StatusCode) -> String {
    let meaning = match status.as_u16() {
        401 | 403 => "the server refuses the credentials, or there are none",
        404 | 410 => "the server has no such file",
        429 => "the server's limit on downloads is reached",
        500.. => "the server has failed",
        _ => "the server's answer is none that helps",
    };
    format!("{meaning} (status {})", status.as_u16())
}

/// What a disk did not do, in words.
pub(super) fn on_disk(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "there is no room left on the disk".to_owned(),
        _ => "the file could not be written or read".to_owned(),
    }
}

impl Web {
    /// A way within these rules.
    pub fn within(rules: EndpointSettings) -> Self {
        Self { rules, limits: StreamLimits::default() }
    }

    /// Fetches a short text.
    pub async fn text(&self, url: &Url, authorization: Option<&HeaderValue>) -> Result<String, DownloadError> {
        let mut answer = self.open(url, &[], authorization).await?;
        if answer.head().status != StatusCode::OK {
            return Err(DownloadError::Status(answer.head().status));
        }
        let mut text = Vec::new();
        while let Some(piece) = answer.piece().await? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_TEXT {
                return Err(DownloadError::NotText);
            }
        }
        String::from_utf8(text).map_err(|_| DownloadError::NotText)
    }

    /// Downloads to a file, unless the conditions say that there is nothing new.
    pub async fn download(
        &self,
        url: &Url,
        conditions: &[(HeaderName, HeaderValue)],
        authorization: Option<&HeaderValue>,
        into: &Path,
        limit: u64,
    ) -> Result<Downloaded, DownloadError> {
        let mut answer = self.open(url, conditions, authorization).await?;
        match answer.head().status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if !conditions.is_empty() => return Ok(Downloaded::NotModified),
            status => return Err(DownloadError::Status(status)),
        }
        let announced = header_text(&answer, &header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        if announced.is_some_and(|length| length > limit) {
            return Err(DownloadError::TooLarge(limit)); // said before the first byte is paid for
        }
        let mut file = File::create(into).await.map_err(DownloadError::Disk)?;
        let (mut size, mut hash, mut told) = (0, Sha256::new(), 0);
        while let Some(piece) = answer.piece().await? {
            size += piece.len() as u64;
            if size > limit {
                return Err(DownloadError::TooLarge(limit));
            }
            hash.update(&piece);
            file.write_all(&piece).await.map_err(DownloadError::Disk)?;
            if size - told >= PROGRESS {
                told = size;
                tracing::info!(size, of = announced, "downloading a geo-IP database");
            }
        }
        file.flush().await.map_err(DownloadError::Disk)?;
        let (etag, last_modified) = (header_text(&answer, &header::ETAG), header_text(&answer, &header::LAST_MODIFIED));
        Ok(Downloaded::File(Served { size, sha256: hash.finish(), etag, last_modified }))
    }

    /// Asks for an address, and for those that it redirects to.
    async fn open(
        &self,
        url: &Url,
        headers: &[(HeaderName, HeaderValue)],
        authorization: Option<&HeaderValue>,
    ) -> Result<ResponseStream, DownloadError> {
        let (mut url, mut authorization) = (url.clone(), authorization);
        for _ in 0..=MAX_REDIRECTS {
            let mut sent = headers.to_vec();
            sent.extend(authorization.map(|value| (header::AUTHORIZATION, value.clone())));
            let answer = stream::get(&url, &sent, &self.rules, self.limits).await?;
            if !matches!(answer.head().status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            let next = header_text(&answer, &header::LOCATION).and_then(|location| url.join(&location).ok());
            let next = next.ok_or(DownloadError::Redirect("to nowhere"))?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(DownloadError::Redirect("from https to something less secure"));
            }
            // Scheme, host and port: credentials go to no other server, and not again on the way back.
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        Err(DownloadError::TooManyRedirects)
    }
}

/// A header that is one text of sensible length.
fn header_text(answer: &ResponseStream, name: &HeaderName) -> Option<String> {
    let value = answer.head().headers.get(name)?.to_str().ok()?;
    (value.len() <= 8192).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answering, Server};

    fn web() -> Web {
        Web::within(EndpointSettings {
            allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")],
            allow_http: true,
        })
    }

    fn basic() -> HeaderValue {
        HeaderValue::from_static("Basic c2VjcmV0")
    }

    #[tokio::test]
    async fn who_asks_is_told_to_the_first_server_only() {
        let other = Server::start(|_| Answering::ok("there")).await;
        let (elsewhere, back) = (other.url("/there"), other.url("/back"));
        let first = Server::start(move |request| match request.path.as_str() {
            "/same" => Answering::redirect("/other"),
            "/other" => Answering::redirect(elsewhere.as_str()),
            "/away" => Answering::redirect(back.as_str()),
            _ => Answering::ok("here"),
        })
        .await;
        assert_eq!(web().text(&first.url("/same"), Some(&basic())).await.expect("a text"), "there");
        let told: Vec<_> = first.requests().iter().map(|request| request.header("authorization")).collect();
        assert_eq!(told, [Some("Basic c2VjcmV0".to_owned()), Some("Basic c2VjcmV0".to_owned())]);
        assert_eq!(other.requests()[0].header("authorization"), None);
        assert_eq!(web().text(&first.url("/away"), Some(&basic())).await.expect("a text"), "there");
        assert_eq!(other.requests()[1].header("authorization"), None);
    }

    #[tokio::test]
    async fn redirects_end_somewhere() {
        let server = Server::start(|_| Answering::redirect("/again")).await;
        let error = web().text(&server.url("/"), None).await.expect_err("no end");
        assert!(matches!(error, DownloadError::TooManyRedirects), "{error}");
        assert_eq!(server.requests().len(), 6);
        let server = Server::start(|_| Answering::redirect("file:///etc/passwd")).await;
        assert!(matches!(
            web().text(&server.url("/"), None).await,
            Err(DownloadError::Exchange(AttemptError::Blocked(_)))
        ));
    }

    #[tokio::test]
    async fn a_refusal_is_asked_once_and_a_broken_connection_twice() {
        for status in [401, 403, 404, 429, 500, 503] {
            let server = Server::start(move |_| Answering::status(status)).await;
            let error = web().text(&server.url("/"), None).await.expect_err("a refusal");
            assert!(error.to_string().contains(&status.to_string()), "{error}");
            assert_eq!(server.requests().len(), 1);
        }
        let server = Server::start(|_| Answering::nothing()).await;
        let error = web().text(&server.url("/"), None).await.expect_err("no answer");
        assert!(matches!(error, DownloadError::Exchange(AttemptError::Connect(_))), "{error}");
        assert_eq!(server.requests().len(), 2);
    }

    #[tokio::test]
    async fn what_is_cut_off_or_too_large_is_no_download() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("served");
        let server = Server::start(|request| match request.path.as_str() {
            "/cut" => Answering::ok("0123456789").cut_after(5),
            "/cut-chunks" => Answering::ok("0123456789").chunked().cut_after(5),
            "/chunks" => Answering::ok("0123456789").chunked(),
            _ => Answering::ok("0123456789").with_header("etag", "\"e\""),
        })
        .await;
        let download = async |path: &str, limit| web().download(&server.url(path), &[], None, &file, limit).await;
        for path in ["/cut", "/cut-chunks"] {
            assert!(
                matches!(download(path, 10).await, Err(DownloadError::Exchange(AttemptError::Connect(_)))),
                "{path}"
            );
        }
        for path in ["/", "/chunks"] {
            assert!(matches!(download(path, 9).await, Err(DownloadError::TooLarge(9))), "{path}");
            let Ok(Downloaded::File(served)) = download(path, 10).await else { panic!("{path}") };
            assert_eq!((served.size, served.sha256), (10, super::super::hash::sha256(b"0123456789")));
            assert_eq!(served.etag.is_some(), path == "/");
        }
        assert_eq!(std::fs::read(&file).expect("kept"), b"0123456789");
    }

    #[tokio::test]
    async fn a_server_that_has_nothing_new_is_believed_only_when_it_was_asked_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("served");
        let server = Server::start(|_| Answering::status(304)).await;
        let conditions = [(header::IF_NONE_MATCH, HeaderValue::from_static("\"e\""))];
        let asked = web().download(&server.url("/"), &conditions, None, &file, 10).await;
        assert!(matches!(asked, Ok(Downloaded::NotModified)));
        let unasked = web().download(&server.url("/"), &[], None, &file, 10).await;
        assert!(matches!(unasked, Err(DownloadError::Status(StatusCode::NOT_MODIFIED))));
        assert_eq!(server.requests()[0].header("if-none-match").as_deref(), Some("\"e\""));
    }

    #[tokio::test]
    async fn a_server_that_falls_silent_is_given_up() {
        let server = Server::start(|_| Answering::ok("0123456789").silent_after(5)).await;
        let folder = tempfile::tempdir().expect("a folder");
        let limits = StreamLimits { idle: std::time::Duration::from_millis(200), ..StreamLimits::default() };
        let web = Web { limits, ..web() };
        let error = web.download(&server.url("/"), &[], None, &folder.path().join("served"), 10).await;
        assert!(matches!(error, Err(DownloadError::Exchange(AttemptError::Timeout(_)))), "{error:?}");
    }
}
