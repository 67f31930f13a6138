//! `make deploy` without AWS: its calls to SAM and the AWS CLI, which fake programs record. The tests cover the
//! parameters and functions that a deployment changes, and what it refuses to deploy.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::{
    desk::{ANSWERS, Desk, parameters_of, root, stack, stack_of, template},
    template::expanded_with,
};

const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:alarms";
const X86: u16 = 62;

#[test]
fn a_deployment_names_every_parameter_and_may_change_nothing() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    desk.succeeds(&["deploy", "staging"], &[]);
    let calls = desk.calls_of("sam deploy");
    let [call] = calls.as_slice() else { panic!("one deployment: {calls:?}") };
    for argument in
        [" deploy ", " --no-fail-on-empty-changeset ", "/samconfig-staging.yaml ", "/target/template-staging.json "]
    {
        assert!(call.contains(argument), "{argument}: {call}");
    }
    assert!(!call.contains("--guided"), "{call}");
    let mut named: Vec<_> = parameters_of(call).iter().map(|one| one.split_once('=').expect("a value").0).collect();
    let mut declared = template().0;
    named.sort_unstable();
    declared.sort();
    assert_eq!(named, declared, "an omitted parameter would keep the stack's value");
}

/// The versions that SAM derives from this template, by function.
fn versions(desk: &Desk) -> BTreeMap<String, String> {
    let resources = expanded_with(json!({ "template": desk.path("target/template-staging.json") }));
    let versions = resources.iter().filter(|(_, resource)| resource["Type"] == "AWS::Lambda::Version");
    let of = |(id, version): (&String, &Value)| {
        (version["Properties"]["FunctionName"]["Ref"].as_str().expect("a function").to_owned(), id.clone())
    };
    versions.map(of).collect()
}

/// SAM publishes a function only if the function's text in the template changes; changing a parameter's value does not
/// change the text.
#[test]
fn a_changed_parameter_publishes_the_functions_that_read_it_and_no_other() {
    const WRITTEN: &str = "target/template-staging.json";
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    desk.succeeds(&["deploy", "staging"], &[]);
    let written = desk.read(WRITTEN);
    let before = versions(&desk);
    let answers = desk.read("samconfig-staging.yaml");
    let change = |name: &str, from: &str, to: &str| {
        let old = format!("# - \"{name}={from}\"");
        let new = format!("- \"{name}={to}\"");
        assert!(answers.contains(&old), "{old}");
        desk.write("samconfig-staging.yaml", answers.replace(&old, &new));
        desk.succeeds(&["deploy", "staging"], &[]);
    };
    let published = || {
        let versions = versions(&desk).into_iter();
        versions.filter(|(function, version)| before[function] != *version).map(|(name, _)| name).collect::<Vec<_>>()
    };
    change("LogRetentionDays", "30", "7");
    assert_eq!(desk.read(WRITTEN), written, "no function reads it");
    change("PublishLimit", "60000", "1000");
    assert_eq!(published(), ["PublishEvent"]);
    change("LogLevel", "info", "debug");
    assert_eq!(published().len(), before.len(), "every function reads it");
}

#[test]
fn missing_credentials_are_reported_before_anything_is_built() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    let said = desk.succeeds(&["credentials", "staging"], &[]);
    assert!(said.contains("account 123456789012 as arn:aws:iam::123456789012:user/operator"), "{said}");
    desk.write("anonymous", "");
    assert!(desk.fails(&["credentials", "staging"], &[]).contains("Unable to locate credentials"));

    let makefile = fs::read_to_string(root().join("Makefile")).expect("the project has a Makefile");
    let recipe = makefile.split_once("\ndeploy: ").expect("`make deploy`").1;
    let place = |text: &str| recipe.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("Name it") < place("$(DEPLOY_TOOLS)"), "a command without a name installs nothing");
    assert!(place("$(DEPLOY) credentials") < place(" build "));
}

#[test]
fn programs_for_another_processor_are_not_deployed() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging", "--architecture", "x86_64"], &ANSWERS);
    assert_eq!(desk.succeeds(&["architecture", "staging"], &[]), "x86_64\n");
    assert!(desk.fails(&["deploy", "staging"], &[]).contains("was built for arm64, but the stack is for x86_64"));
    assert!(desk.fails(&["ask", "staging", "--architecture", "arm64"], &[]).contains("says Architecture=x86_64"));
    assert_eq!(desk.calls(), Vec::<String>::new());
    desk.build(X86);
    desk.succeeds(&["deploy", "staging"], &[]);
    fs::remove_file(desk.path("target/lambda/token/bootstrap")).expect("it was built");
    assert!(desk.fails(&["deploy", "staging"], &[]).contains("target/lambda/token/bootstrap"));
}

#[test]
fn files_beside_a_program_are_not_deployed_with_it() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    desk.write("target/lambda/token/bootstrap.zip", "a tool left it here");
    assert!(desk.fails(&["deploy", "staging"], &[]).contains("bootstrap.zip does not belong in it"));
    assert_eq!(desk.calls(), Vec::<String>::new());
}

#[test]
fn a_first_deployment_that_failed_is_repeated_by_the_same_command() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    desk.write("stack.json", stack("ROLLBACK_COMPLETE", &[]).to_string());
    desk.succeeds(&["deploy", "staging"], &[]);
    let calls: Vec<_> = desk.calls().iter().map(|call| call.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let [packaged, looked, deleted, waited, deployed, ..] = calls.as_slice() else { panic!("{calls:?}") };
    assert!(packaged.starts_with("sam package"), "{packaged}");
    assert_eq!(looked, "aws cloudformation describe-stacks");
    assert_eq!([deleted, waited], ["aws cloudformation delete-stack", "aws cloudformation wait"]);
    assert!(deployed.starts_with("sam deploy"), "{deployed}");
}

#[test]
fn a_stack_that_works_is_never_removed() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    for status in [
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_ROLLBACK_FAILED",
        "ROLLBACK_FAILED",
        "DELETE_FAILED",
    ] {
        desk.write("stack.json", stack(status, &[]).to_string());
        let succeeded = desk.run(&["deploy", "staging"], &[]).status.success();
        assert_eq!(succeeded, !status.ends_with("_FAILED"), "{status}");
    }
    assert!(!desk.calls().iter().any(|call| call.contains("delete-stack")));
}

#[test]
fn a_deployed_stack_is_protected_against_deletion() {
    const PROTECTED: &str = "aws cloudformation update-termination-protection";
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    desk.succeeds(&["deploy", "staging"], &[]);
    assert_eq!(desk.calls().last().map(String::as_str), Some(PROTECTED));
    assert!(desk.path("protected").exists());
}

/// An answer file that was copied from another environment names the other one's stack.
#[test]
fn the_stack_of_another_environment_is_not_changed() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    let foreign = json!({ "Stacks": [{ "StackStatus": "UPDATE_COMPLETE" }] });
    for (found, reason) in [
        (stack_of("production", "UPDATE_COMPLETE", &[]), "belongs to the environment production"),
        (stack_of("production", "ROLLBACK_COMPLETE", &[]), "belongs to the environment production"),
        (foreign, "is not a deployment of this service"),
    ] {
        desk.write("stack.json", found.to_string());
        let refused = desk.fails(&["deploy", "staging"], &[]);
        assert!(refused.contains(&format!("the stack waypost-staging {reason}: correct stack_name")), "{refused}");
    }
    let changes = |call: &String| call.starts_with("sam deploy") || call.contains("delete-stack");
    assert!(!desk.calls().iter().any(changes), "nothing was changed");
}

/// In a stack whose schedules have not yet run, the alarms for missing schedules fire.
#[test]
fn the_alarms_of_a_new_stack_get_their_topic_when_its_schedules_have_run() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &["", "eu-central-1", "https://api.example.com", "", TOPIC]);
    desk.succeeds(&["deploy", "staging"], &[]);
    let calls = desk.calls();
    let place = |start: &str| calls.iter().rposition(|call| call.starts_with(start)).expect("it is called");
    let deployed = desk.calls_of("sam deploy");
    let [first, second] = deployed.as_slice() else { panic!("two deployments: {deployed:?}") };
    assert!(parameters_of(first).contains(&r#"AlarmTopicArn="""#), "{first}");
    assert!(parameters_of(second).contains(&&*format!("AlarmTopicArn={TOPIC}")), "{second}");
    assert_eq!(desk.calls_of("aws cloudwatch").len(), 2, "it waits for the first runs");
    assert!(place("aws cloudwatch") < place("sam"));
    // From then on, the stack has a topic, and `make deploy` does not wait.
    desk.write("deployed.json", stack("UPDATE_COMPLETE", &[("AlarmTopicArn", TOPIC)]).to_string());
    desk.write("stack.json", stack("UPDATE_COMPLETE", &[("AlarmTopicArn", TOPIC)]).to_string());
    desk.succeeds(&["deploy", "staging"], &[]);
    assert_eq!(desk.calls_of("sam deploy").len(), 3);
}

#[test]
fn an_api_without_a_custom_name_gets_api_gateways_address() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &["", "eu-central-1", "", "", ""]);
    desk.succeeds(&["deploy", "staging"], &[]);
    let deployed = desk.calls_of("sam deploy");
    let [first, second] = deployed.as_slice() else { panic!("two deployments: {deployed:?}") };
    assert!(parameters_of(first).contains(&"BaseUrl=https://preliminary.invalid"), "{first}");
    for address in ["BaseUrl=https://a1b2.example.com", "AuthUrl=https://a1b2.example.com"] {
        assert!(parameters_of(second).contains(&address), "{second}");
        assert!(desk.read("samconfig-staging.yaml").contains(&format!(r#"- "{address}""#)));
    }
    desk.succeeds(&["deploy", "staging"], &[]);
    assert_eq!(desk.calls_of("sam deploy").len(), 3, "the address is known");
}
