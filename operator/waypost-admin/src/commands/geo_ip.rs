//! `waypost-admin geo-ip`: published geo-IP databases.

use std::net::IpAddr;

use clap::{Args, Subcommand, error::ErrorKind};
use geo_ip::{EditionName, rollback::RolledBack};
use operator::geo_ip_databases::{GeoIpDatabases, Lookup};
use serde_json::{Value, json};

use crate::{
    arguments::{Which, usage},
    failure::Failure,
    output::Output,
};

const EXAMPLES: &str = "\
Examples:
  waypost-admin geo-ip lookup 1.1.1.1 --stack waypost
  waypost-admin geo-ip lookup 1.1.1.1 --edition GeoLite2-City --data .local
  waypost-admin geo-ip lookup 1.1.1.1 --store s3://databases --environment staging
  waypost-admin geo-ip rollback GeoLite2-City --stack waypost

With --data no service needs to run.";

/// Looks into published geo-IP databases, and goes back to the release before.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A store by its address, in place of a deployment: s3://BUCKET or a folder.
    #[arg(long, global = true, value_name = "ADDRESS")]
    store: Option<String>,
    /// With --store, the name of the deployment that publishes there; `local`, when none is given.
    #[arg(long, global = true, value_name = "NAME")]
    environment: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Goes back to the release before the current one, and blocks the current one for all updates to come.
    Rollback {
        /// The edition, such as GeoLite2-City.
        #[arg(value_parser = edition)]
        edition: EditionName,
    },
    /// Looks an address up as readers do. Prints JSON.
    Lookup {
        /// The address.
        address: IpAddr,
        /// The edition; every one that is published, when none is given.
        #[arg(long, value_parser = edition)]
        edition: Option<EditionName>,
    },
}

fn edition(name: &str) -> Result<EditionName, String> {
    EditionName::parse(name).ok_or_else(|| format!("an edition's name has {}", EditionName::FORM))
}

impl Arguments {
    /// Does what the subcommand says.
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let databases = self.databases(which).await?;
        match self.command {
            Command::Rollback { edition } => {
                let RolledBack { from, to } = databases.roll_back(&edition).await?;
                let (current, blocked) = (to.build_date, from.build_date);
                let text = format!("{edition}: build {current} is current again; {blocked} is blocked");
                output.write(json!({ "edition": edition, "current": current, "blocked": blocked }), text)
            }
            Command::Lookup { address, edition } => {
                let answers = databases.look_up(address, edition.as_ref()).await?;
                let answers: Vec<_> = answers.into_iter().map(|answer| shown(address, answer)).collect();
                let texts: Vec<_> = answers.iter().map(|answer| format!("{answer:#}")).collect();
                output.write(answers, texts.join("\n"))
            }
        }
    }

    async fn databases(&self, which: &Which) -> Result<GeoIpDatabases, Failure> {
        match &self.store {
            Some(_) if which.stack.is_some() || which.data.is_some() => Err(usage(
                ErrorKind::ArgumentConflict,
                "--store takes the place of --stack and --data; say one of them",
            )),
            Some(store) => Ok(GeoIpDatabases::at(store, self.environment.as_deref()).await?),
            None if self.environment.is_some() => Err(usage(
                ErrorKind::ArgumentConflict,
                "--environment goes with --store; a deployment knows its own name",
            )),
            None => which.open_databases().await,
        }
    }
}

fn shown(address: IpAddr, Lookup { edition, release, found }: Lookup) -> Value {
    let (network, value) = found.unzip();
    json!({
        "edition": edition,
        "build": release.build_date,
        "address": address,
        "network": network,
        "value": value,
        "attribution": release.attribution,
    })
}
