//! The checks before a database is published: it must be complete, have the right type, be newer than the published
//! one, and not be much smaller or larger.
//!
//! A provider's checksum is checked first, since the structure alone detects only about half of all flipped bits.

use std::{collections::BTreeMap, fs, net::IpAddr, path::Path};

use maxminddb::{MaxMindDbError, Reader, WithinOptions};

use super::{
    pointer::{Release, build_time},
    source::DatabaseType,
};
use base::Time;

const DAY: u64 = 24 * 60 * 60;
/// How far in the future a build may be dated, in seconds, since clocks differ.
const MAX_AHEAD: u64 = DAY;
/// The maximum age of a build, in seconds.
const MAX_AGE: u64 = 400 * DAY;
/// The maximum change in size and number of nodes, in percent.
const MAX_CHANGE: u64 = 30;
/// Addresses of well-known services, which every worldwide database contains.
const KNOWN_ADDRESSES: [&str; 3] = ["1.1.1.1", "8.8.8.8", "2001:4860:4860::8888"];
/// The number of networks that are looked up as a check.
const SAMPLES: usize = 100;

/// The facts about a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub database_type: String,
    /// When the database was built, in seconds since the Unix epoch.
    pub build_epoch: u64,
    pub node_count: u32,
    pub size_bytes: u64,
    /// The well-known addresses in the database.
    pub known_addresses: Vec<String>,
}

/// Why a database failed the checks.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{}", super::download::on_disk(.0))]
    Disk(#[source] std::io::Error),
    #[error("the downloaded file is damaged, or is not a MaxMind database")]
    Damaged(#[source] MaxMindDbError),
    #[error("the database is implausible: {0}")]
    Implausible(String),
    #[error(
        "the database type is `{found}`, but {wanted} was expected; if the file is right, set `databaseType` to its \
         type"
    )]
    Type { found: String, wanted: DatabaseType },
    #[error("build {offered} is not newer than the published build, {published}")]
    NotNewer { offered: String, published: String },
    #[error(
        "the build time {0} is that of the published database, but the content differs: wait for the next build. If \
         the new content is correct, withdraw the published database with `geo-ip rollback`, and update again"
    )]
    SameBuild(String),
    #[error("build {0} is {1}")]
    Time(String, &'static str),
}

/// Reads and verifies a whole database. Blocks for about a second.
pub fn examine(path: &Path) -> Result<Facts, VerifyError> {
    let bytes = fs::read(path).map_err(VerifyError::Disk)?;
    let size_bytes = bytes.len() as u64;
    let database = Reader::from_source(bytes).map_err(VerifyError::Damaged)?;
    database.verify().map_err(VerifyError::Damaged)?;
    samples(&database)?;
    let metadata = database.metadata();
    let known_addresses = KNOWN_ADDRESSES.into_iter().filter(|address| {
        let address: Option<IpAddr> = address.parse().ok();
        address.is_some_and(|address| database.lookup(address).is_ok_and(|found| found.has_data()))
    });
    Ok(Facts {
        database_type: metadata.database_type.clone(),
        build_epoch: metadata.build_epoch,
        node_count: metadata.node_count,
        size_bytes,
        known_addresses: known_addresses.map(str::to_owned).collect(),
    })
}

/// Looks up the first address of some networks and checks that it leads to the network's entry.
fn samples(database: &Reader<Vec<u8>>) -> Result<(), VerifyError> {
    let strange = |what: &str| VerifyError::Implausible(what.to_owned());
    let mut count = 0;
    let networks = database.networks(WithinOptions::default()).map_err(VerifyError::Damaged)?;
    for network in networks.take(SAMPLES) {
        let network = network.map_err(VerifyError::Damaged)?;
        let address = network.network().map_err(VerifyError::Damaged)?.ip();
        let found = database.lookup(address).map_err(VerifyError::Damaged)?;
        if found.offset() != network.offset() {
            return Err(strange("one of its networks cannot be looked up"));
        }
        let value: Option<BTreeMap<String, serde::de::IgnoredAny>> = found.decode().map_err(VerifyError::Damaged)?;
        if value.is_none() {
            return Err(strange("one of its networks has no data"));
        }
        count += 1;
    }
    if count == 0 { Err(strange("it contains no networks")) } else { Ok(()) }
}

/// Checks that the database, whose content differs from the published one, may replace it.
pub fn judge(facts: &Facts, wanted: &DatabaseType, published: Option<&Release>, now: Time) -> Result<(), VerifyError> {
    if !wanted.admits(&facts.database_type) {
        let found = facts.database_type.chars().take(64).filter(|character| !character.is_control()).collect();
        return Err(VerifyError::Type { found, wanted: wanted.clone() });
    }
    let now = u64::try_from(now.as_seconds()).unwrap_or(0);
    let built = || build_time(facts.build_epoch);
    if facts.build_epoch > now.saturating_add(MAX_AHEAD) {
        return Err(VerifyError::Time(built(), "in the future"));
    }
    if published.is_some_and(|published| facts.build_epoch == published.build_epoch) {
        return Err(VerifyError::SameBuild(built()));
    }
    if let Some(published) = published
        && facts.build_epoch < published.build_epoch
    {
        let published = published.build_time();
        return Err(VerifyError::NotNewer { offered: built(), published });
    }
    if facts.build_epoch < now.saturating_sub(MAX_AGE) {
        return Err(VerifyError::Time(built(), "more than 400 days old"));
    }
    let Some(published) = published else { return Ok(()) };
    for (what, new, old) in [
        ("bytes", facts.size_bytes, published.size_bytes),
        ("nodes", facts.node_count.into(), published.node_count.into()),
    ] {
        if differs(new, old) {
            return Err(VerifyError::Implausible(format!("it has {new} {what}, the published one {old}")));
        }
    }
    match published.known_addresses.iter().find(|address| !facts.known_addresses.contains(address)) {
        Some(lost) => Err(VerifyError::Implausible(format!("the published database has {lost}, this one does not"))),
        None => Ok(()),
    }
}

fn differs(new: u64, old: u64) -> bool {
    u128::from(new.abs_diff(old)) * 100 > u128::from(old) * u128::from(MAX_CHANGE)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
