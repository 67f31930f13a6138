//! `waypost login`: reads or asks for the address and credentials, checks them, and stores them.

use clap::Args;
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    login::{GivenLogin, StoredLogin, checked_address},
    output::Output,
    profile::Profile,
    questions,
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost login
  waypost login --address https://api.waypost.example --entity my-hotel --client-id appQ7nX2vLw9KdRtY4sUb8ZcE
  waypost login --profile staging
  echo \"$CLIENT_SECRET\" | waypost login --address \"$BASE_URL\" --entity demo-hotel --client-id \"$CLIENT_ID\" --client-secret-stdin

Options override the variables WAYPOST_ADDRESS, WAYPOST_ISSUER, WAYPOST_ENTITY, WAYPOST_CLIENT_ID and
WAYPOST_CLIENT_SECRET; the command asks for missing values. With --profile, it ignores the variables, which may belong
to another application.";

/// The scopes that the other commands need.
const SCOPES: [&str; 3] = ["integrations.read", "integrations.write", "integrations.remove"];

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Login {
    /// The base address of the API, such as `https://api.waypost.example`.
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// The token issuer's address. Defaults to the one that the API names.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// The managing entity whose events and webhooks the commands use.
    #[arg(long, value_name = "NAME", value_parser = segment)]
    entity: Option<String>,
    /// The application's client id.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Reads the client secret from standard input instead of the terminal.
    #[arg(long)]
    client_secret_stdin: bool,
}

impl Login {
    pub async fn run(self, profile: &Profile, output: Output) -> Result<(), Failure> {
        let login = self.complete(profile)?;
        tokio::select! {
            done = log_in(login, profile, output) => done,
            // Once the program has asked for the secret, the signal alone no longer ends it.
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        }
    }

    /// Fills in missing values from the environment, unless the profile is exact, and then by asking.
    fn complete(self, profile: &Profile) -> Result<StoredLogin, Failure> {
        let environment = GivenLogin::of_environment(profile);
        // Standard input cannot provide answers if it already provides the secret.
        let asks = questions::can_ask() && !self.client_secret_stdin;
        let ignored = if profile.is_exact() { "; with --profile, variables are ignored" } else { "" };
        let missing = |option: &str| {
            Failure::Usage(format!(
                "{option} is missing, and the program cannot ask for it because standard input is not a \
                 terminal{ignored}"
            ))
        };
        let value = |given: Option<String>, variable: Option<String>, option: &str, question: &str| {
            let known = given.or(variable);
            known.map_or_else(|| if asks { questions::ask(question) } else { Err(missing(option)) }, Ok)
        };
        let address = value(self.address, environment.address, "--address", "Address of the API")?;
        let address = checked_address(&address)?;
        let issuer = self.issuer.or(environment.issuer).as_deref().map(checked_address).transpose()?;
        let entity = value(self.entity, environment.entity, "--entity", "Managing entity")?;
        let client_id = value(self.client_id, environment.client_id, "--client-id", "Client id")?;
        let client_secret = if self.client_secret_stdin {
            questions::given(&questions::line()?, "the client secret on standard input")?
        } else if let Some(secret) = environment.client_secret {
            secret
        } else if asks {
            questions::ask_hidden("Client secret (not shown): ", "the client secret")?
        } else {
            let variable = if profile.is_exact() { "" } else { ", or set WAYPOST_CLIENT_SECRET" };
            return Err(Failure::Usage(format!(
                "the client secret is missing, and the program cannot ask for it because standard input is not a \
                 terminal: write the secret to standard input and add --client-secret-stdin{variable}"
            )));
        };
        Ok(StoredLogin { address, issuer, entity, client_id, client_secret })
    }
}

/// Checks the login with the service, and stores it.
async fn log_in(login: StoredLogin, profile: &Profile, output: Output) -> Result<(), Failure> {
    let service = Service::open(login).await?;
    let token = service.new_token().await?;
    let scopes: Vec<_> = token.scope.split(' ').collect();
    let lacking: Vec<_> = SCOPES.into_iter().filter(|scope| !scopes.contains(scope)).collect();
    // Any managing entity can list event types, so a refusal shows that the token does not cover this entity.
    match service.call::<Value>(Call::get(&["webhook", "event", "list"])).await {
        Err(failure) if !failure.is_of_kind("insufficient-scope") => return Err(failure),
        _ => {}
    }
    let login = &service.login;
    let path = login.save(profile)?;
    if !lacking.is_empty() {
        output.remark(format!(
            "The application lacks {}: some commands will be refused. `integrations.read` shows deliveries; `listen` needs all three.",
            lacking.join(", ")
        ));
    }
    let text = format!(
        "Logged in at {} as {} for {}. The login is stored in {}.",
        login.address,
        login.client_id,
        login.entity,
        path.display()
    );
    let json = json!({
        "address": login.address, "issuer": login.issuer, "entity": login.entity, "clientId": login.client_id,
        "lackingScopes": lacking, "profile": profile.name(), "storedIn": path,
    });
    Ok(output.write(json, text)?)
}
