//! Finds a stack on AWS by its name. Credentials and region are resolved as in any AWS tool.

use aws_sdk_cloudformation::{Client, error::ProvideErrorMetadata};
use operator::deployment::Stack;
use storage::aws::CallError;

/// CloudFormation's error code for a name that no stack has.
/// <https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html>
const UNKNOWN: &str = "ValidationError";

/// Why a stack was not found.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error("no AWS region is configured; set AWS_REGION, or AWS_PROFILE to a profile that has one")]
    NoRegion,
    #[error(
        "there is no stack {name} in {region} ({reason}); `aws cloudformation list-stacks` lists the existing ones"
    )]
    NoStack { name: String, region: String, reason: String },
    /// CloudFormation refused the call or did not respond.
    #[error("the outputs of the stack {name} cannot be read: {reason}")]
    Outputs { name: String, reason: String },
}

/// Reads all of a stack's outputs in one call.
pub async fn find(name: &str) -> Result<Stack, StackError> {
    let aws = aws_config::load_from_env().await;
    let region = aws.region().ok_or(StackError::NoRegion)?.to_string();
    let described = Client::new(&aws).describe_stacks().stack_name(name).send().await;
    let described = described.map_err(|error| {
        let name = name.to_owned();
        match (error.code(), error.message()) {
            (Some(UNKNOWN), reason) => {
                StackError::NoStack { name, region, reason: reason.unwrap_or(UNKNOWN).to_owned() }
            }
            _ => StackError::Outputs { name, reason: CallError::of(&error).to_string() },
        }
    })?;
    let stacks = described.stacks.unwrap_or_default();
    let outputs = stacks.into_iter().flat_map(|stack| stack.outputs.unwrap_or_default());
    let outputs = outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect();
    Ok(Stack::new(name, outputs, aws))
}
