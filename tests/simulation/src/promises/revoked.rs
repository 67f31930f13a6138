//! Promises about tokens: an ended token is refused, a valid one is accepted, and an idempotency key has one effect.

use std::collections::{BTreeMap, BTreeSet};

use super::{Promise, facts::text};
use crate::{
    bundle::entity_id,
    oauth::{Verdict, Verification},
    records::Records,
    world::State,
};

/// How long after its acknowledgement a revocation may be unknown elsewhere, including the difference between two
/// clocks.
const KNOWN_WITHIN: u64 = 61_100;
/// How long a revocation may be unknown while the table is not responding.
const KNOWN_WITHOUT_TABLE: u64 = 5 * 60_000 + 1_100;
/// The pause before the list is read again after a failed read.
const FAILURE_PAUSE: u64 = 5_000;
/// The maximum difference between two clocks.
const SKEW: u64 = 1_100;

/// Checks the verifications of tokens, and the issuer's idempotency keys.
pub fn check(state: &State, records: &Records, note: &mut impl FnMut(Promise, String)) {
    let oauth = &records.oauth;
    for verification in &oauth.verifications {
        let token = &oauth.tokens[verification.token];
        let expires = token.expires * 1_000;
        let endings: Vec<_> = oauth.endings.iter().filter(|ending| ending.what.ends(token)).collect();
        // A token that has expired needs no revocation.
        let acknowledged = endings.iter().filter_map(|ending| ending.acknowledged).filter(|at| at + SKEW < expires);
        let acknowledged = acknowledged.min();
        match (&verification.verdict, acknowledged) {
            (Verdict::Valid, Some(at)) => {
                let allowed = if verification.fresh {
                    0
                } else if hindered(state, records, verification) {
                    KNOWN_WITHOUT_TABLE
                } else {
                    KNOWN_WITHIN
                };
                if verification.began >= at + allowed {
                    let since = verification.began - at;
                    let (place, fresh) = (verification.place, verification.fresh);
                    let what = &endings[0].what;
                    note(
                        Promise::Revoked,
                        format!(
                            "{place:?} accepts (fresh: {fresh}) a token {since} ms after {what:?} was acknowledged"
                        ),
                    );
                }
            }
            (Verdict::Valid, _) if verification.began >= expires + SKEW => {
                note(Promise::Revoked, format!("{:?} accepts an expired token", verification.place));
            }
            (Verdict::Refused(why), _)
                if verification.answered + SKEW < expires
                    && endings.iter().all(|ending| ending.began > verification.answered) =>
            {
                note(Promise::Revoked, format!("{:?} refuses a valid token: {why}", verification.place));
            }
            _ => {}
        }
    }
    keys(state, records, note);
}

/// Whether the table failed to respond to a sandbox promptly during a verification or shortly before it.
fn hindered(state: &State, records: &Records, verification: &Verification) -> bool {
    let Some((sandbox, invocation)) = verification.place else { return false };
    let earlier = records.oauth.verifications.iter().filter(|earlier| {
        let recent = earlier.answered + FAILURE_PAUSE + SKEW >= verification.began;
        earlier.place.is_some_and(|(of, number)| of == sandbox && number < invocation) && recent
    });
    let places = earlier.filter_map(|earlier| earlier.place).chain([(sandbox, invocation)]);
    places
        .into_iter()
        .any(|(_, invocation)| state.hindered.contains(&invocation) || state.interrupted.contains(&invocation))
}

fn keys(state: &State, records: &Records, note: &mut impl FnMut(Promise, String)) {
    for ((tenant, path, key), answers) in &records.oauth.answers {
        if answers.len() > 1 {
            note(Promise::Once, format!("tenant {tenant} got {} answers for {key} at {path}", answers.len()));
        }
    }
    let mut applications: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for version in state.table.versions() {
        let Some(item) = version.item.as_deref().filter(|_| version.key.0.starts_with("APP#")) else { continue };
        let of = (text(item, "ownerIdentifier"), text(item, "name"));
        applications.entry(of).or_default().insert(&version.key.0);
    }
    // If no application were found in the table, the numbers below would always be in order.
    for secret in &records.oauth.secrets {
        let owner = entity_id(secret.tenant);
        let partition = format!("APP#{}", secret.client);
        let mut of_owner = applications.iter().filter(|((of, _), _)| *of == owner.as_str());
        if !of_owner.any(|(_, made)| made.contains(partition.as_str())) {
            note(Promise::Once, format!("{owner} got a secret of {partition}, which it never owned"));
        }
    }
    for ((tenant, name), most) in &records.oauth.made {
        let owner = entity_id(*tenant);
        let made = applications.get(&(owner.as_str(), name.as_str())).map_or(0, BTreeSet::len);
        if made > *most as usize {
            note(Promise::Once, format!("hotel-{tenant} has {made} applications {name:?} for {most} requests"));
        }
    }
}
