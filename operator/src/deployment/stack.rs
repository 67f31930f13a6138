//! A stack on AWS. Its outputs name its table, its secrets and its settings.

use std::{collections::BTreeMap, str::FromStr};

use aws_config::SdkConfig;

use super::DeploymentError;

/// A stack, as CloudFormation describes it.
#[derive(Debug)]
pub struct Stack {
    name: String,
    outputs: BTreeMap<String, String>,
    /// Credentials and region.
    pub aws: SdkConfig,
}

impl Stack {
    /// The stack of this name with these outputs.
    pub fn new(name: &str, outputs: BTreeMap<String, String>, aws: SdkConfig) -> Self {
        Self { name: name.to_owned(), outputs, aws }
    }

    /// The value of an output.
    pub fn output(&self, output: &'static str) -> Result<&str, DeploymentError> {
        let missing = || DeploymentError::NoOutput { stack: self.name.clone(), output };
        self.outputs.get(output).map(String::as_str).ok_or_else(missing)
    }

    /// The value of an output, read as a type of its own.
    pub fn parsed<T: FromStr>(&self, output: &'static str) -> Result<T, DeploymentError> {
        let malformed = |_| DeploymentError::BadOutput { stack: self.name.clone(), output };
        self.output(output)?.parse().map_err(malformed)
    }
}
