//! `waypost-admin panel`: panel links.

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

/// Creates links to the panel, the web interface.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Creates a link, and prints its address once. It can be opened once, within ten minutes.
    Link(LinkArguments),
}

/// The arguments that describe a link.
#[derive(Debug, Args)]
pub struct LinkArguments {
    /// The managing entity that the panel shows. With --data, defaults to the demo entity.
    #[arg(value_parser = EntityId::parse)]
    entity: Option<EntityId>,
    /// The application whose tokens the session gets. With --data, defaults to the demo application.
    #[arg(long, value_name = "CLIENT_ID")]
    application: Option<String>,
    /// The link's scopes, separated by spaces. Defaults to all of the application's scopes.
    #[arg(long, value_delimiter = ' ', value_parser = super::scope)]
    scopes: Vec<Scope>,
    /// The session's duration in seconds, up to a day.
    #[arg(long, default_value = "3600", value_parser = lifetime)]
    lifetime_seconds: Duration,
    /// The page that the link opens, such as /panel/deliveries.
    #[arg(long, value_parser = checked_place)]
    place: Option<String>,
    /// The link's display name.
    #[arg(long, value_parser = checked_name)]
    name: Option<String>,
}

fn lifetime(text: &str) -> Result<Duration, &'static str> {
    text.parse().ok().and_then(checked_lifetime).ok_or("a session lasts from 60 to 86400 seconds")
}

impl Command {
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
            let message = "name the link's managing entity, and its application with --application";
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
