//! `waypost-admin signing-keys`: the keys that sign access tokens.

use clap::Subcommand;
use operator::signing_keys::{Replaced, SigningKeysOf};

use crate::{arguments::Which, failure::Failure, output::Output};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin signing-keys rotate --stack waypost
  waypost-admin signing-keys rotate --data .local
  waypost-admin signing-keys rotate --emergency --stack waypost

You can interrupt it at any time, and run it again.";

/// Replaces the keys that sign access tokens.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Starts signing with the next key, which is already published. Existing tokens stay valid.
    Rotate {
        /// For compromised keys: replaces both at once, and revokes every token that they signed. Clients must request
        /// new tokens.
        #[arg(long)]
        emergency: bool,
    },
}

impl Command {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let deployment = which.open().await?;
        let keys = SigningKeysOf::open(&deployment)?;
        let Self::Rotate { emergency } = self;
        let replaced = if emergency { keys.replace_in_emergency().await? } else { keys.rotate().await? };
        let Replaced { current, next, revoked } = &replaced;
        let mut text = format!("{current} now signs access tokens; {next} is the next key");
        if !revoked.is_empty() {
            text += &format!("\nevery token signed by {} is refused within a minute", revoked.join(", "));
        }
        output.write(&replaced, text)
    }
}
