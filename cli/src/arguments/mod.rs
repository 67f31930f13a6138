//! The command line: options, subcommands and their help.

mod command;
mod texts;

use clap::Parser;

pub use self::command::Command;
use self::texts::EXAMPLES;
use crate::profile::ProfileName;

/// The position of the common options in a subcommand's help: after its options.
const LAST: usize = 900;

/// Receives Waypost events on this machine, manages webhooks, and explains, resends and cancels deliveries.
#[derive(Debug, Parser)]
#[command(name = "waypost", version, after_help = EXAMPLES)]
pub struct Arguments {
    /// Prints results as JSON.
    #[arg(long, global = true, display_order = LAST)]
    pub json: bool,
    /// Uses the login with this name.
    #[arg(long, global = true, display_order = LAST, value_name = "NAME")]
    pub profile: Option<ProfileName>,
    #[command(subcommand)]
    pub command: Command,
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
        for command in Arguments::command().get_subcommands() {
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
            &["why"],
            &["open"],
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
    fn logs_are_the_deliveries() {
        let command = Arguments::try_parse_from(["waypost", "logs", "--follow"]).expect("good arguments").command;
        assert!(matches!(command, Command::Deliveries(_)), "{command:?}");
    }

    #[test]
    fn a_profile_has_a_plain_name_before_or_after_the_subcommand() {
        for line in ["waypost --profile live deliveries", "waypost deliveries --profile live"] {
            assert!(Arguments::try_parse_from(line.split(' ')).expect("good arguments").profile.is_some(), "{line}");
        }
        assert!(Arguments::try_parse_from(["waypost", "deliveries", "--profile", "../live"]).is_err());
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
