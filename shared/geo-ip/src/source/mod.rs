//! The sources of databases. A source returns an offer if it may have a newer release than the published one.

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

/// A configured source. A `server` replaces the provider's address.
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
        /// The file's address; the query may contain a secret.
        url: Url,
        /// The address of its SHA-256, if there is one.
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
    /// The kind in the configuration.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MaxMind { .. } => "maxmind",
            Self::Plain { .. } => "url",
            Self::DbIpLite { .. } => "db-ip-lite",
            Self::IpInfoLite { .. } => "ipinfo-lite",
        }
    }

    /// The editions of this source; `None` if any name is possible.
    pub fn editions(&self) -> Option<Vec<&'static str>> {
        match self {
            Self::DbIpLite { .. } => Some(db_ip::EDITIONS.iter().map(|(name, _)| *name).collect()),
            Self::IpInfoLite { .. } => Some(vec![ipinfo::EDITION]),
            Self::MaxMind { .. } | Self::Plain { .. } => None,
        }
    }

    /// Queries the source for a newer release than the published one.
    pub async fn ask(
        &self,
        edition: &EditionName,
        published: Option<&Release>,
        web: &Web,
        now: Time,
    ) -> Result<SourceAnswer, SourceError> {
        // Tags and dates of the published release are valid only for the same kind of source.
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
