//! The memory of the tenants: their requests with the answers, and what they know from these.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use base::{DeliveryId, EventId, WebhookId};
use serde_json::Value;

use crate::{endpoints::Slot, oauth, plan::Step, providers, readers::Readers};

/// The memory of the tenants.
#[derive(Debug, Default)]
pub struct Records {
    /// All requests, in the order in which they began.
    pub requests: Vec<Request>,
    /// The webhooks of the slots.
    pub webhooks: BTreeMap<Slot, WebhookId>,
    /// The last version of the address that a tenant asked for.
    pub addresses: BTreeMap<Slot, usize>,
    /// The deliveries that tenants know from acknowledged publications.
    pub deliveries: BTreeMap<usize, Vec<DeliveryId>>,
    /// The number of resends that a tenant requested, by delivery.
    pub resends: BTreeMap<DeliveryId, usize>,
    /// The deliveries whose cancellation a tenant requested.
    pub cancelled: BTreeSet<DeliveryId>,
    /// The events whose erasure a tenant requested.
    pub erased: BTreeSet<EventId>,
    /// The signing secrets that tenants got, by the slot.
    pub secrets: BTreeMap<Slot, Vec<String>>,
    /// The memory of the clients of the token issuer.
    pub oauth: oauth::Records,
    /// The memory of the tenants about connections to payment providers.
    pub providers: providers::Records,
    /// The memory of the readers of feeds.
    pub(crate) readers: Readers,
}

/// A request of a tenant, with all its tries.
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
    /// The answer and when it came, in milliseconds; `None` if every try had no answer or a 5xx.
    pub answer: Option<(Answer, u64)>,
    /// The number of tries.
    pub tries: u32,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The request was carried out, now or before.
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
