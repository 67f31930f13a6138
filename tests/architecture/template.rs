//! Rules that template.yaml must follow so that a second environment, a repeated first deployment, logs, queues and
//! alarms work on AWS. Emulators do not detect violations of these rules.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use base::wait;
use serde_json::{Map, Value, json};

/// The ratio of a queue's visibility timeout to its function's timeout.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
const VISIBILITY: u64 = 6;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn template() -> Value {
    let text = fs::read_to_string(root().join("template.yaml")).expect("the project has a template.yaml");
    template::yaml_to_json(&text).expect("template.yaml is YAML")
}

/// The resources that SAM derives from the template, computed once for all tests, since this takes seconds.
pub fn expanded() -> Map<String, Value> {
    static EXPANDED: OnceLock<Map<String, Value>> = OnceLock::new();
    EXPANDED.get_or_init(|| expanded_with(json!({ "template": root().join("template.yaml") }))).clone()
}

/// The resources that SAM derives from a template, optionally with values for its parameters.
pub fn expanded_with(mut request: Value) -> Map<String, Value> {
    request["whole"] = true.into();
    let mut child = Command::new(root().join(".venv/bin/python"))
        .arg(root().join("tests/python/expand_template.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`make python-tools` has installed SAM's translator in .venv");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(request.to_string().as_bytes()).expect("the script reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("a child can be waited for");
    let expanded: Value = serde_json::from_slice(&output.stdout).expect("the script prints the expanded template");
    let resources = expanded["Resources"].as_object().expect("a template has resources").clone();
    assert!(resources.len() > 150, "SAM derived only {} resources from the template", resources.len());
    resources
}

pub fn of_type(resources: &Map<String, Value>, kind: &str) -> Vec<(String, Value)> {
    let found: Vec<_> = resources
        .iter()
        .filter(|(_, resource)| resource["Type"] == kind)
        .map(|(id, resource)| (id.clone(), resource.clone()))
        .collect();
    assert!(!found.is_empty(), "the template has no {kind}");
    found
}

/// The function that an alias points to.
pub fn function_behind(resources: &Map<String, Value>, alias: &Value) -> String {
    let id = alias["Ref"].as_str().unwrap_or_else(|| panic!("{alias} is no reference to an alias"));
    assert_eq!(resources[id]["Type"], "AWS::Lambda::Alias", "{id} is not an alias");
    resources[id]["Properties"]["FunctionName"]["Ref"].as_str().expect("an alias of a function").to_owned()
}

/// The alarm that only CodeDeploy uses and that sends no notifications.
pub const RELEASE_ALARM: &str = "ReleaseAlarm";

/// A resource's name in the template; `None` if AWS generates one.
fn own_name(resource: &Value) -> Option<&Value> {
    let kind = resource["Type"].as_str().expect("a resource has a type");
    // These names are unique only within another resource: an API's stages, a function's aliases.
    if ["AWS::ApiGatewayV2::Stage", "AWS::Lambda::Alias"].contains(&kind) {
        return None;
    }
    let named = kind.rsplit("::").next().expect("a type has parts");
    let properties = resource["Properties"].as_object()?;
    properties.get("Name").or_else(|| properties.get(&format!("{named}Name")))
}

fn is_of_this_environment(name: &Value) -> bool {
    let text = name.to_string();
    ["${Environment}", "${AWS::StackName}", r#"{"Ref":"Environment"}"#, r#"{"Ref":"AWS::StackName"}"#]
        .iter()
        .any(|part| text.contains(part))
}

/// A value that a function accepts on one machine must not fail when it is deployed.
#[test]
fn patterns_of_durations_accept_the_units_of_the_parser() {
    let duration = format!("[0-9]+({})", wait::UNITS.map(|(unit, _)| unit).join("|"));
    let list = format!("{duration}(,{duration})*");
    let template = template();
    let parameters = template["Parameters"].as_object().expect("the template has parameters");
    let durations = parameters.iter().filter_map(|(name, parameter)| {
        let default = parameter["Default"].as_str()?;
        let is_duration = default.split(',').all(|part| wait::parse(part).is_some());
        is_duration.then(|| (name.as_str(), default.contains(','), parameter["AllowedPattern"].clone()))
    });
    let durations: Vec<_> = durations.collect();
    for (name, is_list, pattern) in &durations {
        let expected = if *is_list { &list } else { &duration };
        assert_eq!(pattern, expected.as_str(), "the pattern of {name}");
    }
    let mut names: Vec<_> = durations.iter().map(|(name, _, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, ["BreakerMax", "BreakerOpen", "DeliveryRetention", "DisableAfter", "RetrySchedule"]);
}

#[test]
fn every_fixed_name_contains_its_environment() {
    let resources = expanded();
    let names: Vec<_> = resources.iter().filter_map(|(id, resource)| Some((id, own_name(resource)?))).collect();
    assert!(names.len() >= 7, "secrets and log groups have names: {names:?}");
    let shared: Vec<_> = names.iter().filter(|(_, name)| !is_of_this_environment(name)).collect();
    assert!(shared.is_empty(), "a second environment finds these names taken: {shared:?}");
}

/// The alarms on an account's quotas, which all its environments share.
const OF_THE_ACCOUNT: [&str; 2] = ["ConcurrencyAlarm", "ThrottlesAlarm"];

/// Environments in one account do not trigger each other's alarms.
#[test]
fn every_alarm_uses_the_metrics_of_its_environment() {
    let alarms = of_type(&expanded(), "AWS::CloudWatch::Alarm").into_iter();
    for (id, alarm) in alarms.filter(|(id, _)| !OF_THE_ACCOUNT.contains(&id.as_str())) {
        let properties = &alarm["Properties"];
        if properties["Namespace"] == "Waypost" {
            let dimensions = properties["Dimensions"].as_array().expect("a list");
            let is_environment = |dimension: &Value| dimension["Value"] == json!({ "Ref": "Environment" });
            assert!(dimensions.iter().any(is_environment), "{id}");
        } else {
            let text = properties.get("Metrics").unwrap_or(&properties["Dimensions"]).to_string();
            assert!(
                text.contains(r#""Ref""#)
                    || text.contains(r#""Fn::GetAtt""#)
                    || is_of_this_environment(&properties["Namespace"]),
                "{id} names no resource of its stack"
            );
        }
    }
}

/// Removing the resources of a failed creation frees their names for the next attempt. Resources protected from removal
/// would stop the rollback, so they are retained and have no fixed names.
#[test]
fn a_failed_first_deployment_leaves_no_names_taken() {
    let resources = expanded();
    let kept = resources.iter().filter(|(_, resource)| {
        resource.get("DeletionPolicy").and_then(Value::as_str).is_some_and(|policy| policy != "Delete")
    });
    let mut count = 0;
    for (id, resource) in kept {
        count += 1;
        let expected = if resource["Properties"]["DeletionProtectionEnabled"] == true {
            assert_eq!(own_name(resource), None, "{id} remains after a failed creation, and keeps its name");
            "Retain"
        } else {
            "RetainExceptOnCreate"
        };
        assert_eq!(resource["DeletionPolicy"], expected, "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
    }
    assert!(count >= 7, "table, bucket and secrets outlive their stack: {count}");
}

/// With JSON logs, Lambda drops lines below its two configured levels. Lines without a level, such as metrics and the
/// audit trail, count as INFO. <https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html>
#[test]
fn lambda_drops_no_line_that_a_function_writes_and_no_report() {
    const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
    let place = |level: &Value| LEVELS.iter().position(|known| level == known);
    let template = template();
    let words = template["Parameters"]["LogLevel"]["AllowedValues"].as_array().expect("a list").clone();
    let levels = words.iter().map(|word| word.as_str().expect("a word").to_uppercase()).chain(["INFO".to_owned()]);
    let levels: Vec<_> = levels.map(|level| place(&json!(level)).expect("a level of Lambda")).collect();
    for (id, function) in of_type(&expanded(), "AWS::Lambda::Function") {
        let logging = &function["Properties"]["LoggingConfig"];
        assert_eq!(logging["LogFormat"], "JSON", "{id}");
        let application = place(&logging["ApplicationLogLevel"]).expect("a level that does not depend on LogLevel");
        assert!(levels.iter().all(|level| *level >= application), "{id}: {logging}");
        assert!(
            place(&logging["SystemLogLevel"]).is_some_and(|level| level <= 2),
            "{id} has no REPORT lines: {logging}"
        );
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// If no concurrency is free, Lambda holds a batch and retries.
#[test]
fn every_queue_hides_a_message_for_six_timeouts_of_its_function() {
    let resources = expanded();
    for (id, mapping) in of_type(&resources, "AWS::Lambda::EventSourceMapping") {
        let properties = &mapping["Properties"];
        let of = |reference: &Value| resources[reference.as_str().expect("a reference")]["Properties"].clone();
        let queue = of(&properties["EventSourceArn"]["Fn::GetAtt"][0]);
        let function = of(&function_behind(&resources, &properties["FunctionName"]).into());
        let window = properties.get("MaximumBatchingWindowInSeconds").map_or(0, number);
        let hidden = number(&queue["VisibilityTimeout"]);
        assert!(hidden >= VISIBILITY * number(&function["Timeout"]) + window, "{id}: {hidden} s");
        assert!(number(&queue["RedrivePolicy"]["maxReceiveCount"]) >= 5, "{id}");
    }
}

/// After about 16 passes through a queue, Lambda takes a function that sends to queues for an endless loop and no longer
/// invokes it with the message. <https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>
#[test]
fn a_function_that_reads_from_and_sends_to_queues_may_be_recursive() {
    let resources = expanded();
    let mut sending = 0;
    for (id, mapping) in of_type(&resources, "AWS::Lambda::EventSourceMapping") {
        let function = function_behind(&resources, &mapping["Properties"]["FunctionName"]);
        let properties = &resources[&function]["Properties"];
        let role = properties["Role"]["Fn::GetAtt"][0].as_str().expect("a separate role");
        if resources[role].to_string().contains("sqs:SendMessage") {
            sending += 1;
            assert_eq!(properties["RecursiveLoop"], "Allow", "{function}, which {id} invokes");
        }
    }
    assert!(sending > 0, "no function sends to queues");
}

/// Only the alarms on schedules treat missing data as a breach, so in a new stack they fire until the schedules have
/// run. `make deploy` therefore sets the stack's topic only afterwards.
#[test]
fn only_alarms_of_schedules_ring_when_data_are_missing() {
    let resources = expanded();
    let mut scheduled: Vec<_> = of_type(&resources, "AWS::Scheduler::Schedule")
        .into_iter()
        .map(|(_, schedule)| function_behind(&resources, &schedule["Properties"]["Target"]["Arn"]).into())
        .collect();
    let mut missed = Vec::new();
    for (id, alarm) in of_type(&resources, "AWS::CloudWatch::Alarm") {
        let properties = &alarm["Properties"];
        let counts = (&properties["MetricName"], &properties["ComparisonOperator"]);
        if counts == (&json!("Invocations"), &json!("LessThanThreshold")) {
            assert_eq!(properties["TreatMissingData"], "breaching", "{id}");
            missed.push(properties["Dimensions"][0]["Value"]["Ref"].clone());
        } else {
            // `ignore` keeps the state; SweepMissingAlarm covers missing sweep metrics.
            assert!(["notBreaching", "ignore"].iter().any(|good| properties["TreatMissingData"] == *good), "{id}");
        }
        for actions in ["AlarmActions", "OKActions"].into_iter().filter(|_| id != RELEASE_ALARM) {
            assert_eq!(properties[actions]["Fn::If"][0], "HasAlarmTopic", "{id} has no {actions} without a topic");
        }
    }
    scheduled.sort_by_key(Value::to_string);
    missed.sort_by_key(Value::to_string);
    assert_eq!(missed, scheduled);
}

/// X-Ray charges for each trace. When tracing is off, no function has rights to X-Ray.
#[test]
fn x_ray_records_every_function_by_a_parameter_and_none_without_it() {
    for (tracing, is_active) in [("Disabled", false), ("Active", true)] {
        let resources =
            expanded_with(json!({ "template": root().join("template.yaml"), "parameters": { "Tracing": tracing } }));
        for (id, function) in of_type(&resources, "AWS::Lambda::Function") {
            let role = function["Properties"]["Role"]["Fn::GetAtt"][0].as_str().expect("a separate role");
            let policies = resources[role]["Properties"]["ManagedPolicyArns"].to_string();
            assert_eq!(policies.contains("policy/AWSXrayWriteOnlyAccess"), is_active, "{id}: {policies}");
            let mode = if is_active { json!({ "Mode": { "Ref": "Tracing" } }) } else { Value::Null };
            assert_eq!(function["Properties"]["TracingConfig"], mode, "{id}");
        }
        let roles = of_type(&resources, "AWS::IAM::Role").into_iter().map(|(_, role)| role.to_string());
        let with_rights = roles.filter(|role| role.to_lowercase().contains("xray")).count();
        assert_eq!(with_rights, if is_active { of_type(&resources, "AWS::Lambda::Function").len() } else { 0 });
    }
}
