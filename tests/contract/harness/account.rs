//! Compares a receiver's requests with the deliveries' histories: every delivery has succeeded, and every request is an
//! attempt, whose outcome is unknown if the process was killed before recording it.

use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};

use serde_json::Value;

use super::{Entity, Received, Receiver, time};

/// How long a claim lasts, in seconds. The service records a request's outcome within this time.
const LEASE: u32 = 45;
/// The number of histories to read concurrently.
const AT_ONCE: usize = 16;

/// The numbers for the report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub deliveries: usize,
    /// The number of requests.
    pub requests: usize,
    /// The number of attempts that a kill interrupted, so that their outcome is unknown. Their requests may or may not
    /// have been sent.
    pub interrupted: usize,
    /// The number of requests after a delivery's first.
    pub repeated: usize,
}

/// Waits until every delivery has succeeded, and accounts for every request. `kills` contains the periods, from signal
/// to end, during which a process that makes attempts was being killed.
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
        account.interrupted += interrupted(&requests, &delivery, kills);
        account.requests += requests.len();
        account.repeated += requests.len() - 1;
    }
    let strangers: Vec<&&str> = received.keys().collect();
    assert!(strangers.is_empty(), "requests of deliveries that were not acknowledged: {strangers:?}");
    account
}

/// Checks that every request for the delivery is an attempt in its history, and counts the interrupted attempts. Fails
/// if an attempt with an outcome has no request, if no kill explains an interrupted attempt, or if the history has
/// gaps.
pub fn interrupted(requests: &[&Received], delivery: &Value, kills: &[Range<Instant>]) -> usize {
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    let numbers = attempts.iter().filter_map(|attempt| attempt["attemptNumber"].as_u64());
    assert!(numbers.eq(1..=attempts.len() as u64), "attempts are missing or double: {delivery:#}");
    assert_eq!(delivery["attemptCount"], attempts.len(), "{delivery:#}");
    assert!(!requests.is_empty(), "the delivery never arrived: {delivery:#}");
    assert!(requests.iter().all(|request| request.body == requests[0].body), "the bodies differ: {delivery:#}");
    let lease = Duration::from_secs(LEASE.into());
    let explained =
        |request: &&Received| kills.iter().any(|kill| request.at <= kill.end && request.at + lease >= kill.start);
    // Match the requests that no kill explains first, since they must have an outcome in the history.
    let mut left = requests.to_vec();
    left.sort_by_key(explained);
    for attempt in attempts.iter().filter(|attempt| has_outcome(attempt)) {
        let second = time(&attempt["attemptDate"]).as_second().to_string();
        let seen = left.iter().position(|request| request.header("webhook-timestamp") == second);
        left.remove(seen.unwrap_or_else(|| panic!("an attempt that no receiver saw: {attempt:#} of {delivery:#}")));
    }
    let interrupted: Vec<_> = attempts.iter().filter(|attempt| !has_outcome(attempt)).collect();
    assert!(interrupted.is_empty() || !kills.is_empty(), "nothing was killed: {delivery:#}");
    let mut free = interrupted.clone();
    for request in left {
        assert!(explained(&request), "no kill explains why the outcome of {request:#?} is unknown: {delivery:#}");
        let signed: i64 = request.header("webhook-timestamp").parse().expect("a time");
        // The attempt began with its claim, shortly before the request was signed.
        let attempt = free.iter().position(|attempt| {
            let began = time(&attempt["attemptDate"]).as_second();
            (began..began + i64::from(LEASE)).contains(&signed)
        });
        free.remove(attempt.unwrap_or_else(|| panic!("a request is in no history: {request:#?} of {delivery:#}")));
    }
    interrupted.len()
}

/// Whether an attempt has an outcome. A worker gives up on a claim that takes five seconds, and sends nothing. On such a
/// slow machine, or beside a table that refuses writes, its lease may count as an attempt, which is interrupted.
pub fn has_outcome(attempt: &Value) -> bool {
    attempt["errorCode"] != "interrupted"
}

/// How many of a delivery's attempts have an outcome.
pub fn outcomes(delivery: &Value) -> usize {
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    attempts.iter().filter(|attempt| has_outcome(attempt)).count()
}
