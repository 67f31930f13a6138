//! `waypost-admin provision`: secrets and keys for a new stack, before its first request.

use base::{Clock, SystemClock};
use clap::{Args, error::ErrorKind};
use operator::{applications::OperatorsApplications, deployment::Location, provision::provide};
use serde_json::json;

use super::application::{Registration, credentials_of};
use crate::{
    arguments::{Which, usage},
    failure::Failure,
    output::Output,
};

const EXAMPLES: &str = "\
Examples:
  waypost-admin provision --stack waypost --name 'First application' --entity my-hotel --may-publish
  waypost-admin provision --stack waypost     # secrets and keys only

You can run it again: secrets that have a value keep it. With --name, each run creates another application.
A service on this machine needs none of this: `make run` does the same at its start.";

/// Fills the empty secrets of a new stack, publishes its keys, and creates a first application.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("name", |name| name.required(false).requires("entity")),
    mut_arg("entity", |entity| entity.required(false).requires("name")),
    mut_arg("may_publish", |may_publish| may_publish.requires("name"))
)]
pub struct Arguments {
    #[command(flatten)]
    application: Option<Registration>,
}

impl Arguments {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let wanted = self.application.map(Registration::wanted).transpose()?;
        if which.data.is_some() {
            let message = "provision does not support --data: `make run` does the same at its start; `waypost-admin \
                           application create` creates more applications";
            return Err(usage(ErrorKind::ArgumentConflict, message));
        }
        let deployment = which.open().await?;
        let Location::Stack(stack) = &deployment.location else { return Ok(()) };
        let filled = provide(&deployment, stack).await?;
        let created = match wanted {
            Some(wanted) => Some(OperatorsApplications::of(&deployment).create(wanted).await?),
            None => None,
        };
        let view = created.as_ref().map(|created| created.view(SystemClock.now()));
        let text = created.as_ref().map(credentials_of);
        let text =
            text.unwrap_or_else(|| "every secret has a value, and the keys that sign tokens are published".to_owned());
        output.write(json!({ "filledSecrets": filled, "application": view }), text)
    }
}
