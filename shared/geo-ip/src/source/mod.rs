//! The sources of databases. A source is asked for something newer than the published release, and answers with an
//! offer.

mod db_ip;
mod ipinfo;
mod maxmind;
mod offer;
mod plain;

use url::Url;

use crate::{
    download::Web,
    edition::EditionName,
    pointer::{Origin, Release},
};
use base::Time;
pub use offer::{Candidate, Checksum, DatabaseType, Offer, SourceAnswer, SourceError};
use storage::SecretText;

/// A source, as it is configured. A `server` is another address than the provider's own.
#[derive(Debug, Clone)]
pub enum Source {
    /// MaxMind's update server, for GeoLite and GeoIP databases.
    MaxMind {
        /// Instead of `https://updates.maxmind.com`.
        server: Option<Url>,
        account_id: String,
        license_key: SecretText,
    },
    /// A file at an address: `.mmdb`, `.mmdb.gz` or `.tar.gz`.
    Plain {
        /// Its address; there may be a secret in its query.
        url: Url,
        /// Where its SHA-256 is, if anywhere.
        sha256_url: Option<Url>,
    },
    /// The free databases of DB-IP, one file a month.
    DbIpLite {
        /// Instead of `https://download.db-ip.com`.
        server: Option<Url>,
    },
    /// The free database of IPinfo.
    IpInfoLite {
        /// Instead of `https://ipinfo.io`.
        server: Option<Url>,
        token: SecretText,
    },
}

impl Source {
    /// The kind, as the configuration has it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MaxMind { .. } => "maxmind",
            Self::Plain { .. } => "url",
            Self::DbIpLite { .. } => "db-ip-lite",
            Self::IpInfoLite { .. } => "ipinfo-lite",
        }
    }

    /// The only editions that this source has, where they are known.
    pub fn editions(&self) -> Option<Vec<&'static str>> {
        match self {
            Self::DbIpLite { .. } => Some(db_ip::EDITIONS.iter().map(|(name, _)| *name).collect()),
            Self::IpInfoLite { .. } => Some(vec![ipinfo::EDITION]),
            Self::MaxMind { .. } | Self::Plain { .. } => None,
        }
    }

    /// Asks for something newer than the published release.
    pub async fn ask(
        &self,
        edition: &EditionName,
        published: Option<&Release>,
        web: &Web,
        now: Time,
    ) -> Result<SourceAnswer, SourceError> {
        // Tags and dates of the published release are good only for the kind of source that gave them.
        let published = published.filter(|release| release.source.kind == self.kind());
        let origin = Origin { kind: self.kind().to_owned(), ..Origin::default() };
        match self {
            Self::MaxMind { server, account_id, license_key } => {
                maxmind::ask(server.as_ref(), account_id, license_key, edition, published, origin, web).await
            }
            Self::Plain { url, sha256_url } => {
                plain::ask(url, sha256_url.as_ref(), edition, published, origin, web).await
            }
            Self::DbIpLite { server } => Ok(db_ip::ask(server.as_ref(), edition, published, origin, now)),
            Self::IpInfoLite { server, token } => ipinfo::ask(server.as_ref(), token, published, origin, web).await,
        }
    }
}
