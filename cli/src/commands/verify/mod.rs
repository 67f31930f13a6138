//! `waypost verify`: checks a received request's signature, without the service.

mod request;
mod signature;

use std::time::Duration;

use clap::Args;
use serde_json::json;

use self::{
    request::{Header, SignedRequest, headers_of_text},
    signature::Key,
};
use super::{input::Input, times::duration};
use crate::{failure::Failure, machine, output::Output};

const EXAMPLES: &str = "\
Examples:
  waypost verify --secret-file secret.txt --body body.json --headers headers.txt
  pass show waypost | waypost verify --secret-file - --body body.json --headers headers.txt
  waypost verify --secret-file secret.txt --body body.json --tolerance 2d \\
    --header 'webhook-id: evt_01m7w5gmev7xwvpyt3bc2k45jh' --header 'webhook-timestamp: 1795167900' \\
    --header 'webhook-signature: v1,kRiFHZLAvyBbyT28HycnNPK+c4B4lsDxxEZRfChCp5o='

The exit code is 0 if the request is valid, and 1 if it is not; the message says whether the timestamp, the secret or
the body is wrong, as far as this can be known. One of the files may be `-`, which means standard input. The program
sends nothing.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    /// A file with the webhook's signing secret (`whsec_…`) or public key (`whpk_…`).
    #[arg(long, value_name = "FILE")]
    secret_file: Input,
    /// A file with the body's exact bytes.
    #[arg(long, value_name = "FILE")]
    body: Input,
    /// A request header. May be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE", required_unless_present = "headers_file")]
    headers: Vec<Header>,
    /// A file with the request's headers, one per line.
    #[arg(long = "headers", value_name = "FILE")]
    headers_file: Option<Input>,
    /// The maximum difference between `webhook-timestamp` and this machine's clock.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    tolerance: Duration,
}

impl Verify {
    pub fn run(self, output: Output) -> Result<(), Failure> {
        self.check_stdin()?;
        let key = self
            .secret_file
            .text()?
            .trim()
            .parse::<Key>()
            .map_err(|why| Failure::Usage(format!("{} has no signing secret: {why}", self.secret_file)))?;
        let body = self.body.bytes()?;
        let mut headers = self.headers;
        if let Some(file) = &self.headers_file {
            headers.extend(headers_of_text(&file.text()?));
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

    fn check_stdin(&self) -> Result<(), Failure> {
        let files = [Some(&self.secret_file), Some(&self.body), self.headers_file.as_ref()];
        if files.into_iter().flatten().filter(|file| **file == Input::Stdin).count() > 1 {
            let reason = "only one of --secret-file, --body and --headers may be `-`: store the others in files";
            return Err(Failure::Usage(reason.to_owned()));
        }
        Ok(())
    }
}
