//! A payment provider to try things out with, beside a local service: `make demo-provider`.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Parser;
use fakes::provider::{Authentication, Entry, Kind, Providers, RequestOutcome, Setup};
use operator::demo_provider;

/// Serves the payment provider `demo` on 127.0.0.1 until Ctrl-C.
#[derive(Parser)]
struct Arguments {
    /// The port, which the service's secret takes over; else the one that the secret names.
    #[arg(long)]
    port: Option<u16>,
    /// The folder with the data of the service that is tried out.
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
                    eprintln!("The service was not told of port {port}: {}", chain(&error));
                    return ExitCode::FAILURE;
                }
                println!("The secret `{}` names port {port} now.", demo_provider::SECRET);
                println!("A service that has asked at another port since its start asks here within five minutes.\n");
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

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What somebody who has just started it wants to paste.
fn greeting(address: &str, data: &str) -> String {
    format!(
        r#"The payment provider `demo` answers at {address}. Beside `make run`, ask for a connection:

  . '{data}/service.env'
  TOKEN=$(curl -s "$AUTH_URL/oauth2/token" -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials |
    sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  PAYMENT="$BASE_URL/api/managing-entity/$MANAGING_ENTITY/payment/provider"
  curl -s -X POST "$PAYMENT/demo/connection" -H "Authorization: Bearer $TOKEN"

Open the answer's authorizationUrl in a browser and choose. Then look at the connection, and end it:

  curl -s "$PAYMENT/list" -H "Authorization: Bearer $TOKEN"
  curl -s -X DELETE "$PAYMENT/demo/connection" -H "Authorization: Bearer $TOKEN"

It accepts any client secret for the client `demo`. Ctrl-C ends it; it then forgets everything it granted.
What it is asked for:
"#
    )
}

/// One line for each request; codes and tokens stay out of it.
fn log(entry: &Entry) {
    let what = match entry.kind {
        Kind::Consent => "consent",
        Kind::Exchange => "a code against tokens",
        Kind::Refresh => "a refresh",
        Kind::Revocation => "access given back",
    };
    let outcome = match &entry.outcome {
        RequestOutcome::Done => "done".to_owned(),
        RequestOutcome::Declined => "declined".to_owned(),
        RequestOutcome::Refused(reason) => format!("refused: {reason}"),
        RequestOutcome::Failed => "failed, as it was to".to_owned(),
    };
    println!("  {}: {what}: {outcome}", entry.account.as_deref().unwrap_or("no account"));
}
