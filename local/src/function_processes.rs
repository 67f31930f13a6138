//! The functions' processes, which run the same code as on AWS. Each polls the Runtime API at a separate address.
//!
//! As on Lambda, a function's first invocation starts its process, which is ended once it has been idle for a few
//! minutes. Lambda starts one process per concurrent invocation. Here, one process handles several (the runtime's mode
//! for Lambda Managed Instances), so that a few processes run instead of hundreds.

use std::{sync::Arc, time::Duration};

use template::Function;

use crate::{
    bundle::Environment,
    preflight::Programs,
    processes::{ProcessGroup, Supervised},
    runtime_api::RuntimeApi,
};

/// The maximum number of concurrent invocations of a function.
///
/// A function invoked by queues gets the template's maximum concurrency, as on AWS. A function that clients call often
/// gets 16, more than the machine has processors, so that requests waiting for the table do not delay others. Each
/// concurrent invocation holds a connection to the Runtime API.
pub fn concurrency(function: &Function) -> usize {
    let batches: u32 = function.queues.iter().map(|queue| queue.maximum_concurrency).sum();
    match function.name.as_str() {
        _ if batches > 0 => batches.try_into().unwrap_or(usize::MAX),
        "token" | "list-event-types" | "show-delivery" => 16,
        // Concurrent publish requests share table calls.
        "publish-event" => 64,
        // An invocation waits for deliveries for as long as the reader asked. Up to twice an entity's `feed-waits` can
        // be in progress at once: those that begin at the end of one window, and those of the next. These waits leave a
        // fifth of the invocations for others. A waiting reader uses three or four of the open files that `preflight`
        // allows.
        "read-feed" => 512,
        // An invocation waits up to 10 s for a provider while a person is waiting for the page.
        "provider-callback" => 16,
        // One invocation does the work, and the others wait for its result.
        "geo-ip-update" => 16,
        _ => 4,
    }
}

/// How long a function's process may be idle before it is ended. Lambda also keeps an idle process for a few minutes;
/// together, the processes of all functions use almost a gigabyte.
pub const IDLE_LIMIT: Duration = Duration::from_secs(2 * 60);

/// A function's process, with the same variables as under SAM. The process starts on first use and ends after being
/// idle for `idle_limit`.
pub fn process(
    group: &Arc<ProcessGroup>,
    programs: &Programs,
    function: &Function,
    environment: Environment,
    runtime_api: &RuntimeApi,
    idle_limit: Duration,
) -> Supervised {
    let variables = [
        ("AWS_LAMBDA_FUNCTION_NAME", function.name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", function.memory.to_string()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", function.name)),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "local".to_owned()),
        ("AWS_LAMBDA_MAX_CONCURRENCY", concurrency(function).to_string()),
    ];
    let runtime_api = runtime_api.clone();
    let name = function.name.clone();
    group.keep_running(&function.name, programs.of(function), idle_limit, move |command| {
        command.arg0(&name);
        let attachment = runtime_api.attach(&name);
        command.envs(&environment);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.env("AWS_LAMBDA_RUNTIME_API", &attachment.address);
        // Unlike Lambda's, this Runtime API reports whether a request's client is still waiting.
        command.env("CLIENT_PRESENCE", "true");
        attachment
    })
}

#[cfg(test)]
mod tests {
    use storage::Allowance;
    use template::Template;

    use super::*;

    #[test]
    fn a_queue_has_the_same_maximum_concurrency_as_on_aws() {
        let template = Template::parse(include_str!("../../template.yaml")).expect("the project's template");
        let dispatcher = template.function("dispatch-deliveries").expect("declared");
        let queues: Vec<_> =
            dispatcher.queues.iter().map(|queue| (queue.queue.as_str(), queue.maximum_concurrency)).collect();
        assert_eq!(queues, [("DeliveryQueue", 50), ("SlowDeliveryQueue", 20)]);
        assert_eq!(concurrency(dispatcher), 70);
    }

    #[test]
    fn the_waiting_readers_of_one_entity_leave_permits_to_others() {
        let template = Template::parse(include_str!("../../template.yaml")).expect("the project's template");
        let reader = template.function("read-feed").expect("declared");
        // Waits that begin at the end of one window overlap with those of the next.
        let waits = 2 * Allowance::FeedWaits.limit();
        assert!(u32::try_from(concurrency(reader)).is_ok_and(|permits| permits > waits));
    }
}
