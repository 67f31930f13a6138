//! The promise that every edition's pointer always leads to a complete and verified database, and that no file is
//! removed while it is needed. `shared/geo-ip/README.md` has the rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Promise;
use crate::{
    aws::bucket::{Change, Content},
    geo_ip::{EDITIONS, ENVIRONMENT, GeoIp, Release},
    world::State,
};

/// The pointer, as readers see it.
#[derive(Debug, Clone, Deserialize)]
struct Pointer {
    current: Named,
    previous: Option<Named>,
    #[serde(default)]
    blocked: Vec<String>,
}

/// A release that a pointer names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    name: String,
    sha256: String,
    build_epoch: u64,
}

/// An edition at one moment in the history.
#[derive(Default)]
struct Edition {
    pointer: Option<Pointer>,
    /// The files with their SHA-256 hashes, excluding the pointer.
    files: BTreeMap<String, String>,
    /// The highest name that has been current.
    latest: String,
    /// All states of the pointer, by their SHA-256 hashes. If a state recurred, an update that had read it earlier
    /// could move the pointer.
    states: BTreeSet<String>,
}

impl Pointer {
    fn names(&self, file: &str) -> bool {
        let name = file.split('.').next().unwrap_or_default();
        name == self.current.name || self.previous.as_ref().is_some_and(|previous| name == previous.name)
    }
}

/// Checks all versions in a history's bucket.
pub fn check(state: &State, note: &mut impl FnMut(Promise, String)) {
    for (edition, provider) in EDITIONS.iter().zip(&state.geo_ip.providers) {
        let released = provider.releases.iter().map(|release| (release.sha256.as_str(), release.as_ref())).collect();
        if let Err(fault) = check_edition(&state.geo_ip, edition, &released) {
            note(Promise::Published, format!("{edition}: {fault}"));
        }
    }
    if let Some(Err(report)) = &state.geo_ip.last_update {
        note(Promise::Published, format!("the update without faults failed: {report}"));
    }
}

fn check_edition(geo_ip: &GeoIp, edition: &str, released: &BTreeMap<&str, &Release>) -> Result<(), String> {
    let folder = format!("{ENVIRONMENT}/{edition}/");
    let mut now = Edition::default();
    for change in &geo_ip.bucket.changes {
        let Some(file) = change.key.strip_prefix(&folder) else { continue };
        let changed = match &change.content {
            Some(content) if file == "current.json" => now.moved(geo_ip, change, content, released),
            Some(content) => now.kept(file, content),
            None => now.removed(file),
        };
        changed.map_err(|fault| format!("at {}, by the sandbox {}: {fault}", change.at, change.sandbox))?;
    }
    match (&geo_ip.last_update, &now.pointer) {
        (Some(Ok(_)), Some(pointer)) => now.is_tidy(pointer, released),
        (Some(Ok(_)), None) => Err("an update succeeded without a pointer".to_owned()),
        _ => Ok(()),
    }
}

impl Edition {
    fn moved(
        &mut self,
        geo_ip: &GeoIp,
        change: &Change,
        content: &Content,
        released: &BTreeMap<&str, &Release>,
    ) -> Result<(), String> {
        let pointer: Pointer = serde_json::from_slice(&content.small).map_err(|error| error.to_string())?;
        let Named { name, sha256, build_epoch } = &pointer.current;
        if self.files.get(&format!("{name}.mmdb")) != Some(sha256) {
            return Err(format!("the pointer moves to {name}, which is not in the bucket"));
        }
        match released.get(sha256.as_str()) {
            None => return Err(format!("the pointer moves to {name}, which the provider never released")),
            Some(release) if release.epoch != *build_epoch => return Err(format!("{name} has the wrong build")),
            Some(_) => {}
        }
        if !self.states.insert(content.sha256.clone()) {
            return Err(format!("the pointer returns to an earlier state, with {name}"));
        }
        if pointer.blocked.contains(sha256) {
            return Err(format!("the pointer moves to {name}, which is blocked"));
        }
        if let Some(before) = &self.pointer
            && !geo_ip.operators.contains(&change.sandbox)
        {
            if before.current.build_epoch >= *build_epoch {
                return Err(format!("an update moves the pointer from {} back to {name}", before.current.name));
            }
            if pointer.previous.as_ref() != Some(&before.current) || pointer.blocked != before.blocked {
                return Err(format!("an update to {name} lost the release before, or the blocked ones"));
            }
        }
        self.latest = self.latest.clone().max(name.clone());
        self.pointer = Some(pointer);
        Ok(())
    }

    fn kept(&mut self, file: &str, content: &Content) -> Result<(), String> {
        let before = self.files.insert(file.to_owned(), content.sha256.clone());
        match before {
            Some(before) if before != content.sha256 => Err(format!("{file} is replaced with other content")),
            _ => Ok(()),
        }
    }

    fn removed(&mut self, file: &str) -> Result<(), String> {
        self.files.remove(file);
        if self.pointer.as_ref().is_some_and(|pointer| pointer.names(file)) || file == "current.json" {
            return Err(format!("{file} is removed, which the pointer names"));
        }
        if file.split('.').next().unwrap_or_default() >= self.latest.as_str() {
            return Err(format!("{file} is removed, which is later than every published release"));
        }
        Ok(())
    }

    /// Checks that, after an update without faults, the newest release is published, and only files that its pointer
    /// names are left.
    fn is_tidy(&self, pointer: &Pointer, released: &BTreeMap<&str, &Release>) -> Result<(), String> {
        let newest = released.values().map(|release| release.epoch).max().unwrap_or_default();
        if pointer.current.build_epoch != newest {
            return Err(format!("the last update succeeded, and {} is not the newest", pointer.current.name));
        }
        let left: BTreeSet<_> = self.files.keys().filter(|file| !pointer.names(file)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?} are left after an update")) }
    }
}
