#![doc = include_str!("../README.md")]

mod arguments;
mod commands;
mod failure;
mod http_client;
mod login;
mod machine;
mod output;
mod questions;
mod service;
mod table;

use std::process::ExitCode;

use clap::Parser;

use self::{
    arguments::{Arguments, Command},
    failure::Failure,
    output::Output,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(Arguments { json, command }: Arguments) -> Result<(), Failure> {
    let output = Output { json };
    match command {
        Command::Login(login) => login.run(output).await,
        Command::Logout => commands::logout(output),
        Command::Token => commands::token(output).await,
        Command::Whoami => commands::whoami(output).await,
        Command::Listen(listen) => listen.run(output).await,
        Command::Trigger(trigger) => trigger.run(output).await,
        Command::Webhooks(webhooks) => webhooks.run(output).await,
        Command::Types(types) => types.run(output).await,
        Command::Verify(verify) => verify.run(output),
        Command::Deliveries(deliveries) => deliveries.run(output).await,
        Command::Show(which) => which.show(output).await,
        Command::Resend(which) => which.resend(output).await,
        Command::Cancel(which) => which.cancel(output).await,
        Command::Recover(recover) => recover.run(output).await,
        Command::Replay(replay) => replay.run(output).await,
        Command::Completions { shell } => commands::completions(shell, output),
    }
}
