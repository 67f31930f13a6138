//! The subcommands, each in a file or a folder. A subcommand reads arguments, calls the service and prints.

mod answer;
mod deliveries;
mod delivery;
mod first_attempt;
mod listen;
mod log_in;
mod recover;
mod replay;
mod settings;
mod times;
mod trigger;
mod types;
mod verify;
mod webhooks;
mod whoami;

use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;

pub use self::replay::Replay;
pub use self::{
    deliveries::Deliveries, delivery::WhichDelivery, listen::Listen, log_in::Login, recover::Recover, trigger::Trigger,
    types::Types, verify::Verify, webhooks::Webhooks, whoami::whoami,
};
use crate::{arguments::Arguments, failure::Failure, login::StoredLogin, output::Output, service::Service};

pub fn logout(output: Output) -> Result<(), Failure> {
    let removed = StoredLogin::remove()?;
    let text = match &removed {
        Some(path) => format!("Logged out: {} is removed.", path.display()),
        None => "There was no stored login.".to_owned(),
    };
    Ok(output.write(json!({ "removed": removed.is_some() }), text)?)
}

pub async fn token(output: Output) -> Result<(), Failure> {
    let token = Service::of_login().await?.new_token().await?;
    Ok(output.write(&token, &token.access_token)?)
}

pub fn completions(shell: Shell, output: Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "waypost", &mut script);
    Ok(output.raw(String::from_utf8_lossy(&script).trim_end())?)
}
