//! The subcommands, one file for each.

mod application;
mod data_keys;
mod delivery;
mod geo_ip;
mod panel;
mod provision;
mod signing_keys;
mod webhook;

use auth::Scope;
use clap::Subcommand;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(subcommand, after_help = application::EXAMPLES)]
    Application(application::Command),
    #[command(subcommand, after_help = signing_keys::EXAMPLES)]
    SigningKeys(signing_keys::Command),
    #[command(subcommand, after_help = data_keys::EXAMPLES)]
    DataKeys(data_keys::Command),
    #[command(subcommand, after_help = delivery::EXAMPLES)]
    Delivery(delivery::Command),
    GeoIp(geo_ip::Arguments),
    #[command(subcommand, after_help = panel::EXAMPLES)]
    Panel(panel::Command),
    Provision(provision::Arguments),
    #[command(subcommand, after_help = webhook::EXAMPLES)]
    Webhook(webhook::Command),
}

fn scope(name: &str) -> Result<Scope, String> {
    Scope::parse(name).ok_or_else(|| {
        let known: Vec<_> = auth::scope::Scopes::ALL.iter().map(|scope| scope.as_str()).collect();
        format!("there is no such scope; the scopes are {}", known.join(", "))
    })
}
