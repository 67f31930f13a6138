//! The facts that tenants remember: their requests with the responses, and the knowledge from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use base::{DeliveryId, EventId, WebhookId};
use serde_json::Value;

use crate::{endpoints::Slot, oauth, plan::Step, providers, readers::Readers};

/// The facts that tenants remember.
#[derive(Debug, Default)]
pub struct Records {
    /// All requests, in the order in which they began.
    pub requests: Vec<Request>,
    /// The webhook in each slot.
    pub webhooks: BTreeMap<Slot, WebhookId>,
    /// The latest version of the URL that a tenant requested.
    pub addresses: BTreeMap<Slot, usize>,
    /// The deliveries that tenants know from acknowledged publish requests.
    pub deliveries: BTreeMap<usize, Vec<DeliveryId>>,
    /// The number of resends that a tenant requested, by delivery.
    pub resends: BTreeMap<DeliveryId, usize>,
    /// The deliveries that a tenant asked to cancel.
    pub cancelled: BTreeSet<DeliveryId>,
    /// The events that a tenant asked to erase.
    pub erased: BTreeSet<EventId>,
    /// The signing secrets that tenants received, by slot.
    pub secrets: BTreeMap<Slot, Vec<String>>,
    /// The facts that the token issuer's clients remember.
    pub oauth: oauth::Records,
    /// The facts that tenants remember about connections to payment providers.
    pub providers: providers::Records,
    /// The facts that feed readers remember.
    pub(crate) readers: Readers,
}

impl Records {
    /// The kinds of requests in a history, each with whether one was carried out.
    pub fn carried_out(&self) -> BTreeMap<String, bool> {
        let mut kinds = BTreeMap::<String, bool>::new();
        for request in &self.requests {
            let action = format!("{:?}", request.step.action);
            let mut names = action.split('(');
            let name = names.next().unwrap_or_default();
            // A step about tokens or payment providers contains another action.
            let inner = names.next().filter(|_| ["OAuth", "Providers"].contains(&name)).unwrap_or_default();
            let is_done = match &request.answer {
                Some((Answer::Done(answer), _)) => answer["rejected"].is_null(),
                _ => false,
            };
            *kinds.entry(format!("{name} {inner}").trim_end().to_owned()).or_default() |= is_done;
        }
        if kinds.contains_key("Providers Connect") {
            let is_connected = self.providers.arrivals.iter().any(|arrival| arrival.outcome == "connected");
            kinds.insert("a return from a provider".to_owned(), is_connected);
        }
        kinds
    }
}

/// A tenant's request, with all its tries.
#[derive(Debug, Clone)]
pub struct Request {
    /// The step that caused the request.
    pub step: Step,
    /// The webhook that the request concerns.
    pub webhook: Option<WebhookId>,
    /// The idempotency key.
    pub key: Option<String>,
    /// When the first try began, in milliseconds.
    pub began: u64,
    /// The response, and when it arrived, in milliseconds; `None` if every try got no response or a 5xx.
    pub answer: Option<(Answer, u64)>,
    /// The number of tries.
    pub tries: u32,
}

/// A response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The request was carried out, now or earlier.
    Done(Value),
    /// The request was refused with this status.
    Refused(u16),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(value) => write!(f, "{value}"),
            Self::Refused(status) => write!(f, "refused with {status}"),
        }
    }
}
