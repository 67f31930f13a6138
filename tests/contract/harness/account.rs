//! Holding what a receiver saw against the histories: every delivery arrived, and every request is an attempt, or its
//! record was lost with a process that was killed.

use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};

use super::{Entity, Received, Receiver};

/// How long after its arrival a request is recorded at most, where nothing dies: the exchange's whole time and more.
const WITHIN: Duration = Duration::from_secs(20);
/// How many histories are read at once.
const AT_ONCE: usize = 16;

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How many deliveries there are.
    pub deliveries: usize,
    /// How many requests came for them.
    pub requests: usize,
    /// How many of these are in no history, each because of a kill.
    pub unrecorded: usize,
    /// How many were not the first of their delivery.
    pub repeated: usize,
}

/// Waits until every delivery is delivered, and accounts for every request that came. `kills` says when something that
/// makes attempts was killed: from when until it was gone.
pub async fn account(entity: &Entity, receiver: &Receiver, deliveries: &[String], kills: &[Range<Instant>]) -> Account {
    let histories = stream::iter(deliveries).map(|id| async move {
        let delivery = entity.until_status(id, &["delivered", "failed", "cancelled"]).await;
        assert_eq!(delivery["status"], "delivered", "{delivery:#}");
        (id, delivery)
    });
    let histories: Vec<_> = histories.buffer_unordered(AT_ONCE).collect().await;
    let everything = receiver.everything();
    let mut received: HashMap<&str, Vec<&Received>> = HashMap::new();
    for request in &everything {
        received.entry(request.header("service-delivery-id")).or_default().push(request);
    }
    let mut account = Account { deliveries: deliveries.len(), ..Account::default() };
    for (id, delivery) in histories {
        let requests = received.remove(id.as_str()).unwrap_or_default();
        let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
        let numbers = attempts.iter().filter_map(|attempt| attempt["attemptNumber"].as_u64());
        assert!(numbers.eq(1..=attempts.len() as u64), "attempts are missing or double: {delivery:#}");
        assert_eq!(delivery["attemptCount"], attempts.len(), "{delivery:#}");
        assert!(!requests.is_empty(), "it never arrived: {delivery:#}");
        assert!(requests.len() >= attempts.len(), "attempts that nobody saw: {delivery:#}");
        assert!(requests.iter().all(|request| request.body == requests[0].body), "the bodies differ: {delivery:#}");
        let killed =
            |request: &&&Received| kills.iter().any(|kill| request.at <= kill.end && request.at + WITHIN >= kill.start);
        let (unrecorded, explained) = (requests.len() - attempts.len(), requests.iter().filter(killed).count());
        assert!(unrecorded <= explained, "{unrecorded} requests are in no history, {explained} can be: {delivery:#}");
        account.requests += requests.len();
        account.unrecorded += unrecorded;
        account.repeated += requests.len() - 1;
    }
    let strangers: Vec<&&str> = received.keys().collect();
    assert!(strangers.is_empty(), "requests of deliveries that nobody acknowledged: {strangers:?}");
    account
}
