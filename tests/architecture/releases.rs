//! Updates of functions: every caller invokes an alias, which moves to the new version gradually, or back if an alarm
//! fires.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};
use template::Template;

use crate::template::{RELEASE_ALARM, expanded, expanded_with, function_behind, of_type};

/// The alias that every function has.
const ALIAS: &str = "live";
/// The alarms that roll an update back: a function crashed, failed or timed out, or functions respond with 5xx.
const ALARMS: [&str; 2] = ["FunctionErrorsAlarm", RELEASE_ALARM];
/// The shortest period over which CodeDeploy may shift the traffic, in seconds: an alarm must be able to fire within
/// it.
const SHORTEST_SHIFT: u64 = 300;
/// CloudFormation's limit on a stack's resources.
/// <https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html>
const MOST_RESOURCES: usize = 500;
const LONGEST_TEMPLATE: usize = 1_000_000;
/// CodeDeploy's configurations for Lambda, without the prefix `CodeDeployDefault.Lambda`.
/// <https://docs.aws.amazon.com/codedeploy/latest/userguide/deployment-configurations.html>
const SHIFTS: [&str; 9] = [
    "AllAtOnce",
    "Canary10Percent5Minutes",
    "Canary10Percent10Minutes",
    "Canary10Percent15Minutes",
    "Canary10Percent30Minutes",
    "Linear10PercentEvery1Minute",
    "Linear10PercentEvery2Minutes",
    "Linear10PercentEvery3Minutes",
    "Linear10PercentEvery10Minutes",
];

fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    fs::read_to_string(path).expect("the project has a template.yaml")
}

/// The logical identifiers of all functions except those that rotate a secret.
fn in_use() -> Vec<String> {
    let template = Template::parse(&text()).expect("template.yaml is a template");
    let functions = template.functions().iter().filter(|function| !function.rotates);
    let functions: Vec<_> = functions.map(|function| function.logical_id.clone()).collect();
    assert!(functions.len() > 40, "{functions:?}");
    functions
}

/// The functions that Secrets Manager calls for rotations, which have no alias.
fn rotating(resources: &Map<String, Value>) -> Vec<Value> {
    let schedules = of_type(resources, "AWS::SecretsManager::RotationSchedule").into_iter();
    schedules.map(|(_, schedule)| schedule["Properties"]["RotationLambdaARN"]["Fn::GetAtt"][0].clone()).collect()
}

#[test]
fn functions_are_invoked_by_their_alias() {
    let resources = expanded();
    let rotating = rotating(&resources);
    for (_, permission) in of_type(&resources, "AWS::Lambda::Permission") {
        let function = &permission["Properties"]["FunctionName"];
        if !rotating.contains(&function["Ref"]) {
            function_behind(&resources, function);
        }
    }
    for (_, mapping) in of_type(&resources, "AWS::Lambda::EventSourceMapping") {
        function_behind(&resources, &mapping["Properties"]["FunctionName"]);
    }
    for (_, schedule) in of_type(&resources, "AWS::Scheduler::Schedule") {
        function_behind(&resources, &schedule["Properties"]["Target"]["Arn"]);
    }
    for (_, rule) in of_type(&resources, "AWS::Events::Rule") {
        function_behind(&resources, &rule["Properties"]["Targets"][0]["Arn"]);
    }
    for (id, configuration) in of_type(&resources, "AWS::Lambda::EventInvokeConfig") {
        assert_eq!(configuration["Properties"]["Qualifier"], ALIAS, "{id}");
    }
    let (_, api) = of_type(&resources, "AWS::ApiGatewayV2::Api").remove(0);
    let paths = api["Properties"]["Body"]["paths"].as_object().expect("paths").values();
    for operation in paths.flat_map(|path| path.as_object().expect("operations").values()) {
        let address = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"].as_str().expect("an address");
        let alias = address.split("/functions/${").nth(1).and_then(|rest| rest.split('}').next()).expect("an alias");
        function_behind(&resources, &json!({ "Ref": alias }));
    }
}

#[test]
fn every_function_in_use_is_updated_step_by_step_and_taken_back_by_alarms() {
    let resources = expanded();
    for function in in_use() {
        let alias = &resources[&format!("{function}Alias{ALIAS}")];
        let update = &alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"];
        let group = update["DeploymentGroupName"]["Ref"].as_str();
        let group = &resources[group.unwrap_or_else(|| panic!("{function} is not updated gradually"))]["Properties"];
        let watched = ALARMS.map(|alarm| json!({ "Name": { "Ref": alarm } }));
        assert_eq!(group["AlarmConfiguration"], json!({ "Enabled": true, "Alarms": watched }), "{function}");
        let taken_back = group["AutoRollbackConfiguration"]["Events"].as_array().expect("events");
        assert!(taken_back.contains(&"DEPLOYMENT_STOP_ON_ALARM".into()), "{function}");
    }
}

/// Each filter counts one log group's failures, so failures of a function with a different log group would not be
/// counted.
#[test]
fn the_errors_of_every_function_reach_the_alarm() {
    let resources = expanded();
    let filters = of_type(&resources, "AWS::Logs::MetricFilter");
    let [(_, filter)] = filters.as_slice() else { panic!("one filter: {filters:?}") };
    let filter = &filter["Properties"];
    assert_eq!(filter["FilterPattern"], r#"{ $.type = "platform.report" && $.record.status != "success" }"#);
    for (id, function) in of_type(&resources, "AWS::Lambda::Function") {
        assert_eq!(function["Properties"]["LoggingConfig"]["LogGroup"], filter["LogGroupName"], "{id}");
    }
    let alarm = &resources["FunctionErrorsAlarm"]["Properties"];
    let metric = &filter["MetricTransformations"][0];
    assert_eq!([&alarm["Namespace"], &alarm["MetricName"]], [&metric["MetricNamespace"], &metric["MetricName"]]);
    assert_eq!([&alarm["ComparisonOperator"], &alarm["Threshold"]], [&json!("GreaterThanThreshold"), &json!(0)]);
}

#[test]
fn release_alarms_ring_before_the_shortest_shift_ends() {
    let resources = expanded();
    for id in ALARMS {
        let properties = &resources[id]["Properties"];
        let number = |name: &str| properties[name].as_u64().expect("a number");
        assert!(number("Period") * number("EvaluationPeriods") <= SHORTEST_SHIFT, "{id}");
        assert_eq!(properties["TreatMissingData"], "notBreaching", "{id}");
    }
}

/// CodeDeploy refuses a deployment while one of its group's alarms is firing, even a deployment that fixes the fault.
#[test]
fn an_update_at_once_waits_for_no_alarm() {
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let resources = expanded_with(json!({ "template": template, "parameters": { "Rollout": "AllAtOnce" } }));
    for (id, resource) in &resources {
        assert!(!resource["Type"].as_str().expect("a type").starts_with("AWS::CodeDeploy::"), "{id}");
        assert!(resource.get("UpdatePolicy").is_none(), "{id}");
    }
    for function in in_use() {
        assert_eq!(resources[&format!("{function}Alias{ALIAS}")]["Type"], "AWS::Lambda::Alias");
    }
}

#[test]
fn every_choice_of_a_rollout_is_one_that_codedeploy_knows() {
    let template = template::yaml_to_json(&text()).expect("template.yaml is YAML");
    let choices = template["Parameters"]["Rollout"]["AllowedValues"].as_array().expect("a list");
    let mapped = template["Mappings"]["Rollouts"].as_object().expect("a mapping");
    assert_eq!(choices.len(), mapped.len());
    for choice in choices.iter().map(|choice| choice.as_str().expect("a text")) {
        assert!(SHIFTS.contains(&choice), "{choice}");
        let gradual = if choice == "AllAtOnce" { "false" } else { "true" };
        assert_eq!(mapped[choice]["Gradual"], gradual, "{choice}");
    }
}

/// Retained versions would fill the account's code quota, and after a rollback, the retained version would make the
/// next update fail: Lambda does not publish the same code twice in a row.
#[test]
fn a_version_that_nothing_leads_to_is_removed() {
    let versions = of_type(&expanded(), "AWS::Lambda::Version");
    assert!(versions.len() > 40);
    for (id, version) in versions {
        assert_eq!(version["DeletionPolicy"], "Delete", "{id}");
    }
}

/// A function with a route adds six resources, and each further route adds one; docs/development.md explains what to do
/// at the limit.
#[test]
fn the_template_stays_within_the_limits_of_a_stack() {
    let resources = expanded();
    assert!(resources.len() <= MOST_RESOURCES, "{} resources: see docs/development.md", resources.len());
    let length = Value::from(resources).to_string().len();
    assert!(length < LONGEST_TEMPLATE / 2, "{length} characters");
}

#[test]
fn one_version_is_in_the_changelog_the_contract_and_the_template() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| fs::read_to_string(root.join(name)).expect("the project has this file");
    let version = env!("CARGO_PKG_VERSION");
    assert!(read("template.yaml").contains(&format!("\n  Release: {version}\n")), "template.yaml");
    for member in ["version", "x-release"] {
        assert!(read("openapi.yaml").contains(&format!("\n  {member}: {version}\n")), "openapi.yaml: {member}");
    }
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find(|line| line.starts_with("## [") && *line != "## [Unreleased]");
    assert!(
        newest.is_some_and(|heading| heading.starts_with(&format!("## [{version}] - "))),
        "the newest release of CHANGELOG.md is {newest:?}"
    );
    let sample = root.join(format!("tests/contract/release_data/{version}.json"));
    assert!(sample.is_file(), "{} is missing; see tests/contract/release_data.rs", sample.display());
}
