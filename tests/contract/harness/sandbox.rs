//! A function's second process, since Lambda runs several sandboxes of one function at once.

use std::fs;

use tokio::process::{Child, Command};

use super::Bundle;

/// Starts another process of a running function, with the environment of the first. Both take invocations until the new
/// one is dropped.
pub async fn second_sandbox(bundle: &Bundle, function: &str) -> Child {
    let first = format!("/proc/{}", bundle.process(function).await.id);
    let environment = fs::read(format!("{first}/environ")).expect("the process is running");
    let environment = String::from_utf8(environment).expect("variables are texts");
    let variables = environment.split('\0').filter_map(|variable| variable.split_once('='));
    let program = fs::read_link(format!("{first}/exe")).expect("the process is running");
    Command::new(program).env_clear().envs(variables).kill_on_drop(true).spawn().expect("the program starts")
}
