//! The options that every subcommand has.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser, error::ErrorKind};
use operator::{Deployment, geo_ip_databases::GeoIpDatabases};

use crate::{commands::Command, failure::Failure, stack};

const EXAMPLES: &str = "\
Examples:
  waypost-admin --stack waypost provision --name 'First application' --entity my-hotel
  waypost-admin --stack waypost application list my-hotel
  waypost-admin application list my-hotel --data .local --json
  waypost-admin application --help

Exit codes:
  0  done
  1  failed midway; the message says whether to run the command again
  2  the arguments are wrong; nothing was done
  3  refused: the named deployment or object does not exist, or its state does not allow this; nothing was done

The result goes to standard output, progress, errors and the audit trail to standard error.";

/// The position of these options in a subcommand's help: after the subcommand's options.
const LAST: usize = 900;

/// Operates a Waypost deployment: a stack on AWS, or a service on this machine.
#[derive(Debug, Parser)]
#[command(name = "waypost-admin", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub which: Which,
    /// Prints the result as one JSON value.
    #[arg(long, global = true, display_order = LAST)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// The deployment that a command is for.
#[derive(Debug, Args)]
pub struct Which {
    /// The deployment's CloudFormation stack. Credentials and region are resolved as by other AWS tools (AWS_PROFILE,
    /// AWS_REGION).
    #[arg(long, global = true, value_name = "NAME", display_order = LAST)]
    pub stack: Option<String>,
    /// The data folder of the service on this machine, such as .local, instead of a stack.
    #[arg(long, global = true, value_name = "FOLDER", display_order = LAST)]
    pub data: Option<PathBuf>,
}

/// A deployment that the options name.
#[derive(Debug, PartialEq, Eq)]
enum Target<'a> {
    /// The name of a CloudFormation stack.
    Stack(&'a str),
    /// The data folder of a service on this machine.
    Folder(&'a Path),
}

impl Which {
    fn target(&self) -> Result<Target<'_>, Failure> {
        match (&self.stack, &self.data) {
            (Some(stack), None) => Ok(Target::Stack(stack)),
            (None, Some(data)) => Ok(Target::Folder(data)),
            (None, None) => Err(usage(
                ErrorKind::MissingRequiredArgument,
                "name the deployment: --stack NAME for one on AWS, or --data FOLDER for one on this machine, such as \
                 --data .local",
            )),
            (Some(_), Some(_)) => {
                Err(usage(ErrorKind::ArgumentConflict, "--stack and --data name two deployments; use only one"))
            }
        }
    }

    pub async fn open(&self) -> Result<Deployment, Failure> {
        Ok(match self.target()? {
            Target::Stack(name) => Deployment::of_stack(stack::find(name).await?)?,
            Target::Folder(data) => Deployment::in_folder(data).await?,
        })
    }

    pub async fn open_databases(&self) -> Result<GeoIpDatabases, Failure> {
        Ok(match self.target()? {
            Target::Stack(name) => GeoIpDatabases::of_stack(&stack::find(name).await?)?,
            Target::Folder(data) => GeoIpDatabases::of_data(data).await?,
        })
    }
}

/// A failure for conflicting or missing arguments.
pub fn usage(kind: ErrorKind, message: &str) -> Failure {
    Failure::Usage(Arguments::command().error(kind, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn which(arguments: &str) -> Which {
        Arguments::try_parse_from(arguments.split(' ')).expect("good arguments").which
    }

    #[test]
    fn the_deployment_may_be_named_before_or_after_the_subcommand() {
        for arguments in [
            "waypost-admin --stack one application list hotel",
            "waypost-admin application --stack one list hotel",
            "waypost-admin application list hotel --stack one",
        ] {
            assert_eq!(which(arguments).target().expect(arguments), Target::Stack("one"), "{arguments}");
        }
        let json = Arguments::try_parse_from(["waypost-admin", "provision", "--json", "--data", ".local"]);
        assert!(json.expect("good arguments").json);
    }

    #[test]
    fn one_deployment_must_be_named_and_not_two() {
        let none = which("waypost-admin provision").target().expect_err("none").to_string();
        assert!(none.contains("--stack NAME") && none.contains("--data FOLDER"), "{none}");
        for both in ["waypost-admin --stack one provision --data .local", "waypost-admin provision --stack a --data b"]
        {
            assert!(which(both).target().expect_err(both).to_string().contains("two deployments"), "{both}");
        }
    }

    #[test]
    fn provision_takes_a_complete_application_or_none() {
        let parsed = |arguments: &str| Arguments::try_parse_from(format!("waypost-admin {arguments}").split(' '));
        for good in ["provision --stack a", "provision --stack a --name n --entity e", "provision --name n --entity *"]
        {
            assert!(parsed(good).is_ok(), "{good}");
        }
        let half =
            ["provision --stack a --name n", "provision --stack a --entity e", "provision --scopes booking.read"];
        for half in half.into_iter().chain(["application create --name n", "application create --entity e"]) {
            let error = parsed(half).expect_err(half);
            assert_eq!((error.kind(), error.exit_code()), (ErrorKind::MissingRequiredArgument, 2), "{half}");
        }
    }

    #[test]
    fn a_list_without_an_owner_suggests_all() {
        let error = Arguments::try_parse_from(["waypost-admin", "application", "list"]).expect_err("no owner");
        assert!(error.to_string().contains("--all"), "{error}");
        let both = ["waypost-admin", "application", "list", "hotel", "--all"];
        assert_eq!(Arguments::try_parse_from(both).expect_err("both").kind(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn the_definition_is_valid_and_every_subcommand_has_examples() {
        Arguments::command().debug_assert();
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("waypost-admin {}", command.get_name())), "{}: {help}", command.get_name());
        }
    }
}
