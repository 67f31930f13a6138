//! `waypost verify`: checks the signature of a received request, without the service.

mod request;
mod signature;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde_json::json;

use self::{
    request::{Header, SignedRequest, headers_of_text},
    signature::Key,
};
use super::times::duration;
use crate::{failure::Failure, machine, output::Output};

const EXAMPLES: &str = "\
Examples:
  waypost verify --secret-file secret.txt --body body.json --headers headers.txt
  waypost verify --secret-file secret.txt --body body.json --tolerance 2d \\
    --header 'webhook-id: evt_01m7w5gmev7xwvpyt3bc2k45jh' --header 'webhook-timestamp: 1795167900' \\
    --header 'webhook-signature: v1,kRiFHZLAvyBbyT28HycnNPK+c4B4lsDxxEZRfChCp5o='

The exit code is 0 if the request is valid, and 1 if it is not; the message says whether the timestamp, the secret or
the body is wrong, as far as this can be known. The program sends nothing.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    /// A file with the signing secret of the webhook (`whsec_…`), or with its public key (`whpk_…`).
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
    /// A file with the exact bytes of the body.
    #[arg(long, value_name = "FILE")]
    body: PathBuf,
    /// A header of the request. May be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE", required_unless_present = "headers_file")]
    headers: Vec<Header>,
    /// A file with the headers of the request, one on each line.
    #[arg(long = "headers", value_name = "FILE")]
    headers_file: Option<PathBuf>,
    /// The maximum difference between `webhook-timestamp` and the clock of this machine.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    tolerance: Duration,
}

impl Verify {
    pub fn run(self, output: Output) -> Result<(), Failure> {
        let key = text_of(&self.secret_file)?
            .trim()
            .parse::<Key>()
            .map_err(|why| Failure::Usage(format!("{} has no signing secret: {why}", self.secret_file.display())))?;
        let body = content_of(&self.body)?;
        let mut headers = self.headers;
        if let Some(path) = &self.headers_file {
            headers.extend(headers_of_text(&text_of(path)?));
        }
        let request = SignedRequest { headers: &headers, body: &body };
        let faults = request.faults(&key, machine::now(), self.tolerance);
        let shown: Vec<_> = faults.iter().map(|fault| json!({ "kind": fault.kind, "detail": fault.detail })).collect();
        let json = json!({ "valid": faults.is_empty(), "faults": shown });
        if faults.is_empty() {
            return Ok(output.write(json, format!("The request is valid: {}.", key.description()))?);
        }
        if output.json {
            output.raw(json)?;
        }
        let reasons: Vec<_> = faults.iter().map(|fault| fault.detail.as_str()).collect();
        let next: Vec<_> = faults.iter().map(|fault| fault.next.as_str()).collect();
        Err(Failure::Unverified { reason: format!("not valid: {}", reasons.join("; ")), next: next.join("; ") })
    }
}

fn content_of(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", path.display())))
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let wrong = |_| Failure::Usage(format!("{} is not text", path.display()));
    String::from_utf8(content_of(path)?).map_err(wrong)
}
