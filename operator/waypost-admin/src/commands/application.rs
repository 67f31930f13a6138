//! `waypost-admin application`: the clients of the token issuer.

use std::{
    fmt::{self, Display},
    net::IpAddr,
    time::Duration,
};

use auth::{EntityId, Scope, Scopes};
use base::{ClientSecretId, Clock, SystemClock};
use clap::{ArgGroup, Args, Subcommand, ValueEnum, error::ErrorKind};
use issuer::applications::{
    Application,
    credential_removal::{CredentialName, CredentialRemoved},
    new_application::{NewApplication, checked_entities, checked_entity, checked_name},
    register::Created,
};
use operator::{applications::OperatorsApplications, guesses};
use serde_json::json;
use storage::SecretText;

use crate::{
    arguments::{Which, usage},
    failure::Failure,
    output::Output,
};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin application create --stack waypost --name 'Channel manager' --entity 'hotel-1 hotel-2' --scopes 'booking.read'
  waypost-admin application create --stack waypost --name 'Back office' --entity '*' --may-publish
  waypost-admin application list hotel-1 --data .local
  waypost-admin application list --all --stack waypost --json
  waypost-admin application show CLIENT_ID --stack waypost --json
  waypost-admin application scopes CLIENT_ID 'booking.read' --stack waypost
  waypost-admin application publishing CLIENT_ID off --stack waypost
  waypost-admin application add-secret CLIENT_ID --overlap-seconds 3600 --stack waypost
  waypost-admin application remove-secret CLIENT_ID SECRET_ID --stack waypost
  waypost-admin application unblock 192.0.2.1 --stack waypost";

/// Creates, shows and removes applications, the clients of the token issuer, and their credentials.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Creates an application, and prints its secret once.
    Create(Registration),
    /// Shows an application, without its secrets.
    Show {
        /// The application's client identifier.
        client_id: String,
    },
    /// Lists the applications that a managing entity manages, or all applications of the deployment.
    #[command(group = ArgGroup::new("whose").required(true).args(["owner", "all"]))]
    List {
        /// The managing entity.
        #[arg(value_parser = EntityId::parse)]
        owner: Option<EntityId>,
        /// All applications of the deployment, including those that only operators manage. Reads the whole table once.
        #[arg(long)]
        all: bool,
    },
    /// Sets an application's scopes, effective with its next token. If it loses a scope, its current tokens stop
    /// working within a minute.
    Scopes {
        /// The application's client identifier.
        client_id: String,
        /// All of the application's new scopes, separated by spaces.
        #[arg(required = true, value_delimiter = ' ', value_parser = super::scope)]
        scopes: Vec<Scope>,
    },
    /// Grants the right to publish events, effective with the next token, or withdraws it; the application's current
    /// tokens then stop working within a minute.
    Publishing {
        /// The application's client identifier.
        client_id: String,
        /// Whether the application may publish.
        right: Right,
    },
    /// Gives an application a new secret, prints it once, and lets the old one expire.
    AddSecret {
        /// The application's client identifier.
        client_id: String,
        /// How many seconds the old secret stays valid alongside the new one, up to seven days.
        #[arg(long, default_value_t = 86_400, value_parser = clap::value_parser!(u32).range(..=604_800))]
        overlap_seconds: u32,
    },
    /// Removes an application's secret at once; tokens issued with it stop working within a minute.
    RemoveSecret {
        /// The application's client identifier.
        client_id: String,
        /// The secret's identifier, as `show` prints it.
        #[arg(value_parser = secret_id)]
        secret_id: ClientSecretId,
    },
    /// Removes an application's public key at once; tokens issued with it stop working within a minute.
    RemoveKey {
        /// The application's client identifier.
        client_id: String,
        /// The key's name, as `show` prints it.
        kid: String,
    },
    /// Removes an application and revokes its tokens.
    Remove {
        /// The application's client identifier.
        client_id: String,
    },
    /// Clears failed attempts to authenticate, so that clients at a blocked address can authenticate again at once.
    Unblock {
        /// The address, as in the audit trail. For IPv6, only the first 64 bits are used.
        address: IpAddr,
        /// Clears only the attempts to authenticate as this client from the address.
        #[arg(long, value_name = "CLIENT_ID")]
        client: Option<String>,
    },
}

/// The right to publish: granted or withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Right {
    On,
    Off,
}

/// The arguments that describe a new application.
#[derive(Debug, Args)]
pub struct Registration {
    /// The application's display name.
    #[arg(long, value_parser = checked_name)]
    name: String,
    /// The managing entities that the application may act for, separated by spaces; `*` for all.
    #[arg(long, required = true, value_delimiter = ' ', value_parser = checked_entity)]
    entity: Vec<String>,
    /// The application's scopes, separated by spaces. Defaults to all scopes.
    #[arg(long, value_delimiter = ' ', value_parser = super::scope)]
    scopes: Vec<Scope>,
    /// The managing entity that manages the application over HTTP. Defaults to the first one that it may act for.
    #[arg(long, value_parser = EntityId::parse)]
    owner: Option<EntityId>,
    /// Lets the application publish events, and create applications that may. Without this, it may do everything else
    /// that its scopes allow.
    #[arg(long)]
    may_publish: bool,
}

fn secret_id(text: &str) -> Result<ClientSecretId, String> {
    ClientSecretId::parse(text).ok_or_else(|| {
        "a secret's identifier is `sec_` and 26 digits and lower-case letters, as `show` prints it".to_owned()
    })
}

impl Command {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let deployment = which.open().await?;
        let applications = OperatorsApplications::of(&deployment);
        match self {
            Self::Create(registration) => {
                let created = applications.create(registration.wanted()?).await?;
                output.write(created.view(SystemClock.now()), credentials_of(&created))
            }
            Self::Show { client_id } => {
                let found = applications.find(&client_id).await?;
                output.write(found.view(SystemClock.now(), None), Shown(&found))
            }
            Self::List { owner, all: _ } => {
                let found = match &owner {
                    Some(owner) => applications.of_owner(owner).await?,
                    None => applications.all().await?,
                };
                let views: Vec<_> = found.iter().map(|application| application.view(SystemClock.now(), None)).collect();
                let texts: Vec<_> = found.iter().map(|application| Shown(application).to_string()).collect();
                let none = owner.map(|owner| format!("{owner} manages no applications"));
                let none = none.unwrap_or_else(|| "the deployment has no applications".to_owned());
                output.write(views, if texts.is_empty() { none } else { texts.join("\n") })
            }
            Self::Scopes { client_id, scopes } => {
                let changed = applications.set_scopes(&client_id, scopes.into_iter().collect()).await?;
                let text = format!(
                    "{} has these scopes, effective with its next token: {}. If it lost a \
                     scope, its current tokens stop \
                     working within a minute",
                    changed.name, changed.scopes
                );
                output.write(changed.view(SystemClock.now(), None), text)
            }
            Self::Publishing { client_id, right } => {
                let changed = applications.let_publish(&client_id, right == Right::On).await?;
                let text = match right {
                    Right::On => "may publish events, effective with its next token",
                    Right::Off => "may not publish events; its current tokens stop working within a minute",
                };
                output.write(changed.view(SystemClock.now(), None), format!("{} {text}", changed.name))
            }
            Self::AddSecret { client_id, overlap_seconds } => {
                let overlap = Duration::from_secs(overlap_seconds.into());
                let added = applications.add_secret(&client_id, overlap).await?;
                let end =
                    added.previous_ends.map(|end| format!("# The old secret expires at {end}.\n")).unwrap_or_default();
                let text = end + &credentials(&added.client_id, Some(&added.client_secret));
                output.write(added, text)
            }
            Self::RemoveSecret { client_id, secret_id } => {
                let removed = applications.remove_credential(&client_id, CredentialName::Secret(secret_id.as_str()));
                write_removed(output, &client_id, secret_id.as_str(), removed.await?)
            }
            Self::RemoveKey { client_id, kid } => {
                let removed = applications.remove_credential(&client_id, CredentialName::Key(&kid));
                write_removed(output, &client_id, &kid, removed.await?)
            }
            Self::Unblock { address, client } => {
                let clients =
                    guesses::forget(&deployment, address, client.as_deref()).await.map_err(Failure::Guesses)?;
                let as_clients = match (&client, clients) {
                    (None, 0) => "; no client had any".to_owned(),
                    (None, 1) => ", including those of 1 client".to_owned(),
                    (None, several) => format!(", including those of {several} clients"),
                    (Some(client), _) => format!(" as {client}"),
                };
                let text = format!("cleared the failed attempts from {address}{as_clients}");
                output.write(json!({ "address": address, "client": client, "clientsForgotten": clients }), text)
            }
            Self::Remove { client_id } => {
                let name = applications.remove(&client_id).await?.name;
                let text = format!("removed the application {name}; its tokens stop working within a minute");
                output.write(json!({ "clientId": client_id, "name": name }), text)
            }
        }
    }
}

impl Registration {
    /// The application that the arguments describe.
    pub fn wanted(self) -> Result<NewApplication, Failure> {
        let scopes = if self.scopes.is_empty() { Scopes::ALL } else { self.scopes.into_iter().collect() };
        let entities = checked_entities(self.entity)
            .map_err(|fault| usage(ErrorKind::ValueValidation, &format!("the list of managing entities {fault}")))?;
        let new = NewApplication::of_operator(self.name, scopes, entities).publishing(self.may_publish);
        Ok(NewApplication { owner: self.owner.or(new.owner.clone()), ..new })
    }
}

/// A new application's credentials as lines for a shell, as in `service.env`.
pub fn credentials_of(created: &Created) -> String {
    credentials(&created.application.client_id, created.secret.as_ref())
}

fn credentials(client_id: &str, secret: Option<&SecretText>) -> String {
    let secret = secret.map(|secret| format!("\nCLIENT_SECRET={}", secret.expose())).unwrap_or_default();
    format!("CLIENT_ID={client_id}{secret}")
}

fn write_removed(output: Output, client_id: &str, credential: &str, removed: CredentialRemoved) -> Result<(), Failure> {
    let is_last = removed.was_the_last;
    let last = "\nIt was the application's last credential: without a new secret or key, the application gets no \
        tokens.";
    let text = format!(
        "removed {credential}; tokens issued with it stop working within a minute{}",
        if is_last { last } else { "" }
    );
    output.write(json!({ "clientId": client_id, "credential": credential, "isLast": is_last }), text)
}

/// Formats an application, without its secrets.
struct Shown<'a>(&'a Application);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let application = self.0;
        let now = SystemClock.now();
        let entities: Vec<_> = application.entities.iter().collect();
        writeln!(f, "{}  {}", application.client_id, application.name)?;
        let owner = application.owner.as_ref().map_or("operators only", EntityId::as_str);
        writeln!(f, "  managed by {owner}")?;
        writeln!(f, "  for        {}", entities.join(" "))?;
        writeln!(f, "  scopes     {}", application.scopes)?;
        write!(f, "  publishes  {}", if application.may_publish { "yes" } else { "no" })?;
        for secret in application.kept_secrets(now) {
            let id = secret.id.as_str();
            write!(f, "\n  secret     {id}  created {}", secret.created_date)?;
            if let Some(end) = secret.expires_date {
                write!(f, ", {} {end}", if secret.is_live(now) { "expires" } else { "expired" })?;
            }
            last_use(f, application, id)?;
        }
        for key in &application.keys {
            write!(f, "\n  key        {}  created {}", key.kid, key.created_date)?;
            last_use(f, application, &key.kid)?;
        }
        Ok(())
    }
}

fn last_use(f: &mut fmt::Formatter<'_>, application: &Application, credential: &str) -> fmt::Result {
    application.last_used.get(credential).map_or(Ok(()), |day| write!(f, ", last used {day}"))
}
