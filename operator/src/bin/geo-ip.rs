//! The operator's command for geo-IP databases: goes back to the release before the current one, and looks an address up in
//! what is published, the way every reader does.
//!
//! For a bucket it takes credentials and region as every AWS tool does.

use std::{
    io::stderr,
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use base::{clock::SystemClock, logging, random::SystemRandom};
use clap::{Parser, Subcommand};
use geo_ip::{
    DatabaseReader, EditionName, Store, StoreAddress, StoreError,
    reader::ReaderError,
    rollback::{RollbackError, roll_back},
    store::{FolderStore, S3Store},
};
use serde_json::json;

/// Looks after published geo-IP databases.
#[derive(Parser)]
struct Arguments {
    /// Where they are published: a folder, or the stack's output `GeoIpStore`.
    #[arg(long)]
    store: String,
    /// The name of the deployment: the stack's output `EnvironmentName`.
    #[arg(long, default_value = "local")]
    environment: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Goes back to the release before the current one, which is never published again.
    Rollback {
        /// The edition, such as GeoLite2-City.
        #[arg(value_parser = edition)]
        edition: EditionName,
    },
    /// Looks an address up.
    Lookup {
        /// The address.
        address: IpAddr,
        /// The edition; without it, every one that is published.
        #[arg(long, value_parser = edition)]
        edition: Option<EditionName>,
    },
}

fn edition(name: &str) -> Result<EditionName, String> {
    EditionName::parse(name).ok_or_else(|| format!("an edition's name has {}", EditionName::FORM))
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// It is no place for a store.
    #[error("{0} is no place for a store")]
    Store(PathBuf),
    /// Nothing is there.
    #[error("nothing is published in {0}")]
    Nothing(String),
    /// The rollback was not done.
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    /// The store does not answer.
    #[error(transparent)]
    List(#[from] StoreError),
    /// What is published cannot be read.
    #[error(transparent)]
    Read(#[from] ReaderError),
    /// What was read cannot be looked into.
    #[error("{0}: the address cannot be looked up: {1}")]
    Lookup(EditionName, String),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(stderr).with_env_filter("warn").without_time().with_target(false).init();
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", logging::chain(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let store = open(&arguments.store).await?;
    match &arguments.command {
        Command::Rollback { edition } => {
            let done = roll_back(&store, &arguments.environment, edition).await?;
            println!("{edition}: build {} is current again; {} is blocked", done.to.build_date, done.from.build_date);
        }
        Command::Lookup { address, edition } => {
            let editions = match edition {
                Some(edition) => vec![edition.clone()],
                None => published(&store, &arguments.environment).await?,
            };
            if editions.is_empty() {
                return Err(Failure::Nothing(format!("{}/{}", arguments.store, arguments.environment)));
            }
            for edition in editions {
                look_up(store.clone(), &arguments.environment, edition, *address).await?;
            }
        }
    }
    Ok(())
}

async fn open(store: &str) -> Result<Store, Failure> {
    match store.parse() {
        Ok(StoreAddress::S3 { bucket, prefix }) => {
            let aws = aws_config::load_from_env().await;
            Ok(Store::S3(S3Store::new(aws_sdk_s3::Client::new(&aws), bucket, prefix)))
        }
        Ok(StoreAddress::Folder(folder)) => Ok(Store::Folder(FolderStore::new(folder))),
        Err(_) => {
            let folder = std::path::absolute(Path::new(store)).map_err(|_| Failure::Store(store.into()))?;
            Ok(Store::Folder(FolderStore::new(folder)))
        }
    }
}

async fn published(store: &Store, environment: &str) -> Result<Vec<EditionName>, StoreError> {
    let folders = store.folders(&format!("{environment}/")).await?;
    Ok(folders.iter().filter_map(|folder| EditionName::parse(folder)).collect())
}

async fn look_up(store: Store, environment: &str, edition: EditionName, address: IpAddr) -> Result<(), Failure> {
    let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandom));
    let reader = DatabaseReader::new(store, environment, edition.clone(), std::env::temp_dir(), clock, random);
    let database = reader.refresh().await?;
    let found = database.lookup::<serde_json::Value>(address);
    let found = found.map_err(|error| Failure::Lookup(edition.clone(), error.to_string()))?;
    let answer = json!({
        "edition": edition,
        "build": database.release.build_date,
        "address": address,
        "network": found.as_ref().map(|found| &found.network),
        "value": found.as_ref().map(|found| &found.value),
        "attribution": database.release.attribution,
    });
    println!("{answer:#}");
    Ok(())
}
