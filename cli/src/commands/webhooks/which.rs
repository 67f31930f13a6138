//! The webhook that an argument names, and the names of all webhooks.

use clap::Args;
use serde::Deserialize;

use crate::{
    failure::Failure,
    service::{Call, Service, segment},
};

#[derive(Debug, Args)]
pub struct WhichWebhook {
    /// The webhook's identifier, as `waypost webhooks` shows it.
    #[arg(value_parser = segment)]
    pub id: String,
}

/// A webhook, found by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NamedWebhook {
    pub id: String,
    pub name: String,
}

pub async fn named_webhooks(service: &Service) -> Result<Vec<NamedWebhook>, Failure> {
    service.call(Call::get(&["webhook", "list"])).await
}
