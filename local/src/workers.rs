//! The functions' processes: the same binaries as on AWS, each attached to the emulator by its own address.
//!
//! Where Lambda starts one process per concurrent invocation, one process here takes several at a time (the runtime's
//! own mode for Lambda Managed Instances): nineteen processes instead of a hundred.

use std::{path::Path, sync::Arc};

use deployment::Function;

use crate::{
    aws::Endpoints,
    emulator::Emulator,
    processes::{ProcessGroup, Supervised},
};

/// Most invocations of a function at a time.
///
/// What clients call all day gets 16, which is more than the machine can do at once and lets requests wait for the
/// table without holding up others. Dispatching waits for receivers, up to 15 s a batch, so it gets more. The sum is
/// what the emulator holds open; its own limit is 100 waiting requests a function.
pub fn concurrency(function: &str) -> usize {
    match function {
        "dispatch-deliveries" => 96,
        "token" | "publish-event" | "list-events" | "show-delivery" => 16,
        // It waits for providers, up to 10 s each, with a person in front of it.
        "provider-callback" => 16,
        // One works, and the others wait for its outcome.
        "geo-ip-update" => 16,
        _ => 4,
    }
}

/// Starts a function's process and keeps it running.
pub fn start(
    group: &Arc<ProcessGroup>,
    binaries: &Path,
    function: &Function,
    environment: Vec<(String, String)>,
    endpoints: &Endpoints,
    emulator: &Emulator,
) -> Supervised {
    let mut variables = vec![
        ("AWS_LAMBDA_RUNTIME_API", emulator.runtime_api(&function.name)),
        ("AWS_LAMBDA_FUNCTION_NAME", function.name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", function.memory.to_string()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", function.name)),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "local".to_owned()),
        ("AWS_LAMBDA_MAX_CONCURRENCY", concurrency(&function.name).to_string()),
    ];
    variables.extend(endpoints.variables().map(|(name, value)| (name, value.to_owned())));
    group.keep_running(&function.name, binaries.join(&function.name), move |command| {
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.envs(variables.iter().map(|(name, value)| (name, value)));
    })
}
