//! The operator's command for applications: makes the first ones of a deployment, those for every managing entity, and helps
//! where nobody has a token that could. On AWS, and for the service that `make run` runs.

use std::{process::ExitCode, time::Duration};

use auth::{
    entity::EntityId,
    scope::{Scope, Scopes},
};
use base::{
    clock::{Clock, SystemClock, Time},
    ids::ClientSecretId,
    random::SystemRandom,
};
use clap::{Parser, Subcommand};
use issuer::{
    applications::{
        Application, Applications, ClientSecret, client_secret, keys,
        left::Left,
        new_application::{NewApplication, checked_entities, checked_entity, checked_name},
        secrets::{self, Rotated, TooMany, with_new},
    },
    oauth::pepper,
};
use operator::{Deployment, OperatorError, Which};
use operator::{ProvisionError, pepper_of};
use storage::{
    secrets::SecretText,
    table::{TableError, Written},
};

/// Looks after the applications of a deployment.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    which: Which,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes an application, and prints its secret this once.
    Create {
        /// What people call it.
        #[arg(long, value_parser = checked_name)]
        name: String,
        /// The managing entities that it may act for, separated by spaces; `*` for every one.
        #[arg(long, required = true, value_delimiter = ' ', value_parser = checked_entity)]
        entity: Vec<String>,
        /// Its scopes, separated by spaces; all, when none is given.
        #[arg(long, value_delimiter = ' ', value_parser = scope)]
        scopes: Vec<Scope>,
        /// The managing entity that manages it over HTTP: the first of its own, when none is given.
        #[arg(long, value_parser = EntityId::parse)]
        owner: Option<EntityId>,
    },
    /// Shows an application, without its secrets.
    Show {
        /// Its client identifier.
        client_id: String,
    },
    /// Lists the applications that a managing entity manages.
    List {
        /// The managing entity.
        #[arg(value_parser = EntityId::parse)]
        owner: EntityId,
    },
    /// Gives an application a new secret, prints it this once, and lets the old one end.
    AddSecret {
        /// Its client identifier.
        client_id: String,
        /// For how many seconds the old secret is accepted beside the new one; seven days at most.
        #[arg(long, default_value_t = 86_400, value_parser = clap::value_parser!(u32).range(..=604_800))]
        overlap_seconds: u32,
    },
    /// Ends a secret of an application at once, and within a minute the tokens that were got with it.
    RemoveSecret {
        /// The application's client identifier.
        client_id: String,
        /// The secret's identifier, as `show` tells it.
        #[arg(value_parser = secret_id)]
        secret_id: ClientSecretId,
    },
    /// Removes a public key of an application at once, and within a minute the tokens that were got with it.
    RemoveKey {
        /// The application's client identifier.
        client_id: String,
        /// The key's name, as `show` tells it.
        kid: String,
    },
    /// Removes an application and revokes its tokens.
    Remove {
        /// Its client identifier.
        client_id: String,
    },
}

fn scope(name: &str) -> Result<Scope, String> {
    Scope::parse(name).ok_or_else(|| "there is no such scope".to_owned())
}

fn secret_id(text: &str) -> Result<ClientSecretId, String> {
    ClientSecretId::parse(text).ok_or_else(|| "an identifier of a secret begins with `sec_`".to_owned())
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// There is no such deployment.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The pepper is malformed.
    #[error(transparent)]
    Pepper(#[from] ProvisionError),
    /// The list of managing entities is too long.
    #[error("the list of managing entities {0}")]
    Entities(String),
    /// There is no such application.
    #[error("there is no application {0}")]
    NoApplication(String),
    /// The application has two secrets.
    #[error(
        "the application has two live secrets, and the older ends at {0}; wait until then, or end one with `remove-secret`"
    )]
    TooManySecrets(Time),
    /// The application has no such secret or key.
    #[error("the application has no secret and no key {0}")]
    NoCredential(String),
    /// Somebody else has changed it.
    #[error("somebody else has changed the application at this very moment; nothing was done")]
    Changed,
    /// It cannot be shown.
    #[error("the application cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The table did not answer.
    #[error("the table cannot be read or written")]
    Table(#[from] TableError),
}

#[tokio::main]
async fn main() -> ExitCode {
    operator::begin("application");
    operator::end(obey(Arguments::parse()).await)
}

async fn obey(arguments: Arguments) -> Result<(), Failure> {
    let deployment = Deployment::of(&arguments.which).await?;
    let office = Office { applications: Applications::new(deployment.table.clone()), deployment };
    match arguments.command {
        Command::Create { name, entity, scopes, owner } => {
            let scopes = if scopes.is_empty() { Scopes::ALL } else { scopes.into_iter().collect() };
            let entities = checked_entities(entity).map_err(Failure::Entities)?;
            let new = NewApplication::of_operator(name, scopes, entities);
            office.create(NewApplication { owner: owner.or(new.owner.clone()), ..new }).await
        }
        Command::Show { client_id } => show(&office.find(&client_id).await?),
        Command::List { owner } => office.applications.of(&owner).await?.iter().try_for_each(show),
        Command::AddSecret { client_id, overlap_seconds } => {
            office.add_secret(&client_id, Duration::from_secs(overlap_seconds.into())).await
        }
        Command::RemoveSecret { client_id, secret_id } => office.remove_secret(&client_id, &secret_id).await,
        Command::RemoveKey { client_id, kid } => office.remove_key(&client_id, &kid).await,
        Command::Remove { client_id } => office.remove(&client_id).await,
    }
}

/// Where applications are looked after.
struct Office {
    deployment: Deployment,
    applications: Applications,
}

impl Office {
    async fn create(&self, new: NewApplication) -> Result<(), Failure> {
        let pepper = pepper_of(&self.deployment.secret(pepper::SECRET).await?)?;
        let (application, secret) = new.make(&pepper, SystemClock.now(), &SystemRandom);
        let client_id = application.client_id.clone();
        tracing::info!("made the application {}; its secret is shown this once", application.name);
        self.applications.put(application).await?;
        tell(&client_id, secret.as_ref());
        Ok(())
    }

    async fn find(&self, client_id: &str) -> Result<Application, Failure> {
        let found = self.applications.find(client_id).await?;
        found.ok_or_else(|| Failure::NoApplication(client_id.to_owned()))
    }

    async fn add_secret(&self, client_id: &str, overlap: Duration) -> Result<(), Failure> {
        let application = self.find(client_id).await?;
        let pepper = pepper_of(&self.deployment.secret(pepper::SECRET).await?)?;
        let (secret, now) = (client_secret::fresh(&SystemRandom), SystemClock.now());
        let new = ClientSecret::of(&secret, &pepper, now, &SystemRandom);
        let Rotated { left, previous_ends } =
            with_new(&application, new, overlap, now).map_err(|TooMany(ends)| Failure::TooManySecrets(ends))?;
        changed(self.applications.leave(&application, &left, now).await?)?;
        match previous_ends {
            Some(end) => tracing::info!("the new secret is shown this once; the old one ends at {end}"),
            None => tracing::info!("the new secret is shown this once"),
        }
        tell(client_id, Some(&secret));
        Ok(())
    }

    async fn remove_secret(&self, client_id: &str, id: &ClientSecretId) -> Result<(), Failure> {
        let (application, now) = (self.find(client_id).await?, SystemClock.now());
        let left =
            secrets::without(&application, id, now).ok_or_else(|| Failure::NoCredential(id.as_str().to_owned()))?;
        self.leave(&application, &left, now).await
    }

    async fn remove_key(&self, client_id: &str, kid: &str) -> Result<(), Failure> {
        let (application, now) = (self.find(client_id).await?, SystemClock.now());
        let left = keys::without(&application, kid).ok_or_else(|| Failure::NoCredential(kid.to_owned()))?;
        self.leave(&application, &left, now).await
    }

    async fn leave(&self, application: &Application, left: &Left, now: Time) -> Result<(), Failure> {
        changed(self.applications.leave(application, left, now).await?)?;
        tracing::info!("it is no longer accepted; tokens that were got with it end within a minute");
        if left.is_nothing(now) {
            tracing::info!("it was the last: the application gets no tokens until it is given a secret or a key");
        }
        Ok(())
    }

    async fn remove(&self, client_id: &str) -> Result<(), Failure> {
        let application = self.find(client_id).await?;
        if !self.applications.delete(&application, SystemClock.now()).await?.is_done() {
            return Err(Failure::NoApplication(client_id.to_owned()));
        }
        tracing::info!("removed the application {}; its tokens end within a minute", application.name);
        Ok(())
    }
}

fn changed(change: Written<()>) -> Result<(), Failure> {
    change.done().ok_or(Failure::Changed)
}

/// The credentials, in the form of `service.env`.
fn tell(client_id: &str, secret: Option<&SecretText>) {
    println!("CLIENT_ID={client_id}");
    if let Some(secret) = secret {
        println!("CLIENT_SECRET={}", secret.expose());
    }
}

/// One line of JSON, as its owner sees it.
fn show(application: &Application) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(&application.view(SystemClock.now(), None))?);
    Ok(())
}
