//! MaxMind's update server: first the date and the checksum, which cost no download, then the file.
//! <https://dev.maxmind.com/geoip/updating-databases/>

use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderValue;
use serde::Deserialize;
use url::Url;

use super::offer::{Candidate, Checksum, DatabaseType, Offer, SourceAnswer, SourceError, address};
use crate::{
    download::Web,
    edition::EditionName,
    pointer::{Origin, Release},
};
use storage::SecretText;

const SERVER: &str = "https://updates.maxmind.com";
const ASKING: &str = "requesting the newest release from MaxMind";
const ATTRIBUTION: &str =
    "This product includes GeoLite Data created by MaxMind, available from https://www.maxmind.com.";

#[derive(Deserialize)]
struct Metadata {
    databases: Vec<Database>,
}

#[derive(Deserialize)]
struct Database {
    edition_id: String,
    md5: String,
    date: String,
}

pub(super) async fn ask(
    server: Option<&Url>,
    account_id: &str,
    license_key: &SecretText,
    edition: &EditionName,
    published: Option<&Release>,
    origin: Origin,
    web: &Web,
) -> Result<SourceAnswer, SourceError> {
    let authorization = basic(account_id, license_key);
    let mut url = address(server, SERVER, "/geoip/updates/metadata");
    url.query_pairs_mut().append_pair("edition_id", edition.as_str());
    let text = web.text(&url, authorization.as_ref()).await.map_err(SourceError::download(ASKING))?;
    let wrong = |what| SourceError::Answer { asking: ASKING, what };
    let metadata: Metadata = serde_json::from_str(&text).map_err(|_| wrong("is not the expected JSON"))?;
    let newest = metadata.databases.into_iter().find(|database| database.edition_id == edition.as_str());
    let Database { md5, date, .. } = newest.ok_or_else(|| wrong("lists other editions"))?;
    let md5 = md5.to_ascii_lowercase();
    if md5.len() != 32 || !md5.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong("has no checksum"));
    }
    let day: String = date.chars().filter(|character| *character != '-').collect();
    if day.len() != 8 || !day.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("has no date"));
    }
    if published.is_some_and(|release| release.source.md5.as_deref() == Some(&md5)) {
        return Ok(SourceAnswer::Unchanged);
    }
    let mut url = address(server, SERVER, &format!("/geoip/databases/{edition}/download"));
    url.query_pairs_mut().append_pair("date", &day).append_pair("suffix", "tar.gz");
    Ok(SourceAnswer::Offer(Box::new(Offer {
        candidates: vec![Candidate { url, conditions: Vec::new(), date: Some(date) }],
        authorization,
        checksum: Some(Checksum::DatabaseMd5(md5.clone())),
        database_type: DatabaseType::Is(edition.to_string()),
        origin: Origin { md5: Some(md5), ..origin },
        attribution: edition.as_str().starts_with("GeoLite2").then_some(ATTRIBUTION),
    })))
}

fn basic(account_id: &str, license_key: &SecretText) -> Option<HeaderValue> {
    let credentials = BASE64_STANDARD.encode(format!("{account_id}:{}", license_key.expose()));
    let mut value = HeaderValue::from_str(&format!("Basic {credentials}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
