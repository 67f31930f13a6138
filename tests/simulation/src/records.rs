//! The tenants' memory: their requests with the responses, and what they know from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use base::{DeliveryId, EventId, WebhookId};
use serde_json::Value;

use crate::{endpoints::Slot, oauth, plan::Step, providers, readers::Readers};

/// The tenants' memory.
#[derive(Debug, Default)]
pub struct Records {
    /// All requests, in the order in which they began.
    pub requests: Vec<Request>,
    /// The webhooks of the slots.
    pub webhooks: BTreeMap<Slot, WebhookId>,
    /// The last version of the address that a tenant asked for.
    pub addresses: BTreeMap<Slot, usize>,
    /// The deliveries that tenants know from acknowledged publish requests.
    pub deliveries: BTreeMap<usize, Vec<DeliveryId>>,
    /// How many resends a tenant requested, by delivery.
    pub resends: BTreeMap<DeliveryId, usize>,
    /// The deliveries whose cancellation a tenant requested.
    pub cancelled: BTreeSet<DeliveryId>,
    /// The events whose erasure a tenant requested.
    pub erased: BTreeSet<EventId>,
    /// The signing secrets that tenants got, by the slot.
    pub secrets: BTreeMap<Slot, Vec<String>>,
    /// The token issuer's clients' memory.
    pub oauth: oauth::Records,
    /// The tenants' memory of connections to payment providers.
    pub providers: providers::Records,
    /// What feed readers remember.
    pub(crate) readers: Readers,
}

/// A tenant's request, with all its tries.
#[derive(Debug, Clone)]
pub struct Request {
    /// The step.
    pub step: Step,
    /// The webhook that it is about.
    pub webhook: Option<WebhookId>,
    /// The idempotency key.
    pub key: Option<String>,
    /// When the first try began, in milliseconds.
    pub began: u64,
    /// The response and when it came, in milliseconds; `None` if every try got no response or a 5xx.
    pub answer: Option<(Answer, u64)>,
    /// The number of tries.
    pub tries: u32,
}

/// An answer.
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
