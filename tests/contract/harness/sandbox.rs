//! A second process for a function, since Lambda runs several sandboxes of a function concurrently.

use std::fs;

use tokio::process::{Child, Command};

use super::Bundle;

/// Starts another process for a running function, with the first process's environment. Both processes take invocations
/// until the new one is dropped.
pub async fn second_sandbox(bundle: &Bundle, function: &str) -> Child {
    let first = format!("/proc/{}", bundle.process(function).await.id);
    let environment = fs::read(format!("{first}/environ")).expect("the process is running");
    let environment = String::from_utf8(environment).expect("variables are texts");
    let variables = environment.split('\0').filter_map(|variable| variable.split_once('='));
    let program = fs::read_link(format!("{first}/exe")).expect("the process is running");
    Command::new(program).env_clear().envs(variables).kill_on_drop(true).spawn().expect("the program starts")
}
