//! The promises about connections to payment providers: each state is exchanged once, no token is lost, and a
//! connection that is shown as connected has the last tokens of a permission that is still valid.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;
use payments::tokens::ProviderTokens;
use storage::KeyRing;

use super::{Promise, facts::text};
use crate::{
    aws::{self, table::Item},
    bundle::entity_id,
    plan::TENANTS,
    providers::{Grant, Issue, Provider, name},
    records::Records,
    world::State,
};

/// Throttling that excuses a loss, as pairs of durations in milliseconds: partitions were throttled for the first
/// duration, within the second one after the tokens arrived. A callback has at least 7 s of its 26 s to store the
/// tokens, even if everything before took as long as possible. A lost response takes up more of the 26 s.
const THROTTLED: [(u64, u64); 2] = [(3_000, 7_000), (10_000, 26_000)];

/// A version of a connection.
struct Stored<'a> {
    at: u64,
    /// The connection and its tokens; `None` after a removal.
    item: Option<(&'a Item, ProviderTokens)>,
}

/// Checks the connections and the states.
pub fn check(state: &State, records: &Records, now: u64, note: &mut impl FnMut(Promise, String)) {
    let mut once = BTreeSet::new();
    for code in &state.providers.codes {
        let sent = state.providers.grants.iter().find(|grant| grant.code == *code).map(|grant| grant.state.as_str());
        if !once.insert(sent.unwrap_or(code)) {
            note(Promise::ExchangedOnce, format!("the state of {code} was exchanged twice"));
        }
    }
    for arrival in &records.providers.arrivals {
        let mut grants = state.providers.grants.iter();
        let grant = grants.find(|grant| Some(&grant.code) == arrival.code.as_ref());
        let is_issued = grant.is_some_and(|grant| grant.issues.first().is_some_and(|issue| issue.delivered));
        if arrival.outcome == "connected" && !is_issued {
            note(Promise::ExchangedOnce, format!("{:?} is connected without tokens", arrival.code));
        }
    }
    links(state, records, note);
    for tenant in 0..TENANTS {
        for provider in Provider::ALL {
            let versions = versions(state, tenant, provider);
            let of_this = |grant: &&Grant| grant.tenant == tenant && grant.provider == provider;
            for grant in state.providers.grants.iter().filter(of_this) {
                for issue in &grant.issues {
                    if let Some(fault) = lost(state, records, tenant, &versions, grant, issue) {
                        let (access, at) = (&issue.access, Time::from_millis(issue.at as i64));
                        note(Promise::ExchangedOnce, format!("{access} of {at} is lost, although {fault}"));
                    }
                }
            }
            if let Some(wrong) = versions.last().and_then(|last| wrong(state, last, now)) {
                note(Promise::ExchangedOnce, format!("hotel-{tenant} at {}: {wrong}", provider.name()));
            }
        }
    }
}

/// Checks the idempotency keys of requests for links.
fn links(state: &State, records: &Records, note: &mut impl FnMut(Promise, String)) {
    for ((tenant, provider, key), links) in &records.providers.links {
        if links.len() > 1 {
            note(Promise::Once, format!("tenant {tenant} got {} links at {} for {key}", links.len(), provider.name()));
        }
    }
    let mut states: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for version in state.table.versions() {
        let Some(item) = version.item.as_deref().filter(|_| version.key.0.starts_with("STATE#")) else { continue };
        let owner = (text(item, "entity").to_owned(), text(item, "provider").to_owned());
        states.entry(owner).or_default().insert(&version.key.0);
    }
    for ((tenant, provider), asked) in &records.providers.asked {
        let owner = (entity_id(*tenant).to_string(), provider.name().to_owned());
        let made = states.get(&owner).map_or(0, BTreeSet::len);
        if made > *asked as usize {
            note(
                Promise::Once,
                format!("hotel-{tenant} has {made} states at {} for {asked} requests", provider.name()),
            );
        }
    }
}

/// The versions of a connection, each with its tokens.
fn versions(state: &State, tenant: usize, provider: Provider) -> Vec<Stored<'_>> {
    let ring = KeyRing::from_secret(&aws::data_keys()).expect("the key ring of the simulation is valid");
    let owner = entity_id(tenant);
    let key = (format!("ENT#{owner}"), format!("PAY#{}", provider.name()));
    let versions = state.table.versions().iter().filter(move |version| version.key == key);
    let open = |item: &Item| {
        let opened = ProviderTokens::open(text(item, "sealedTokens"), &ring, &owner, &name(provider));
        opened.expect("a stored connection has tokens that can be opened")
    };
    versions
        .map(|version| Stored { at: version.at, item: version.item.as_deref().map(|item| (item, open(item))) })
        .collect()
}

/// Why losing tokens is inexcusable; `None` if they were stored or there is an excuse.
fn lost(
    state: &State,
    records: &Records,
    tenant: usize,
    versions: &[Stored<'_>],
    grant: &Grant,
    issue: &Issue,
) -> Option<String> {
    let has = |stored: &Stored<'_>| {
        stored.item.as_ref().is_some_and(|(_, tokens)| {
            let refresh = tokens.refresh.as_ref().map(|refresh| refresh.expose());
            tokens.access.expose() == issue.access && refresh == Some(issue.refresh.as_str())
        })
    };
    if !issue.delivered || versions.iter().any(has) {
        return None;
    }
    if state.interrupted.contains(&issue.invocation) {
        return None;
    }
    // The person chose an account that may not replace the connected one.
    let mut arrivals = records.providers.arrivals.iter();
    if arrivals.any(|arrival| arrival.code.as_ref() == Some(&grant.code) && arrival.outcome == "other-account") {
        return None;
    }
    // The permission's connection was replaced or removed during a refresh: after the refresh was claimed, which may be
    // before the provider issued the tokens.
    let during = issue.at.saturating_sub(30_000)..=issue.at + 30_000;
    let id = |stored: &Stored<'_>| stored.item.as_ref().map(|(item, _)| text(item, "id").to_owned());
    let is_of_grant = |stored: &Stored<'_>| {
        let tokens = stored.item.as_ref().map(|(_, tokens)| tokens.access.expose());
        grant.issues.iter().any(|issue| tokens == Some(issue.access.as_str()))
    };
    let own = versions.iter().rposition(is_of_grant);
    let replaced = own.is_some_and(|own| {
        let mut later = versions[own + 1..].iter().filter(|stored| during.contains(&stored.at));
        later.any(|stored| id(stored) != id(&versions[own]))
    });
    if issue.access != grant.issues[0].access && replaced {
        return None;
    }
    let partitions = ["byDue/REFRESH".to_owned(), format!("ENT#{}", entity_id(tenant))];
    let throttled = |within: u64| {
        let throttles = state.throttles.iter();
        let throttles =
            throttles.filter(|(partition, ..)| partitions.contains(partition) || partition.starts_with("OUTBOX#"));
        let (from, to) = (issue.at, issue.at + within);
        throttles.map(|(_, begin, end)| (*end).min(to).saturating_sub((*begin).max(from))).sum::<u64>()
    };
    if THROTTLED.iter().any(|(least, within)| throttled(*within) >= *least) {
        return None;
    }
    Some(format!("its answer was complete, and invocation {} had no interruption", issue.invocation))
}

/// The fault in a connection's final state, if any.
fn wrong(state: &State, Stored { item, .. }: &Stored<'_>, now: u64) -> Option<String> {
    let (item, tokens) = item.as_ref()?;
    let lease = super::facts::millis(text(item, "leaseUntil"));
    if lease.is_some_and(|until| now < until) {
        return None;
    }
    let refresh = tokens.refresh.as_ref().map(|refresh| refresh.expose()).unwrap_or_default();
    let access = tokens.access.expose();
    let mut grants = state.providers.grants.iter();
    let Some(grant) = grants.find(|grant| grant.issues.iter().any(|issue| issue.access == access)) else {
        return Some(format!("{access} was never issued"));
    };
    let last = grant.issues.last()?;
    let is_alive = grant.revoked.is_none() && last.refresh == refresh;
    let is_last = last.access == access;
    match text(item, "status") {
        "broken" if is_alive => Some(format!("it is broken, although {refresh} is valid")),
        "connected" if !is_alive => Some(format!("it is connected with {access}, whose permission ended")),
        "connected" if !is_last => Some(format!("it is connected with {access}, and {} came later", last.access)),
        "connected" if text(item, "dueAt").is_empty() => Some("it is connected and never due".to_owned()),
        _ => None,
    }
}
