//! `waypost-admin geo-ip`: published geo-IP databases.

use std::{
    fmt::{self, Display},
    net::IpAddr,
};

use clap::{Args, Subcommand, error::ErrorKind};
use geo_ip::{EditionName, rollback::RolledBack};
use operator::geo_ip_databases::{GeoIpDatabases, Lookup};
use serde::{Serialize, Serializer};
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
                let done = databases.roll_back(&edition).await?;
                output.write(&Back { edition, done })
            }
            Command::Lookup { address, edition } => {
                let answers = databases.look_up(address, edition.as_ref()).await?;
                output.write(&Answers(answers.into_iter().map(|answer| shown(address, answer)).collect()))
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

/// A rollback that was done.
struct Back {
    edition: EditionName,
    done: RolledBack,
}

impl Serialize for Back {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RolledBack { from, to } = &self.done;
        json!({ "edition": self.edition, "current": to.build_date, "blocked": from.build_date }).serialize(serializer)
    }
}

impl Display for Back {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RolledBack { from, to } = &self.done;
        write!(f, "{}: build {} is current again; {} is blocked", self.edition, to.build_date, from.build_date)
    }
}

/// The answers of all editions: an array in JSON, and one object after the other as text.
struct Answers(Vec<Value>);

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(|answer| format!("{answer:#}")).collect();
        f.write_str(&texts.join("\n"))
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
