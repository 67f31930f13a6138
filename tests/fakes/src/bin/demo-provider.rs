//! A demo payment provider for a local service: `make demo-provider`.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Parser;
use fakes::provider::{Authentication, Entry, Kind, Providers, RequestOutcome, Setup};
use operator::demo_provider;

/// Serves the payment provider `demo` on 127.0.0.1 until Ctrl-C.
#[derive(Parser)]
struct Arguments {
    /// The port, which is written into the service's secret; defaults to the port in the secret.
    #[arg(long)]
    port: Option<u16>,
    /// The data folder of the local service.
    #[arg(long, default_value = ".local")]
    data: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { port, data } = Arguments::parse();
    let known = demo_provider::port(&data);
    let port = port.or(known).unwrap_or(demo_provider::PORT);
    let demo = Setup { pkce: true, issuer: true, ..Setup::new("demo", "demo", Authentication::AnySecret) };
    match Providers::start(port, vec![demo], Some(log)).await {
        Ok(providers) => {
            if known != Some(port) {
                if let Err(error) = demo_provider::move_to(&data, port).await {
                    eprintln!("The port of the service was not changed to {port}: {}", chain(&error));
                    return ExitCode::FAILURE;
                }
                println!("The secret `{}` names port {port} now.", demo_provider::SECRET);
                println!("A running service uses the new port within five minutes.\n");
            }
            println!("{}", greeting(&providers.url("demo", "authorize"), &data.display().to_string()));
            std::future::pending().await
        }
        Err(error) => {
            eprintln!("Port {port} cannot be used ({error}); choose another one with PROVIDER_PORT=.");
            ExitCode::FAILURE
        }
    }
}

fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Commands to paste after the start.
fn greeting(address: &str, data: &str) -> String {
    format!(
        r#"The payment provider `demo` answers at {address}. Beside `make run`, request a connection:

  . '{data}/service.env'
  TOKEN=$(curl -s "$AUTH_URL/oauth2/token" -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials |
    sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  PAYMENT="$BASE_URL/api/managing-entity/$MANAGING_ENTITY/payment"
  curl -s -X POST "$PAYMENT/provider/demo/connection" -H "Authorization: Bearer $TOKEN"

Open the answer's authorizationUrl in a browser and choose. Then look at the connection, and end it:

  curl -s "$PAYMENT/connection/list" -H "Authorization: Bearer $TOKEN"
  curl -s -X DELETE "$PAYMENT/provider/demo/connection" -H "Authorization: Bearer $TOKEN"

It accepts any client secret for the client `demo`. Press Ctrl-C to stop; it then forgets everything it granted.
Requests to it:
"#
    )
}

/// Prints one line for each request, without codes or tokens.
fn log(entry: &Entry) {
    let what = match entry.kind {
        Kind::Consent => "consent",
        Kind::Exchange => "exchange of a code",
        Kind::Refresh => "refresh",
        Kind::Revocation => "revocation",
    };
    let outcome = match &entry.outcome {
        RequestOutcome::Done => "done".to_owned(),
        RequestOutcome::Declined => "declined".to_owned(),
        RequestOutcome::Refused(reason) => format!("refused: {reason}"),
        RequestOutcome::Failed => "failed as requested".to_owned(),
    };
    println!("  {}: {what}: {outcome}", entry.account.as_deref().unwrap_or("no account"));
}
