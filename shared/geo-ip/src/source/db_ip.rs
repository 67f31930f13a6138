//! The free databases of DB-IP: one file a month, with the month in its name. A month's file may appear a few days
//! late; until then, the previous month's is the newest. <https://db-ip.com/db/lite.php>

use url::Url;

use super::offer::{Candidate, DatabaseType, Offer, SourceAnswer, address};
use crate::{
    edition::EditionName,
    pointer::{Origin, Release},
};
use base::Time;

const SERVER: &str = "https://download.db-ip.com";
const ATTRIBUTION: &str = "IP Geolocation by DB-IP, https://db-ip.com (CC BY 4.0).";

/// The editions, each with the prefix of its database type.
pub(super) const EDITIONS: [(&str, &str); 3] = [
    ("dbip-city-lite", "DBIP-City-Lite"),
    ("dbip-country-lite", "DBIP-Country-Lite"),
    ("dbip-asn-lite", "DBIP-ASN-Lite"),
];

pub(super) fn ask(
    server: Option<&Url>,
    edition: &EditionName,
    published: Option<&Release>,
    origin: Origin,
    now: Time,
) -> SourceAnswer {
    let known = EDITIONS.iter().find(|(name, _)| *name == edition.as_str());
    // The configuration allows no other edition.
    let database_type = known.map_or("DBIP-", |(_, database_type)| database_type);
    let candidates = months(now).map(|month| {
        let url = address(server, SERVER, &format!("/free/{edition}-{month}.mmdb.gz"));
        Candidate { date: Some(month), ..Candidate::unless_published(url, published) }
    });
    SourceAnswer::Offer(Box::new(Offer {
        candidates: candidates.into(),
        authorization: None,
        checksum: None,
        database_type: DatabaseType::BeginsWith(database_type),
        origin,
        attribution: Some(ATTRIBUTION),
    }))
}

/// This month and the previous one, such as `2026-11`.
fn months(now: Time) -> [String; 2] {
    let this = now.to_string().get(..7).unwrap_or_default().to_owned();
    let (year, month) = this.split_once('-').unwrap_or_default();
    let year: u32 = year.parse().unwrap_or(1970);
    let month: u32 = month.parse().unwrap_or(1);
    let last = if month > 1 { format!("{year}-{:02}", month - 1) } else { format!("{}-12", year.saturating_sub(1)) };
    [this, last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidates_are_this_month_and_the_last() {
        for (now, expected) in [
            ("2026-11-20T09:45:00Z", ["2026-11", "2026-10"]),
            ("2026-01-01T00:00:00Z", ["2026-01", "2025-12"]),
            ("2026-10-01T00:00:00Z", ["2026-10", "2026-09"]),
        ] {
            assert_eq!(months(now.parse().expect("a time")), expected);
        }
    }

    #[test]
    fn an_edition_has_its_own_file_and_type() {
        let edition = EditionName::parse("dbip-asn-lite").expect("a name");
        let now = "2026-11-20T09:45:00Z".parse().expect("a time");
        let SourceAnswer::Offer(offer) = ask(None, &edition, None, Origin::default(), now) else { panic!("an offer") };
        let urls: Vec<_> = offer.candidates.iter().map(|candidate| candidate.url.as_str()).collect();
        assert_eq!(
            urls,
            [
                "https://download.db-ip.com/free/dbip-asn-lite-2026-11.mmdb.gz",
                "https://download.db-ip.com/free/dbip-asn-lite-2026-10.mmdb.gz"
            ]
        );
        assert!(offer.database_type.admits("DBIP-ASN-Lite (compat=GeoLite2-ASN)"));
        assert!(!offer.database_type.admits("DBIP-City-Lite"));
    }
}
