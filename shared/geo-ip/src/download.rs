//! Fetching from a provider. Few redirects are followed, never to less security, and credentials go to the first server
//! only. A download goes to a file piece by piece, hashed on its way and bounded in size.

use std::{io, path::Path, time::Duration};

use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::{fs::File, io::AsyncWriteExt, time::Instant};
use url::Url;

use crate::hash::Sha256;
use outbound::{AddressRules, AttemptError, ResponseStream, StreamLimits, stream};

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// The largest answer that is read as a text: metadata and checksums are far smaller.
const MAX_TEXT: usize = 64 * 1024;
/// The largest file that is downloaded, compressed as it is.
pub const MAX_SERVED: u64 = 300 * 1024 * 1024;
/// How much is downloaded between two lines in the log.
const PROGRESS: u64 = 16 * 1024 * 1024;

/// Fetches from providers.
#[derive(Debug, Clone, Default)]
pub struct Web {
    pub rules: AddressRules,
    pub limits: StreamLimits,
    pub minimum_rate: MinimumRate,
}

/// How much must come of an answer in each window of time. A server that sends a byte now and then would otherwise use the
/// whole time of a run.
#[derive(Debug, Clone, Copy)]
pub struct MinimumRate {
    pub window: Duration,
    pub bytes: u64,
}

impl Default for MinimumRate {
    /// A database of 60 MB takes half an hour at this rate, longer than a run, so that no slower server is of use.
    fn default() -> Self {
        Self { window: Duration::from_secs(30), bytes: 1024 * 1024 }
    }
}

/// The present window of an answer.
#[derive(Debug)]
struct Pace {
    rate: MinimumRate,
    began: Instant,
    received: u64,
}

impl Pace {
    fn new(rate: MinimumRate, now: Instant) -> Self {
        Self { rate, began: now, received: 0 }
    }

    /// Counts bytes that came, and fails at the end of a window in which too few came.
    fn count(&mut self, bytes: usize, now: Instant) -> Result<(), DownloadError> {
        self.received += bytes as u64;
        if now.duration_since(self.began) < self.rate.window {
            return Ok(());
        }
        if self.received < self.rate.bytes {
            return Err(DownloadError::TooSlow(self.rate));
        }
        *self = Self::new(self.rate, now);
        Ok(())
    }
}

/// A file that was downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    pub size: u64,
    pub sha256: String,
    pub etag: Option<String>,
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
    #[error(transparent)]
    Exchange(#[from] AttemptError),
    #[error("{}", refusal(.0))]
    Status(StatusCode),
    #[error("there were more than {MAX_REDIRECTS} redirects")]
    TooManyRedirects,
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    #[error("the answer is larger than the {} MB that are read", .0 / (1024 * 1024))]
    TooLarge(u64),
    #[error(
        "the server sends too slowly: less than {} KB came in {} seconds, and the download was given up",
        .0.bytes / 1024, .0.window.as_secs()
    )]
    TooSlow(MinimumRate),
    #[error("the answer is not a text of at most 64 KB")]
    NotText,
    #[error("{}", on_disk(.0))]
    Disk(#[source] io::Error),
}

fn refusal(status: &StatusCode) -> String {
    let meaning = match status.as_u16() {
        401 | 403 => "the server refuses the credentials, or there are none",
        404 | 410 => "the server has no such file",
        429 => "the server's limit on downloads is reached",
        500.. => "the server has failed",
        _ => "the server's answer is none that helps",
    };
    format!("{meaning} (status {})", status.as_u16())
}

/// A sentence about an error of the disk.
pub(super) fn on_disk(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "there is no room left on the disk".to_owned(),
        _ => "the file could not be written or read".to_owned(),
    }
}

impl Web {
    /// Fetches within these rules.
    pub fn within(rules: AddressRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Fetches a short text.
    pub async fn text(&self, url: &Url, authorization: Option<&HeaderValue>) -> Result<String, DownloadError> {
        let mut answer = self.open(url, &[], authorization).await?;
        if answer.head().status != StatusCode::OK {
            return Err(DownloadError::Status(answer.head().status));
        }
        let mut text = Vec::new();
        let mut pace = Pace::new(self.minimum_rate, Instant::now());
        while let Some(piece) = answer.piece().await? {
            pace.count(piece.len(), Instant::now())?;
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
            return Err(DownloadError::TooLarge(limit)); // before the first byte is paid for
        }
        let mut file = File::create(into).await.map_err(DownloadError::Disk)?;
        let mut size = 0;
        let mut hash = Sha256::new();
        let mut logged = 0;
        let mut pace = Pace::new(self.minimum_rate, Instant::now());
        while let Some(piece) = answer.piece().await? {
            pace.count(piece.len(), Instant::now())?;
            size += piece.len() as u64;
            if size > limit {
                return Err(DownloadError::TooLarge(limit));
            }
            hash.update(&piece);
            file.write_all(&piece).await.map_err(DownloadError::Disk)?;
            if size - logged >= PROGRESS {
                logged = size;
                tracing::info!(size, of = announced, "downloading a geo-IP database");
            }
        }
        file.flush().await.map_err(DownloadError::Disk)?;
        let etag = header_text(&answer, &header::ETAG);
        let last_modified = header_text(&answer, &header::LAST_MODIFIED);
        Ok(Downloaded::File(Served { size, sha256: hash.finish(), etag, last_modified }))
    }

    /// Asks for an address, and for those that it redirects to.
    async fn open(
        &self,
        url: &Url,
        headers: &[(HeaderName, HeaderValue)],
        authorization: Option<&HeaderValue>,
    ) -> Result<ResponseStream, DownloadError> {
        let mut url = url.clone();
        let mut authorization = authorization;
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
#[path = "download_tests.rs"]
mod tests;
