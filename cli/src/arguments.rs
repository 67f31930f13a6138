//! The command line: options, subcommands and their help.

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{Deliveries, Listen, Login, Recover, Replay, Trigger, Types, Verify, Webhooks, WhichDelivery};

const EXAMPLES: &str = "\
Examples:
  waypost login --address https://api.waypost.example --entity my-hotel
  waypost listen --forward http://localhost:3000/hooks --types 'booking.*'
  waypost trigger booking.created
  waypost webhooks
  waypost deliveries --failed

Exit codes:
  0  done
  1  the service refused or failed, or a signed request is not valid; the message says why
  2  the arguments are wrong; nothing was done
  3  the service cannot be reached
  4  not logged in, or the application lacks the right: credentials, scope or managing entity

The variables WAYPOST_ADDRESS, WAYPOST_ISSUER, WAYPOST_ENTITY, WAYPOST_CLIENT_ID and WAYPOST_CLIENT_SECRET override the
stored login. Results go to standard output, everything else to standard error. NO_COLOR=1 turns colours off.";

/// The position of the common options in the help of a subcommand: after its options.
const LAST: usize = 900;

/// Receives Waypost events on this machine, manages webhooks, and shows, resends and cancels deliveries.
#[derive(Debug, Parser)]
#[command(name = "waypost", version, after_help = EXAMPLES)]
pub struct Arguments {
    /// Writes results as JSON: one value, or one value per line for `listen`.
    #[arg(long, global = true, display_order = LAST)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Checks and stores the API's address and an application's credentials, and asks for missing values.
    Login(Login),
    /// Removes the stored login.
    Logout,
    /// Prints a new access token, which is valid for at most an hour.
    #[command(after_help = "\
Example:
  curl -H \"Authorization: Bearer $(waypost token)\" https://api.waypost.example/api/managing-entity/my-hotel/webhook/list")]
    Token,
    /// Shows the login, and the rights of its access token.
    #[command(after_help = "\
Example:
  waypost whoami")]
    Whoami,
    /// Receives events without a public address: prints them, or forwards them to an address, until Ctrl-C.
    Listen(Box<Listen>),
    /// Sends the sample of an event type as a test event (`"test": true`) to one webhook.
    Trigger(Trigger),
    /// Lists the webhooks; its subcommands show, create, change, test and remove one.
    Webhooks(Webhooks),
    /// Lists the event types; its subcommand shows one with a sample.
    Types(Types),
    /// Checks the signature of a received request, without the service.
    Verify(Verify),
    /// Lists deliveries, the newest first.
    Deliveries(Deliveries),
    /// Shows a delivery with its attempts and its event.
    #[command(after_help = "\
Example:
  waypost show dlv_01m7w5gmev32p3wwt3y0b8j32h")]
    Show(WhichDelivery),
    /// Sends a delivery again now, at the current address of its webhook.
    #[command(after_help = "\
Example:
  waypost resend dlv_01m7w5gmev32p3wwt3y0b8j32h")]
    Resend(WhichDelivery),
    /// Cancels an open delivery: no further attempt is made.
    #[command(after_help = "\
Example:
  waypost cancel dlv_01m7w5gmev32p3wwt3y0b8j32h

An attempt that is under way cannot be stopped: the service refuses, and a later cancellation may succeed.")]
    Cancel(WhichDelivery),
    /// Sends failed and waiting deliveries of a webhook again, such as after an outage.
    Recover(Recover),
    /// Delivers events to a webhook that was created, enabled or changed after their publication.
    Replay(Replay),
    /// Prints completions for a shell.
    #[command(after_help = "\
Example:
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_valid_and_each_command_with_arguments_has_examples() {
        Arguments::command().debug_assert();
        let has_example = |command: &clap::Command, name: &str| {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("waypost {name}")), "{name}: {help}");
        };
        for command in Arguments::command().get_subcommands().filter(|command| command.get_name() != "logout") {
            has_example(command, command.get_name());
            for subcommand in command.get_subcommands() {
                has_example(subcommand, &format!("{} {}", command.get_name(), subcommand.get_name()));
            }
        }
    }

    #[test]
    fn a_name_that_would_change_the_address_is_refused() {
        for command in [
            &["show"][..],
            &["resend"],
            &["cancel"],
            &["trigger", "booking.created", "--webhook"],
            &["webhooks", "remove"],
            &["types", "show"],
            &["recover", "--from", "3h"],
            &["replay", "--from", "3h"],
            &["login", "--entity"],
        ] {
            let given = |name: &'static str| [&["waypost"], command, &[name]].concat();
            for name in ["", " ", ".", ".."] {
                assert!(Arguments::try_parse_from(given(name)).is_err(), "{command:?} {name:?}");
            }
            assert!(Arguments::try_parse_from(given("my-hotel")).is_ok(), "{command:?}");
        }
    }

    #[test]
    fn json_may_be_asked_for_before_or_after_the_subcommand() {
        for line in
            ["waypost --json deliveries", "waypost deliveries --json", "waypost types --json show booking.created"]
        {
            assert!(Arguments::try_parse_from(line.split(' ')).expect("good arguments").json, "{line}");
        }
    }
}
