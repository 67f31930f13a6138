//! A function's declaration, and its triggers.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value};

use crate::{TemplateError, schedule};

/// One function: a binary, and its triggers.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The binary's name: that of its folder, which is the last part of its `CodeUri`.
    pub name: String,
    /// The function's name in the template.
    pub logical_id: String,
    /// The environment variables, with references yet to be resolved. They include those of `Globals`.
    pub environment: BTreeMap<String, Value>,
    /// The maximum duration of an invocation.
    pub timeout: Duration,
    /// Memory in MB.
    pub memory: u64,
    /// The HTTP routes that invoke the function.
    pub routes: Vec<Route>,
    /// Whether the function handles every request that no route matches.
    pub answers_unmatched: bool,
    /// The queues that invoke the function.
    pub queues: Vec<QueueTrigger>,
    /// The schedule that invokes the function.
    pub schedule: Option<ScheduleTrigger>,
    /// Whether a rule of an event bus invokes the function.
    pub bus: bool,
    /// Whether Secrets Manager invokes the function, to rotate a secret.
    pub rotates: bool,
}

/// A method and a path that invoke a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The path, its parameters in braces: `/problems/{kind}`.
    pub path: String,
    /// The method, in capitals.
    pub method: String,
    /// The function's name.
    pub function: String,
}

impl Route {
    /// The path in the form that openapi.yaml uses, which has no greedy parameters: `/panel/{page+}` is `/panel/{page}`
    /// there.
    pub fn documented_path(&self) -> String {
        self.path.replace("+}", "}")
    }
}

/// A queue that invokes a function with batches of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTrigger {
    /// The queue's logical id in the template.
    pub queue: String,
    /// The maximum number of messages in one invocation.
    pub batch_size: u32,
    /// How long Lambda collects messages for a batch; by default, not at all.
    pub batching_window: Duration,
    /// Whether the response names the messages that failed, rather than all or none.
    pub reports_failures: bool,
    /// The maximum number of concurrent batches of this queue.
    pub maximum_concurrency: u32,
}

/// A schedule that invokes a function.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleTrigger {
    /// The time between two invocations.
    pub every: Duration,
    /// The event for the function; by default, the scheduler's.
    pub input: Option<Value>,
}

impl Function {
    /// Reads one `AWS::Serverless::Function`, given the template's `Globals.Function`.
    pub(crate) fn read(logical_id: &str, properties: &Value, globals: &Value) -> Result<Self, TemplateError> {
        let fault = |what| TemplateError::Member { resource: logical_id.to_owned(), what };
        let setting = |name: &str| properties.get(name).or_else(|| globals.get(name));

        let name = properties["CodeUri"]
            .as_str()
            .and_then(|path| path.rsplit('/').next())
            .ok_or_else(|| fault("CodeUri"))?
            .to_owned();
        let mut function = Self {
            logical_id: logical_id.to_owned(),
            environment: environment(globals)
                .into_iter()
                .chain(environment(properties))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            timeout: setting("Timeout")
                .and_then(Value::as_u64)
                .map(Duration::from_secs)
                .ok_or_else(|| fault("Timeout"))?,
            memory: setting("MemorySize").and_then(Value::as_u64).ok_or_else(|| fault("MemorySize"))?,
            routes: Vec::new(),
            answers_unmatched: false,
            queues: Vec::new(),
            schedule: None,
            bus: false,
            rotates: false,
            name,
        };
        for event in properties["Events"].as_object().into_iter().flat_map(Map::values) {
            function.add_trigger(event, &fault)?;
        }
        Ok(function)
    }

    fn add_trigger(
        &mut self,
        event: &Value,
        fault: &dyn Fn(&'static str) -> TemplateError,
    ) -> Result<(), TemplateError> {
        let properties = &event["Properties"];
        match event["Type"].as_str() {
            Some("HttpApi") => match (properties["Path"].as_str(), properties["Method"].as_str()) {
                // An HttpApi event without both means `$default` in SAM.
                (None, None) => self.answers_unmatched = true,
                (Some("$default"), _) => self.answers_unmatched = true,
                (Some(path), Some(method)) => self.routes.push(Route {
                    path: path.to_owned(),
                    method: method.to_ascii_uppercase(),
                    function: self.name.clone(),
                }),
                _ => return Err(fault("HttpApi event without Path and Method")),
            },
            Some("ScheduleV2") => {
                let every = properties["ScheduleExpression"]
                    .as_str()
                    .ok_or_else(|| fault("ScheduleV2 event's ScheduleExpression"))?;
                let trigger = ScheduleTrigger {
                    every: schedule::interval(every).map_err(TemplateError::Schedule)?,
                    input: properties["Input"]
                        .as_str()
                        .map(serde_json::from_str)
                        .transpose()
                        .map_err(TemplateError::Input)?,
                };
                if self.schedule.replace(trigger).is_some() {
                    return Err(fault("a second ScheduleV2 event"));
                }
            }
            // SAM's SQS event would let the function read every queue in the account; a separate mapping needs a grant
            // for its queue.
            Some("SQS") => return Err(fault("an SQS event, in place of an AWS::Lambda::EventSourceMapping")),
            // A local deployment has no bus, so tests invoke the function instead.
            Some("EventBridgeRule") => self.bus = true,
            _ => return Err(fault("an event of an unknown Type")),
        }
        Ok(())
    }
}

impl QueueTrigger {
    /// Reads one `AWS::Lambda::EventSourceMapping` and the logical id of the function that it invokes.
    pub(crate) fn read(logical_id: &str, properties: &Value) -> Result<(String, Self), TemplateError> {
        let fault = |what| TemplateError::Member { resource: logical_id.to_owned(), what };
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        // Without the alias, the mapping would invoke the version deployed last, even if its deployment failed.
        let alias = properties["FunctionName"]["Ref"].as_str();
        let function = alias.and_then(|alias| alias.strip_suffix(".Alias"));
        let function = function.ok_or_else(|| fault("FunctionName (a !Ref of a function's Alias)"))?;
        let queue = &properties["EventSourceArn"]["Fn::GetAtt"][0];
        let reported = properties["FunctionResponseTypes"].as_array();
        let trigger = Self {
            queue: queue.as_str().ok_or_else(|| fault("EventSourceArn (a !GetAtt of a queue's Arn)"))?.to_owned(),
            batch_size: number(&properties["BatchSize"]).ok_or_else(|| fault("BatchSize"))?,
            batching_window: match &properties["MaximumBatchingWindowInSeconds"] {
                Value::Null => Duration::ZERO,
                given => {
                    let seconds = number(given).ok_or_else(|| fault("MaximumBatchingWindowInSeconds"))?;
                    Duration::from_secs(seconds.into())
                }
            },
            reports_failures: reported.is_some_and(|types| types.contains(&"ReportBatchItemFailures".into())),
            maximum_concurrency: number(&properties["ScalingConfig"]["MaximumConcurrency"])
                .ok_or_else(|| fault("ScalingConfig.MaximumConcurrency"))?,
        };
        Ok((function.to_owned(), trigger))
    }
}

fn environment(properties: &Value) -> impl IntoIterator<Item = (&String, &Value)> {
    properties["Environment"]["Variables"].as_object().into_iter().flatten()
}
