//! `waypost-admin geo-ip`: published geo-IP databases.

use std::net::IpAddr;

use clap::{Args, Subcommand, error::ErrorKind};
use geo_ip::{EditionName, Release, rollback::RolledBack};
use operator::geo_ip_databases::{GeoIpDatabases, Lookup};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    arguments::{Which, usage},
    failure::Failure,
    invocation::Invoked,
    output::Output,
};

const EXAMPLES: &str = "\
Examples:
  waypost-admin geo-ip lookup 1.1.1.1 --stack waypost
  waypost-admin geo-ip lookup 1.1.1.1 --edition GeoLite2-City --data .local
  waypost-admin geo-ip lookup 1.1.1.1 --store s3://databases --environment staging
  waypost-admin geo-ip update --stack waypost
  waypost-admin geo-ip rollback GeoLite2-City --stack waypost
  waypost-admin geo-ip unblock GeoLite2-City 1a2b3c4d5e6f --stack waypost

With --data, only an update needs a running service.";

/// The function that updates the databases.
const UPDATE: Invoked = Invoked { name: "geo-ip-update", output: "GeoIpUpdateName" };
/// The shortest accepted prefix of a release's SHA-256, in digits.
const SHORTEST: usize = 8;

/// Updates geo-IP databases, looks addresses up in published ones, and rolls releases back.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The address of a store, instead of a deployment: s3://BUCKET or a folder.
    #[arg(long, global = true, value_name = "ADDRESS")]
    store: Option<String>,
    /// With --store, the name of the deployment that publishes there. Defaults to `local`.
    #[arg(long, global = true, value_name = "NAME")]
    environment: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Updates all configured databases, as the daily schedule does, and waits for the result, which can take minutes.
    Update,
    /// Rolls back to the previous release, and blocks the current one until it is unblocked.
    Rollback {
        /// The edition, such as GeoLite2-City.
        #[arg(value_parser = edition)]
        edition: EditionName,
    },
    /// Unblocks a release that was rolled back. The next update publishes it, if it is still the newest.
    Unblock {
        /// The edition, such as GeoLite2-City.
        #[arg(value_parser = edition)]
        edition: EditionName,
        /// The release's SHA-256 or its first digits, as in the messages of `rollback` and of refused updates.
        #[arg(value_name = "SHA256", value_parser = sha256)]
        release: String,
    },
    /// Looks an address up as readers do. Prints JSON.
    Lookup {
        /// The address.
        address: IpAddr,
        /// The edition. Defaults to all published editions.
        #[arg(long, value_parser = edition)]
        edition: Option<EditionName>,
    },
}

fn edition(name: &str) -> Result<EditionName, String> {
    EditionName::parse(name).ok_or_else(|| format!("an edition's name has {}", EditionName::FORM))
}

fn sha256(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let good = digits && (SHORTEST..=64).contains(&text.len());
    good.then(|| text.to_owned())
        .ok_or_else(|| format!("give at least the first {SHORTEST} hexadecimal digits of the SHA-256 checksum"))
}

/// An update's result, as the function returns it.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    success: bool,
    message: String,
}

impl Arguments {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        if let Command::Update = self.command {
            return self.update(which, output).await;
        }
        let databases = self.databases(which).await?;
        match self.command {
            Command::Update => Ok(()),
            Command::Rollback { edition } => {
                let RolledBack { from, to } = databases.roll_back(&edition).await?;
                let text = format!("{edition}: build {} is current again; {} is blocked", to.label(), from.label());
                let json = json!({
                    "edition": edition, "current": to.build_date, "blocked": from.build_date,
                    "currentRelease": named(&to), "blockedRelease": named(&from),
                });
                output.write(json, text)
            }
            Command::Unblock { edition, release } => {
                let sha256 = databases.unblock(&edition, &release).await?;
                let text = format!("{edition}: the release {sha256} may be published again");
                output.write(json!({ "edition": edition, "unblocked": sha256 }), text)
            }
            Command::Lookup { address, edition } => {
                let answers = databases.look_up(address, edition.as_ref()).await?;
                let answers: Vec<_> = answers.into_iter().map(|answer| shown(address, answer)).collect();
                let texts: Vec<_> = answers.iter().map(|answer| format!("{answer:#}")).collect();
                output.write(answers, texts.join("\n"))
            }
        }
    }

    async fn update(self, which: &Which, output: Output) -> Result<(), Failure> {
        if self.store.is_some() || self.environment.is_some() {
            let message = "updates run in a deployment; name it with --stack or --data";
            return Err(usage(ErrorKind::ArgumentConflict, message));
        }
        let report: Report = UPDATE.invoke(&which.open().await?).await?;
        output.write(&report, report.message.replace("; ", "\n"))?;
        if report.success { Ok(()) } else { Err(Failure::NotUpToDate) }
    }

    async fn databases(&self, which: &Which) -> Result<GeoIpDatabases, Failure> {
        match &self.store {
            Some(_) if which.stack.is_some() || which.data.is_some() => {
                Err(usage(ErrorKind::ArgumentConflict, "--store replaces --stack and --data; use only one"))
            }
            Some(store) => Ok(GeoIpDatabases::at(store, self.environment.as_deref()).await?),
            None if self.environment.is_some() => Err(usage(
                ErrorKind::ArgumentConflict,
                "--environment needs --store; with --stack or --data, the deployment names its environment",
            )),
            None => which.open_databases().await,
        }
    }
}

/// The properties that identify a release.
fn named(release: &Release) -> Value {
    json!({ "buildTime": release.build_time(), "sha256": release.sha256 })
}

fn shown(address: IpAddr, Lookup { edition, release, found }: Lookup) -> Value {
    let (network, value) = found.unzip();
    json!({
        "edition": edition,
        "build": release.build_date,
        "buildTime": release.build_time(),
        "sha256": release.sha256,
        "address": address,
        "network": network,
        "value": value,
        "attribution": release.attribution,
    })
}
