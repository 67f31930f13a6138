#![doc = include_str!("../README.md")]

mod arguments;
mod commands;
mod failure;
mod http_client;
mod login;
mod machine;
mod output;
mod profile;
mod questions;
mod service;
mod table;

use std::process::ExitCode;

use clap::Parser;

use self::{
    arguments::{Arguments, Command},
    failure::Failure,
    output::Output,
    profile::{Profile, ProfileName},
    service::Service,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { json, profile, command } = Arguments::parse();
    let output = Output { json };
    match run(output, profile, command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(output),
    }
}

async fn run(output: Output, profile: Option<ProfileName>, command: Command) -> Result<(), Failure> {
    let profile = Profile::chosen(profile)?;
    let service = async || Service::of_profile(&profile).await;
    match command {
        Command::Login(login) => login.run(&profile, output).await,
        Command::Logout => commands::logout(&profile, output),
        Command::Verify(verify) => verify.run(output),
        Command::Completions { shell } => commands::completions(shell, output),
        Command::Token => commands::token(&service().await?, output).await,
        Command::Whoami => commands::whoami(&service().await?, &profile, output).await,
        Command::Listen(listen) => listen.run(&service().await?, output).await,
        Command::Trigger(trigger) => trigger.run(&service().await?, output).await,
        Command::Publish(publish) => publish.run(&service().await?, output).await,
        Command::Webhooks(webhooks) => webhooks.run(&service().await?, output).await,
        Command::Types(types) => types.run(&service().await?, output).await,
        Command::Deliveries(deliveries) => deliveries.run(&service().await?, output).await,
        Command::Why(why) => why.run(&service().await?, output).await,
        Command::Show(which) => which.show(&service().await?, output).await,
        Command::Resend(which) => which.resend(&service().await?, output).await,
        Command::Cancel(which) => which.cancel(&service().await?, output).await,
        Command::Recover(recover) => recover.run(&service().await?, output).await,
        Command::Replay(replay) => replay.run(&service().await?, output).await,
        Command::Open(open) => open.run(&service().await?, output).await,
    }
}
