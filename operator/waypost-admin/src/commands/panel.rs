//! `waypost-admin panel`: links into the panel.

use std::time::Duration;

use auth::{EntityId, Scope};
use clap::{Args, Subcommand, error::ErrorKind};
use issuer::{
    applications::new_application::checked_name,
    panel::new_link::{NewPanelLink, checked_lifetime, checked_place},
};
use operator::{
    Deployment,
    panel_links::{OperatorsPanelLinks, WantedLink},
};

use crate::{
    arguments::{Which, usage},
    failure::Failure,
    output::Output,
};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin panel link --data .local
  waypost-admin panel link my-hotel --application CLIENT_ID --stack waypost
  waypost-admin panel link my-hotel --application CLIENT_ID --scopes 'integrations.read' --lifetime-seconds 28800 --stack waypost";

/// Makes links into the panel, the page for people.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a link, and prints its address this once: it can be opened once, for ten minutes.
    Link(LinkArguments),
}

/// A link, as arguments describe it.
#[derive(Debug, Args)]
pub struct LinkArguments {
    /// The managing entity that the panel is to show; with --data, the demo one when none is given.
    #[arg(value_parser = EntityId::parse)]
    entity: Option<EntityId>,
    /// The application whose tokens the session gets; with --data, the demo one when none is given.
    #[arg(long, value_name = "CLIENT_ID")]
    application: Option<String>,
    /// Its scopes, separated by spaces; all of the application's, when none is given.
    #[arg(long, value_delimiter = ' ', value_parser = super::scope)]
    scopes: Vec<Scope>,
    /// The seconds for which the session lasts; eight hours at most.
    #[arg(long, default_value = "3600", value_parser = lifetime)]
    lifetime_seconds: Duration,
    /// The page that it opens, such as /panel/deliveries.
    #[arg(long, value_parser = checked_place)]
    place: Option<String>,
    /// The name that people know it by.
    #[arg(long, value_parser = checked_name)]
    name: Option<String>,
}

fn lifetime(text: &str) -> Result<Duration, &'static str> {
    text.parse().ok().and_then(checked_lifetime).ok_or("a session lasts from 60 to 28800 seconds")
}

impl Command {
    /// Does what the subcommand says.
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let Self::Link(arguments) = self;
        let deployment = which.open().await?;
        let links = OperatorsPanelLinks::of(&deployment)?;
        let created = links.create_audited(arguments.wanted(&deployment)?, &deployment.environment).await?;
        output.write(&created, created.url.expose())
    }
}

impl LinkArguments {
    fn wanted(self, deployment: &Deployment) -> Result<WantedLink, Failure> {
        let missing = || {
            let message = "say for which managing entity the link is, and with --application in whose name";
            usage(ErrorKind::MissingRequiredArgument, message)
        };
        let demo = |name| deployment.folder().map(|folder| folder.value(name)).transpose();
        let demo_entity = demo("MANAGING_ENTITY")?.and_then(|entity| EntityId::parse(entity).ok());
        let entity = self.entity.or(demo_entity).ok_or_else(missing)?;
        let client_id = self.application.or(demo("CLIENT_ID")?.map(str::to_owned)).ok_or_else(missing)?;
        let scopes = (!self.scopes.is_empty()).then(|| self.scopes.into_iter().collect());
        let properties = NewPanelLink {
            scopes,
            lifetime: self.lifetime_seconds,
            place: self.place,
            name: self.name,
            may_publish: false,
        };
        Ok(WantedLink { entity, client_id, properties })
    }
}
