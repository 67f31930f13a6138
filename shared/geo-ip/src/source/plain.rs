//! A file at any address. The checksum next to it, or else `ETag` and `Last-Modified`, shows whether the file is new.

use percent_encoding::percent_decode_str;
use url::Url;

use super::offer::{Candidate, Checksum, DatabaseType, Offer, SourceAnswer, SourceError, sha256_of};
use crate::{
    download::Web,
    edition::EditionName,
    pointer::{Origin, Release},
};

const ASKING: &str = "requesting the checksum";

pub(super) async fn ask(
    url: &Url,
    sha256_url: Option<&Url>,
    edition: &EditionName,
    published: Option<&Release>,
    origin: Origin,
    web: &Web,
) -> Result<SourceAnswer, SourceError> {
    let mut checksum = None;
    if let Some(sha256_url) = sha256_url {
        let text = web.text(sha256_url, None).await.map_err(SourceError::download(ASKING))?;
        let what = "is not a SHA-256 in 64 hexadecimal digits";
        let file = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
        let file = percent_decode_str(file).decode_utf8_lossy();
        let sha256 = sha256_of(&text, &file).ok_or(SourceError::Answer { asking: ASKING, what })?;
        if published.is_some_and(|release| release.source.served_sha256.as_deref() == Some(&sha256)) {
            return Ok(SourceAnswer::Unchanged);
        }
        checksum = Some(Checksum::ServedSha256(sha256));
    }
    let mut candidate = Candidate::unless_published(url.clone(), published);
    if checksum.is_some() {
        // The checksum shows that the file has changed, so a 304 would contradict it.
        candidate.conditions.clear();
    }
    Ok(SourceAnswer::Offer(Box::new(Offer {
        candidates: vec![candidate],
        authorization: None,
        checksum,
        database_type: DatabaseType::Is(edition.to_string()),
        origin,
        attribution: None,
    })))
}
