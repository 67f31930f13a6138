//! A stack on AWS. Its outputs name its table, its secrets and its settings. Credentials and region are found as by every
//! AWS tool.

use std::{collections::BTreeMap, str::FromStr};

use aws_config::SdkConfig;
use aws_sdk_cloudformation::{
    Client,
    error::{DisplayErrorContext, ProvideErrorMetadata},
};

use super::DeploymentError;

/// CloudFormation's answer to a name that no stack has.
/// <https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html>
const UNKNOWN: &str = "ValidationError";

/// A stack, as CloudFormation describes it.
#[derive(Debug)]
pub struct Stack {
    name: String,
    outputs: BTreeMap<String, String>,
    /// Credentials and region.
    pub aws: SdkConfig,
}

impl Stack {
    /// Reads all outputs of a stack in one call.
    pub async fn read(name: &str) -> Result<Self, DeploymentError> {
        let aws = aws_config::load_from_env().await;
        let region = aws.region().ok_or(DeploymentError::NoRegion)?.to_string();
        let described = Client::new(&aws).describe_stacks().stack_name(name).send().await;
        let described = described.map_err(|error| match (error.code(), error.message()) {
            (Some(UNKNOWN), reason) => {
                let reason = reason.unwrap_or(UNKNOWN).to_owned();
                DeploymentError::NoStack { name: name.to_owned(), region, reason }
            }
            (Some(code), Some(reason)) => {
                DeploymentError::Outputs { name: name.to_owned(), reason: format!("{code}: {reason}") }
            }
            _ => {
                let reason = DisplayErrorContext(&error).to_string();
                DeploymentError::Outputs { name: name.to_owned(), reason }
            }
        })?;
        let outputs =
            described.stacks.unwrap_or_default().into_iter().flat_map(|stack| stack.outputs.unwrap_or_default());
        let outputs = outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect();
        Ok(Self { name: name.to_owned(), outputs, aws })
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
