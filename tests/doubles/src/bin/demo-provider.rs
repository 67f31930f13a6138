//! A payment provider to try things out with, beside a local service: `make demo-provider`.

use std::process::ExitCode;

use clap::Parser;
use doubles::provider::{Authentication, Entry, Kind, Providers, RequestOutcome, Setup};

/// Serves the payment provider `demo` on 127.0.0.1 until Ctrl-C.
#[derive(Parser)]
struct Arguments {
    /// The port.
    #[arg(long, default_value_t = 9100)]
    port: u16,
    /// The folder with the data of the service that is tried out.
    #[arg(long, default_value = ".local")]
    data: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { port, data } = Arguments::parse();
    let demo = Setup { pkce: true, issuer: true, ..Setup::new("demo", "demo", Authentication::AnySecret) };
    match Providers::start(port, vec![demo], Some(log)).await {
        Ok(providers) => {
            println!("{}", greeting(&providers.url("demo", "authorize"), &data));
            std::future::pending().await
        }
        Err(error) => {
            eprintln!("Port {port} cannot be used ({error}); choose another one with PROVIDER_PORT=.");
            ExitCode::FAILURE
        }
    }
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
