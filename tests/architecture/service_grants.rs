//! The rights that AWS services have to the stack's resources: one action each, and only for this stack. The contract
//! tests check the functions' rights.

use serde_json::{Map, Value, json};

use super::template::expanded;

/// The services that may invoke functions.
const INVOKING: [&str; 3] = ["apigateway.amazonaws.com", "events.amazonaws.com", "secretsmanager.amazonaws.com"];
/// CodeDeploy's managed policy.
const DEPLOYING: &str = "AWSCodeDeployRoleForLambda";

/// A sentence for each right that is too broad.
fn too_wide(resources: &Map<String, Value>) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, resource) in resources {
        let properties = &resource["Properties"];
        let mut need = |holds: bool, what: &str| {
            if !holds {
                faults.push(format!("{id}: {what}"));
            }
        };
        match resource["Type"].as_str() {
            Some("AWS::Lambda::Permission") => {
                need(INVOKING.iter().any(|service| properties["Principal"] == *service), "another service invokes it");
                need(properties["Action"] == "lambda:InvokeFunction", "more than to invoke it");
                let source = ["SourceArn", "SourceAccount"].iter().any(|source| !properties[*source].is_null());
                need(source, "for any account, since it names no source");
            }
            Some("AWS::SQS::QueuePolicy" | "AWS::S3::BucketPolicy") => {
                for statement in statements(properties).filter(|statement| statement["Effect"] == "Allow") {
                    need(statement["Principal"]["Service"].is_string(), "for more than one service");
                    need(is_one(&statement["Action"]), "more than one action");
                    need(is_one(&statement["Resource"]), "more than one resource");
                    let source = &statement["Condition"]["ArnEquals"]["aws:SourceArn"];
                    need(is_one(source), "for any source in any account");
                }
            }
            Some("AWS::IAM::Role") => {
                let trusted: Vec<_> = statements(&json!({ "PolicyDocument": properties["AssumeRolePolicyDocument"] }))
                    .map(|statement| statement["Principal"].clone())
                    .collect();
                let is_of = |service: &str| trusted == [json!({ "Service": [service] })];
                if is_of("lambda.amazonaws.com") {
                    continue;
                }
                let managed = properties["ManagedPolicyArns"].to_string();
                if is_of("codedeploy.amazonaws.com") {
                    need(managed.contains(DEPLOYING), "a policy other than CodeDeploy's");
                    continue;
                }
                need(is_of("scheduler.amazonaws.com"), "another service assumes it");
                need(managed == "null", "a policy that AWS may change");
                let policies = properties["Policies"].as_array().into_iter().flatten();
                for statement in policies.flat_map(|policy| statements(policy).collect::<Vec<_>>()) {
                    need(statement["Action"] == "lambda:InvokeFunction", "more than to invoke a function");
                    need(is_one(&statement["Resource"]), "more than one function");
                }
            }
            _ => {}
        }
    }
    faults
}

fn statements(policy: &Value) -> impl Iterator<Item = &Value> {
    policy["PolicyDocument"]["Statement"].as_array().into_iter().flatten()
}

/// Whether a value is a single name with no wildcards.
fn is_one(value: &Value) -> bool {
    (value.is_string() || value.is_object()) && !value.to_string().contains(['*', '?'])
}

#[test]
fn a_service_of_aws_may_do_one_thing_and_for_this_stack_alone() {
    let resources = expanded();
    assert_eq!(too_wide(&resources), Vec::<String>::new());
    for (id, pointer, wider) in [
        ("RejectedEventsPolicy", "/PolicyDocument/Statement/0/Principal", json!("*")),
        ("RejectedEventsPolicy", "/PolicyDocument/Statement/0/Action", json!("sqs:*")),
        ("RejectedEventsPolicy", "/PolicyDocument/Statement/0/Resource", json!("*")),
        ("RejectedEventsPolicy", "/PolicyDocument/Statement/0/Condition", Value::Null),
        ("GeoIpBucketPolicy", "/PolicyDocument/Statement/0/Effect", json!("Allow")),
        ("RotateSigningKeyPermission", "/SourceAccount", Value::Null),
        ("RotateSigningKeyPermission", "/Principal", json!("*")),
        ("SweepDeliveriesEveryMinuteRole", "/Policies/0/PolicyDocument/Statement/0/Resource", json!("*")),
        ("SweepDeliveriesEveryMinuteRole", "/AssumeRolePolicyDocument/Statement/0/Principal", json!({ "AWS": "*" })),
    ] {
        let mut changed = resources.clone();
        let place = changed[id]["Properties"].pointer_mut(pointer);
        *place.unwrap_or_else(|| panic!("{id} has no {pointer}")) = wider;
        let faults = too_wide(&changed);
        assert!(faults.iter().any(|fault| fault.starts_with(id)), "{id}{pointer}: {faults:?}");
    }
}
