//! The operator's command for a new deployment on AWS: gives empty secrets their values, publishes the public halves of
//! the signing keys, and registers the first application. Run again, it registers one more and leaves what is there.
//!
//! It takes credentials and region as every AWS tool does.

use std::{collections::BTreeMap, process::ExitCode};

use auth::{
    scope::{Scope, Scopes},
    signing::{self, SigningAlgorithm},
};
use aws_sdk_secretsmanager::{Client, error::DisplayErrorContext};
use clap::Parser;
use issuer::{
    applications::new_application::{NewApplication, checked_entities, checked_entity, checked_name},
    oauth::pepper,
};
use operator::{ProvisionError, fresh_credentials, fresh_secrets, publish_signing_key, register_application, renewed};
use serde_json::Value;
use storage::table::Table;

/// Fills a deployment's secrets and registers its first application.
#[derive(Parser)]
struct Arguments {
    /// The table's name: the stack's output `TableName`.
    #[arg(long)]
    table: String,
    /// What the secrets' names begin with: the stack's output `SecretsPrefix`.
    #[arg(long)]
    secrets_prefix: String,
    /// What keys that sign tokens are made for, ES256 or EdDSA: the stack's parameter `SigningAlgorithm`.
    #[arg(long, default_value_t)]
    signing_algorithm: SigningAlgorithm,
    /// Seconds that a token lives: the stack's parameter `TokenLifetime`.
    #[arg(long, default_value_t = 3600)]
    token_lifetime: u32,
    /// What the application is called.
    #[arg(long, value_parser = checked_name)]
    application_name: String,
    /// A managing entity that the application may act for; repeat for several, `*` for all.
    #[arg(long, required = true, value_parser = checked_entity)]
    managing_entity: Vec<String>,
    /// A scope of the application; repeat for several. All scopes when none is given.
    #[arg(long, value_parser = scope)]
    scope: Vec<Scope>,
}

fn scope(name: &str) -> Result<Scope, String> {
    Scope::parse(name).ok_or_else(|| "there is no such scope".to_owned())
}

/// Why the deployment is not provided for.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Secrets Manager did not answer, or refused.
    #[error("the secret {name} cannot be read or written: {reason}")]
    Secret { name: String, reason: String },
    /// The secret has a value that is none of ours.
    #[error("the secret {0} holds something else than JSON")]
    Form(String),
    /// The list of managing entities is too long.
    #[error("the list of managing entities {0}")]
    Entities(String),
    /// The table did not take it.
    #[error("the table cannot be provided with keys and applications")]
    Table(#[from] ProvisionError),
}

#[tokio::main]
async fn main() -> ExitCode {
    operator::begin("provision");
    operator::end(provision(&Arguments::parse()).await)
}

async fn provision(arguments: &Arguments) -> Result<(), Failure> {
    let aws = aws_config::load_from_env().await;
    let client = Client::new(&aws);
    let fill = || fill_secrets(&client, &arguments.secrets_prefix, arguments.signing_algorithm);
    let mut secrets = fill().await?;
    let table = Table::new(aws_sdk_dynamodb::Client::new(&aws), arguments.table.clone());
    loop {
        let published = publish_signing_key(&table, &secrets[signing::SECRET], arguments.token_lifetime).await;
        // A rotation or an emergency may have replaced the keys since they were read.
        let now = fill().await?;
        if now[signing::SECRET] == secrets[signing::SECRET] {
            published?;
            break;
        }
        secrets = now;
    }

    let credentials = fresh_credentials();
    let scopes = if arguments.scope.is_empty() { Scopes::ALL } else { arguments.scope.iter().copied().collect() };
    let entities = checked_entities(arguments.managing_entity.clone()).map_err(Failure::Entities)?;
    let application = NewApplication::of_operator(arguments.application_name.clone(), scopes, entities);
    register_application(&table, &secrets[pepper::SECRET], &credentials, application).await?;
    tracing::info!("registered {}; its secret is shown this once", arguments.application_name);
    println!("CLIENT_ID={}\nCLIENT_SECRET={}", credentials.client_id, credentials.client_secret);
    Ok(())
}

/// The deployment's secrets, those made now that had no value.
async fn fill_secrets(
    client: &Client,
    prefix: &str,
    algorithm: SigningAlgorithm,
) -> Result<BTreeMap<&'static str, Value>, Failure> {
    let mut secrets = fresh_secrets(algorithm);
    for (own, value) in &mut secrets {
        let name = format!("{prefix}{own}");
        match present_value(client, &name).await? {
            Some(present) => match renewed(own, &present, algorithm) {
                Some(renewed) => {
                    *value = renewed;
                    put_value(client, &name, value).await?;
                }
                None => *value = present,
            },
            None => put_value(client, &name, value).await?,
        }
    }
    Ok(secrets)
}

async fn put_value(client: &Client, name: &str, value: &Value) -> Result<(), Failure> {
    let put = client.put_secret_value().secret_id(name).secret_string(value.to_string()).send().await;
    put.map_err(|error| Failure::Secret { name: name.to_owned(), reason: error.into_service_error().to_string() })?;
    tracing::info!("made a value for the secret {name}");
    Ok(())
}

/// The secret's value; nothing while the stack has created it, but nobody has filled it.
async fn present_value(client: &Client, name: &str) -> Result<Option<Value>, Failure> {
    match client.get_secret_value().secret_id(name).send().await {
        Ok(answer) => match answer.secret_string().unwrap_or_default() {
            "" => Ok(None),
            value => serde_json::from_str(value).map(Some).map_err(|_| Failure::Form(name.to_owned())),
        },
        Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => Ok(None),
        Err(error) => Err(Failure::Secret { name: name.to_owned(), reason: DisplayErrorContext(error).to_string() }),
    }
}
