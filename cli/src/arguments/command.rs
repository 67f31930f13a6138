//! The subcommands.

use clap::Subcommand;
use clap_complete::Shell;

use crate::commands::{
    Deliveries, Listen, Login, Open, Publish, Recover, Replay, Trigger, Types, Verify, Webhooks, WhichDelivery, Why,
};

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Checks and stores the API's address and an application's credentials, and asks for missing values.
    Login(Login),
    /// Removes the stored login.
    #[command(after_help = "\
Examples:
  waypost logout
  waypost logout --profile staging")]
    Logout,
    /// Prints a new access token, which is valid for at most an hour.
    #[command(after_help = "\
Example:
  curl -H \"Authorization: Bearer $(waypost token)\" https://api.waypost.example/api/managing-entity/my-hotel/webhook/list")]
    Token,
    /// Shows the login, and the rights of its access token.
    #[command(after_help = "\
Examples:
  waypost whoami
  waypost whoami --profile staging")]
    Whoami,
    /// Receives events without a public address, and prints or forwards them until Ctrl-C.
    Listen(Box<Listen>),
    /// Sends a test event (`"test": true`) to one webhook, with a type's sample or your data.
    Trigger(Trigger),
    /// Publishes an event. The application needs the right to publish.
    Publish(Publish),
    /// Lists webhooks, or shows, creates, changes, pauses, tests or removes one.
    Webhooks(Webhooks),
    /// Lists the event types, or shows one with samples.
    Types(Types),
    /// Checks a received request's signature, without the service.
    Verify(Verify),
    /// Lists deliveries, newest first, or prints them as they end.
    #[command(visible_alias = "logs")]
    Deliveries(Deliveries),
    /// Explains why an event has not arrived: what happened, what its deliveries are waiting for, and the next step.
    Why(Why),
    /// Shows a delivery with its attempts and its event.
    #[command(after_help = "\
Example:
  waypost show dlv_01m7w5gmev32p3wwt3y0b8j32h")]
    Show(WhichDelivery),
    /// Sends a delivery again now, to its webhook's current address.
    #[command(after_help = "\
Example:
  waypost resend dlv_01m7w5gmev32p3wwt3y0b8j32h

The command waits a few seconds for the attempt and prints its result, except with --json; the exit code is 0 even if
the attempt failed. A resend waits neither for the webhook's pause to end nor for earlier deliveries about the same
subject.")]
    Resend(WhichDelivery),
    /// Cancels an open delivery: no further attempt is made.
    #[command(after_help = "\
Example:
  waypost cancel dlv_01m7w5gmev32p3wwt3y0b8j32h

An attempt that has begun cannot be stopped. If the service refuses, cancel again once the attempt has ended.")]
    Cancel(WhichDelivery),
    /// Sends a webhook's failed and waiting deliveries again, for example after an outage.
    Recover(Recover),
    /// Delivers events to a webhook that was created, enabled or changed after their publication.
    Replay(Replay),
    /// Opens the panel in your browser with a new link.
    Open(Open),
    /// Prints shell completions.
    #[command(
        after_help = "\
Examples:
  waypost completions zsh > ~/.zfunc/_waypost
  waypost completions fish > ~/.config/fish/completions/waypost.fish
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost",
        visible_alias = "completion"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
}
