//! The subcommands, each in a file or a folder. A subcommand reads arguments, calls the service and prints.

mod answer;
mod deliveries;
mod delivery;
mod event_data;
mod first_attempt;
mod identifier;
mod input;
mod listen;
mod log_in;
mod open;
mod patience;
mod publish;
mod range;
mod recover;
mod replay;
mod settings;
mod times;
mod trigger;
mod types;
mod verify;
mod wait;
mod webhooks;
mod whoami;
mod why;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

pub use self::{
    deliveries::Deliveries, delivery::WhichDelivery, listen::Listen, log_in::Login, open::Open, publish::Publish,
    recover::Recover, replay::Replay, trigger::Trigger, types::Types, verify::Verify, webhooks::Webhooks,
    whoami::whoami, why::Why,
};
use crate::{
    arguments::Arguments, failure::Failure, login::StoredLogin, output::Output, profile::Profile, service::Service,
};

pub fn logout(profile: &Profile, output: Output) -> Result<(), Failure> {
    let removed = StoredLogin::remove(profile)?;
    let text = match &removed {
        Some(path) => format!("Logged out: {} is removed.", path.display()),
        None => "There was no stored login.".to_owned(),
    };
    Ok(output.write(json!({ "removed": removed.is_some(), "profile": profile.name() }), text)?)
}

pub async fn token(service: &Service, output: Output) -> Result<(), Failure> {
    let token = service.new_token().await?;
    Ok(output.write(&token, &token.access_token)?)
}

pub fn completions(shell: Shell, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "waypost", &mut script);
    Ok(output.raw(String::from_utf8_lossy(&script).trim_end())?)
}
