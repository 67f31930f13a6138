//! The free database of IPinfo. A redirect leads to the file on another server, which never gets the token.
//! <https://ipinfo.io/developers/ipinfo-lite-database>

use serde::Deserialize;
use url::Url;

use super::offer::{Candidate, Checksum, DatabaseType, Offer, SourceAnswer, SourceError, address, sha256_of};
use crate::{
    download::Web,
    pointer::{Origin, Release},
};
use storage::SecretText;

const SERVER: &str = "https://ipinfo.io";
const ASKING: &str = "requesting the checksum from IPinfo";
const ATTRIBUTION: &str = "IP address data powered by IPinfo, https://ipinfo.io (CC BY-SA 4.0).";

/// The one edition.
pub(super) const EDITION: &str = "ipinfo_lite";

#[derive(Deserialize)]
struct Answered {
    checksums: Checksums,
}

#[derive(Deserialize)]
struct Checksums {
    sha256: String,
}

pub(super) async fn ask(
    server: Option<&Url>,
    token: &SecretText,
    published: Option<&Release>,
    origin: Origin,
    web: &Web,
) -> Result<SourceAnswer, SourceError> {
    let with_token = |path: &str| {
        let mut url = address(server, SERVER, path);
        url.query_pairs_mut().append_pair("token", token.expose());
        url
    };
    let url = with_token("/data/ipinfo_lite.mmdb/checksums");
    let text = web.text(&url, None).await.map_err(SourceError::download(ASKING))?;
    let answered: Option<Answered> = serde_json::from_str(&text).ok();
    let sha256 = answered.and_then(|answered| sha256_of(&answered.checksums.sha256, EDITION));
    let sha256 = sha256.ok_or(SourceError::Answer { asking: ASKING, what: "is not the expected JSON" })?;
    if published.is_some_and(|release| release.source.served_sha256.as_deref() == Some(&sha256)) {
        return Ok(SourceAnswer::Unchanged);
    }
    let url = with_token("/data/ipinfo_lite.mmdb");
    Ok(SourceAnswer::Offer(Box::new(Offer {
        candidates: vec![Candidate { url, conditions: Vec::new(), date: None }],
        authorization: None,
        checksum: Some(Checksum::ServedSha256(sha256)),
        database_type: DatabaseType::BeginsWith("ipinfo"),
        origin,
        attribution: Some(ATTRIBUTION),
    })))
}
