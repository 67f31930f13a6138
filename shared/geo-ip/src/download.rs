//! Downloads from providers. At most five redirects are followed, never from https to http, and only the first server
//! gets credentials. A download is written to a file in chunks, hashed, and limited in size.

use std::{io, path::Path, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::{fs::File, io::AsyncWriteExt, time::Instant};
use url::Url;

use crate::hash::Sha256;
use outbound::{AddressRules, AttemptError, ResponseStream, SharedNetwork, StreamLimits, SystemNetwork, stream};

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// The maximum size of a text response, in bytes. Metadata and checksums are far smaller.
const MAX_TEXT: usize = 64 * 1024;
/// The largest download, in bytes.
pub const MAX_SERVED: u64 = 300 * 1024 * 1024;
/// The number of bytes between two progress lines in the log.
const PROGRESS: u64 = 16 * 1024 * 1024;

/// A client for providers.
#[derive(Debug, Clone)]
pub struct Web {
    pub rules: AddressRules,
    pub limits: StreamLimits,
    pub minimum_rate: MinimumRate,
    pub network: SharedNetwork,
}

/// The minimum rate of a response in each time window. Without it, a server that trickles bytes could use up a run's
/// time.
#[derive(Debug, Clone, Copy)]
pub struct MinimumRate {
    pub window: Duration,
    pub bytes: u64,
}

impl Default for MinimumRate {
    /// At this rate a database of 60 MB takes half an hour, which is longer than a run.
    fn default() -> Self {
        Self { window: Duration::from_secs(30), bytes: 1024 * 1024 }
    }
}

/// The current time window of a response.
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

    /// Counts received bytes, and fails at the end of a window with too few.
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

/// A downloaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    pub size: u64,
    pub sha256: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// A download's outcome.
#[derive(Debug)]
pub enum Downloaded {
    /// The file was downloaded.
    File(Served),
    /// The file has not changed.
    NotModified,
}

/// A download failed. The error contains no URL, since a URL may contain a secret.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error(transparent)]
    Exchange(#[from] AttemptError),
    #[error("{}", refusal(.0))]
    Status(StatusCode),
    #[error("the server redirected more than {MAX_REDIRECTS} times")]
    TooManyRedirects,
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    #[error("the response is larger than the limit of {} MB", .0 / (1024 * 1024))]
    TooLarge(u64),
    #[error(
        "the download was stopped because the server is too slow: less than {} KB arrived in {} seconds",
        .0.bytes / 1024, .0.window.as_secs()
    )]
    TooSlow(MinimumRate),
    #[error("the response is not text, or exceeds 64 KB")]
    NotText,
    #[error("{}", on_disk(.0))]
    Disk(#[source] io::Error),
}

fn refusal(status: &StatusCode) -> String {
    let meaning = match status.as_u16() {
        401 | 403 => "the server refused the credentials, or none are configured",
        404 | 410 => "the server does not have the file",
        429 => "the server's download limit is reached",
        500.. => "the server failed",
        _ => "the server's response is unexpected",
    };
    format!("{meaning} (status {})", status.as_u16())
}

/// A disk error as a sentence.
pub(super) fn on_disk(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
        _ => "the file could not be written or read".to_owned(),
    }
}

impl Web {
    /// A client with these rules.
    pub fn within(rules: AddressRules) -> Self {
        let network = Arc::new(SystemNetwork);
        Self { rules, limits: StreamLimits::default(), minimum_rate: MinimumRate::default(), network }
    }

    /// Fetches a short text.
    pub async fn text(&self, url: &Url, authorization: Option<&HeaderValue>) -> Result<String, DownloadError> {
        let mut answer = self.open(url, &[], authorization).await?;
        if answer.head().status != StatusCode::OK {
            return Err(DownloadError::Status(answer.head().status));
        }
        let mut text = Vec::new();
        let mut pace = Pace::new(self.minimum_rate, Instant::now());
        while let Some(chunk) = answer.chunk().await? {
            pace.count(chunk.len(), Instant::now())?;
            text.extend_from_slice(&chunk);
            if text.len() > MAX_TEXT {
                return Err(DownloadError::NotText);
            }
        }
        String::from_utf8(text).map_err(|_| DownloadError::NotText)
    }

    /// Downloads to a file, unless the conditions show that it has not changed.
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
            return Err(DownloadError::TooLarge(limit)); // before the download begins
        }
        let mut file = File::create(into).await.map_err(DownloadError::Disk)?;
        let mut size = 0;
        let mut hash = Sha256::new();
        let mut logged = 0;
        let mut pace = Pace::new(self.minimum_rate, Instant::now());
        while let Some(chunk) = answer.chunk().await? {
            pace.count(chunk.len(), Instant::now())?;
            size += chunk.len() as u64;
            if size > limit {
                return Err(DownloadError::TooLarge(limit));
            }
            hash.update(&chunk);
            file.write_all(&chunk).await.map_err(DownloadError::Disk)?;
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

    /// Sends a GET request, and follows redirects.
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
            let answer = stream::get(&url, &sent, &self.rules, self.limits, &*self.network).await?;
            if !matches!(answer.head().status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            let next = header_text(&answer, &header::LOCATION).and_then(|location| url.join(&location).ok());
            let next = next.ok_or(DownloadError::Redirect("without an address"))?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(DownloadError::Redirect("from https to a less secure scheme"));
            }
            // Never send credentials to another scheme, host or port, not even after a redirect back.
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        Err(DownloadError::TooManyRedirects)
    }
}

/// A header's value, if it is a string of reasonable length.
fn header_text(answer: &ResponseStream, name: &HeaderName) -> Option<String> {
    let value = answer.head().headers.get(name)?.to_str().ok()?;
    (value.len() <= 8192).then(|| value.to_owned())
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
