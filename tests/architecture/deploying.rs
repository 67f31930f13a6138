//! `make deploy` without AWS: its questions, its stored answers, and its calls to SAM and the AWS CLI, which fake
//! programs record.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::template::expanded_with;

const SAM: &str = r#"#!/bin/sh
printf 'sam %s\n' "$*" >> calls
if test "$1" = package; then cp "$3" "$5"; else cp deployed.json stack.json; fi
"#;

/// The first call returns the alarms of a stack whose schedules have not yet run.
const AWS: &str = r#"#!/bin/sh
printf 'aws %s %s\n' "$1" "$2" >> calls
if test "$4" = aws-sam-cli-managed-default; then
    echo '{"Stacks": [{"Outputs": [{"OutputKey": "SourceBucket", "OutputValue": "programs"}]}]}'; exit
fi
case "$1 $2" in
    "s3api put-object") mkdir -p "stored/$(dirname "$6")" && cp "$8" "stored/$6" ;;
    "s3api get-object")
        if test -e "stored/$6"; then cp "stored/$6" "$7"; echo "{}"; else echo "The specified key does not exist." >&2; exit 254; fi ;;
    "s3api list-objects-v2") echo '{"Contents": [{"Key": "waypost-staging/releases/1.0.0.json", "LastModified": "2026-11-20"}]}' ;;
    "dynamodb "*) cat "$2.json" ;;
    "cloudformation describe-stacks")
        if test -e stack.json; then cat stack.json; else echo "Stack with id waypost-staging does not exist" >&2; exit 254; fi ;;
    "cloudformation delete-stack") rm stack.json ;;
    "sts get-caller-identity")
        if test -e anonymous; then echo "Unable to locate credentials." >&2; exit 253; fi
        echo '{"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/operator"}' ;;
    "cloudwatch describe-alarms") if test -e looked; then cat alarms.json; else touch looked; echo '{"MetricAlarms": []}'; fi ;;
esac
"#;

/// From the moment when SAM has deployed, describes a different version.
const GIT: &str = r#"#!/bin/sh
if test -e "$(dirname "$0")/../stack.json"; then echo 1.0.0-1-g1a2b3c4; else echo 1.0.0; fi
"#;

const TABLE: &str = "arn:aws:dynamodb:eu-central-1:123456789012:table/restored-1";
const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:alarms";
/// The answers for the stack, region, BaseUrl, AuthUrl and AlarmTopicArn.
const ANSWERS: [&str; 5] = ["", "eu-central-1", "https://api.example.com", "", ""];
const ARM: u16 = 183;
const X86: u16 = 62;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the project's folder")
}

/// The names of the template's parameters and the folders of its functions.
fn template() -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(root().join("template.yaml")).expect("the project has a template.yaml");
    let template = template::yaml_to_json(&text).expect("template.yaml is YAML");
    let parameters = template["Parameters"].as_object().expect("parameters").keys().cloned().collect();
    let resources = template["Resources"].as_object().expect("resources").values();
    let folders =
        resources.filter_map(|resource| resource["Properties"]["CodeUri"].as_str()).map(str::to_owned).collect();
    (parameters, folders)
}

fn parameters_of(call: &str) -> Vec<&str> {
    call.split_once("--parameter-overrides ").expect("every parameter is named").1.split(' ').collect()
}

/// An operator's folder for deploying.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a folder"));
        desk.install("sam", SAM);
        desk.install("aws", AWS);
        desk.write("deployed.json", stack("CREATE_COMPLETE", &[]).to_string());
        let ok = |name: &str| json!({ "AlarmName": format!("waypost-staging-{name}-1A2B"), "StateValue": "OK" });
        let alarms = ["SweepMissingAlarm", "RefreshMissingAlarm"].map(ok);
        desk.write("alarms.json", json!({ "MetricAlarms": alarms }).to_string());
        desk.build(ARM);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, content).expect("a file can be written");
    }

    /// Installs a program in the folder that comes first in the script's PATH.
    fn install(&self, name: &str, script: &str) {
        let name = format!("bin/{name}");
        self.write(&name, script);
        fs::set_permissions(self.path(&name), fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Puts a program for this processor where each function's build would be.
    fn build(&self, processor: u16) {
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
        header.extend(processor.to_le_bytes());
        for folder in template().1 {
            self.write(&format!("{folder}/bootstrap"), &header);
        }
    }

    fn run(&self, step: &[&str], answers: &[&str]) -> Output {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display());
        let mut child = Command::new(root().join(".venv/bin/python"))
            .arg(root().join("operator/deploy.py"))
            .args(step)
            .current_dir(self.0.path())
            .env("PATH", path)
            .env("DEPLOY_SECONDS_BETWEEN_LOOKS", "0")
            .env_remove("AWS_REGION")
            .env_remove("AWS_DEFAULT_REGION")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("`make python-tools` has installed what the script needs in .venv");
        let mut stdin = child.stdin.take().expect("it is piped");
        let answers: String = answers.iter().flat_map(|answer| [*answer, "\n"]).collect();
        // A script that asks nothing may have already ended.
        drop(stdin.write_all(answers.as_bytes()));
        drop(stdin);
        child.wait_with_output().expect("a child can be waited for")
    }

    #[track_caller]
    fn succeeds(&self, step: &[&str], answers: &[&str]) -> String {
        let output = self.run(step, answers);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The error output of a run, which must fail.
    #[track_caller]
    fn fails(&self, step: &[&str], answers: &[&str]) -> String {
        let output = self.run(step, answers);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).expect("text")
    }

    fn calls(&self) -> Vec<String> {
        self.read("calls").lines().map(str::to_owned).collect()
    }

    fn calls_of(&self, program: &str) -> Vec<String> {
        self.calls().into_iter().filter(|call| call.starts_with(program)).collect()
    }
}

fn stack(status: &str, parameters: &[(&str, &str)]) -> Value {
    let parameter = |(key, value): &(&str, &str)| json!({ "ParameterKey": key, "ParameterValue": value });
    let outputs = [json!({ "OutputKey": "ApiEndpoint", "OutputValue": "https://a1b2.example.com" })];
    let parameters: Vec<_> = parameters.iter().map(parameter).collect();
    json!({ "Stacks": [{ "StackStatus": status, "Parameters": parameters, "Outputs": outputs }] })
}

#[test]
fn an_environment_is_configured_once_and_its_answers_stay_out_of_git() {
    let desk = Desk::new();
    let said = desk.succeeds(&["ask", "staging"], &ANSWERS);
    assert_eq!(said.matches("]: ").count(), ANSWERS.len(), "{said}");
    assert!(said.contains("the audience of every token"), "each question explains its parameter: {said}");
    let kept = desk.read("samconfig-staging.yaml");
    for answer in [
        r#"stack_name: "waypost-staging""#,
        r#"- "Environment=staging""#,
        r#"- "BaseUrl=https://api.example.com""#,
        r#"- "AuthUrl=https://api.example.com""#,
        r#"- "Architecture=arm64""#,
        r##"# - "TokenLifetime=3600""##,
    ] {
        assert!(kept.contains(answer), "{answer}: {kept}");
    }
    assert_eq!(desk.succeeds(&["ask", "staging"], &[]), "");
    desk.succeeds(&["ask", "production"], &ANSWERS);
    assert_eq!(desk.read("samconfig-staging.yaml"), kept, "each environment has a separate file");
    let ignored = fs::read_to_string(root().join(".gitignore")).expect("the project has a .gitignore");
    assert!(ignored.lines().any(|line| line == "/samconfig*"));
}

#[test]
fn invalid_answers_are_asked_for_again_and_partial_answers_not_kept() {
    let desk = Desk::new();
    let refused = ["", "eu-central-1", "http://api.example.com", "https://api.example.com", "", "no-topic", ""];
    let said = desk.succeeds(&["ask", "staging"], &refused);
    assert!(said.contains("`http://api.example.com` is not a valid value for BaseUrl"), "{said}");
    assert!(said.contains("`no-topic` is not a valid value for AlarmTopicArn"), "{said}");
    assert!(desk.fails(&["ask", "production"], &["", "eu-central-1"]).contains("nothing was written"));
    assert!(!desk.path("samconfig-production.yaml").exists());
    desk.fails(&["ask", "Not an environment"], &ANSWERS);
}

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
    for status in ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"]
    {
        desk.write("stack.json", stack(status, &[]).to_string());
        let succeeded = desk.run(&["deploy", "staging"], &[]).status.success();
        assert_eq!(succeeded, !status.ends_with("_FAILED"), "{status}");
    }
    assert!(!desk.calls().iter().any(|call| call.contains("delete-stack")));
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

#[test]
fn a_stored_version_is_deployed_again_with_present_settings_and_no_build() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    let said = desk.succeeds(&["deploy", "staging"], &[]);
    let version = said.split_once("This is the version ").and_then(|(_, rest)| rest.split_once(';')).expect("a name").0;
    let answers = desk.read("samconfig-staging.yaml");
    // The stored version lacks a parameter of the current one.
    let stored = format!("stored/waypost-staging/releases/{version}.json");
    let mut release: Value = serde_json::from_str(&desk.read(&stored)).expect("JSON");
    release["Parameters"].as_object_mut().expect("parameters").remove("Tracing").expect("a parameter");
    desk.write(&stored, release.to_string());
    let mut chosen = answers.clone();
    for (from, to) in [("LogLevel=info", "LogLevel=debug"), ("Tracing=Disabled", "Tracing=Active")] {
        chosen = chosen.replace(&format!("# - \"{from}\""), &format!("- \"{to}\""));
    }
    desk.write("samconfig-staging.yaml", chosen);
    fs::remove_dir_all(desk.path("target/lambda")).expect("the programs were there");
    let said = desk.succeeds(&["deploy", "staging", "--version", version], &[]);
    assert!(said.contains("This version has no parameter Tracing"), "{said}");
    let calls = desk.calls_of("sam");
    assert_eq!(calls.len(), 3, "one package and two deployments: {calls:?}");
    assert_eq!(written_version(&desk), version);
    assert!(parameters_of(&calls[2]).contains(&"LogLevel=debug"), "{}", calls[2]);
    assert!(!calls[2].contains("Tracing="), "{}", calls[2]);
    assert!(desk.read("target/template-staging.json").contains(r#""LOG_LEVEL": "debug""#));
    let refused = desk.fails(&["deploy", "staging", "--version", "0.9"], &[]);
    assert!(
        refused.contains("the version 0.9 of waypost-staging is not stored") && refused.contains("1.0.0"),
        "{refused}"
    );

    desk.write("samconfig-staging.yaml", answers.replace("Architecture=arm64", "Architecture=x86_64"));
    let refused = desk.fails(&["deploy", "staging", "--version", version], &[]);
    assert!(refused.contains("was built for arm64, but the stack is for x86_64"), "{refused}");
}

#[test]
fn a_version_is_named_by_the_commit_before_its_deployment() {
    let desk = Desk::new();
    desk.install("git", GIT);
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    let said = desk.succeeds(&["deploy", "staging"], &[]);
    assert!(said.contains("This is the version 1.0.0;"), "{said}");
    assert!(desk.path("stored/waypost-staging/releases/1.0.0.json").is_file());
    assert_eq!(written_version(&desk), "1.0.0");
}

/// The version that the written template names in the stack's outputs.
fn written_version(desk: &Desk) -> String {
    let written: Value = serde_json::from_str(&desk.read("target/template-staging.json")).expect("JSON");
    written["Outputs"]["Version"]["Value"].as_str().expect("a name").to_owned()
}

/// Makes the environment `staging` use the table `restored-1`.
fn choose_table(desk: &Desk) {
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    let answers = desk.read("samconfig-staging.yaml");
    let chosen = answers.replace(r##"# - "TableName=""##, r#"- "TableName=restored-1""#);
    assert_ne!(chosen, answers);
    desk.write("samconfig-staging.yaml", chosen);
}

fn tags(environment: &str) -> Value {
    json!({ "Tags": [{ "Key": "waypost:environment", "Value": environment }] })
}

/// All environments' tables have the same keys and indexes.
#[test]
fn a_table_of_another_environment_is_refused() {
    let desk = Desk::new();
    choose_table(&desk);
    desk.write("describe-table.json", json!({ "Table": { "TableArn": TABLE } }).to_string());
    desk.write("list-tags-of-resource.json", tags("production").to_string());
    let refused = desk.fails(&["deploy", "staging"], &[]);
    assert!(
        refused.contains("restored-1 belongs to the environment production")
            && refused.contains("correct TableName in samconfig-staging.yaml"),
        "{refused}"
    );
    assert!(desk.calls_of("sam deploy").is_empty(), "nothing was changed");
}

/// A table that CloudFormation does not manage may lack one of this release's indexes, or the protection that the stack
/// gives its table.
#[test]
fn another_table_replaces_the_stacks_own_only_if_it_is_alike() {
    let desk = Desk::new();
    choose_table(&desk);
    desk.write("list-tags-of-resource.json", tags("staging").to_string());
    let text = fs::read_to_string(root().join("template.yaml")).expect("the project has a template.yaml");
    let declared = template::yaml_to_json(&text).expect("YAML")["Resources"]["Table"]["Properties"].clone();
    let mut table = declared.clone();
    table["TableStatus"] = "ACTIVE".into();
    table["TableArn"] = TABLE.into();
    let describe = |table: &Value, expiry: &str, backups: &str| {
        desk.write("describe-table.json", json!({ "Table": table }).to_string());
        let expiry = json!({ "TimeToLiveStatus": expiry, "AttributeName": "expiresAt" });
        desk.write("describe-time-to-live.json", json!({ "TimeToLiveDescription": expiry }).to_string());
        let backups = json!({ "PointInTimeRecoveryDescription": { "PointInTimeRecoveryStatus": backups } });
        desk.write("describe-continuous-backups.json", json!({ "ContinuousBackupsDescription": backups }).to_string());
    };
    describe(&table, "DISABLED", "DISABLED");
    let refused = desk.fails(&["deploy", "staging"], &[]);
    assert!(
        refused.contains("time to live is not enabled for expiresAt")
            && refused.contains("point-in-time recovery is not"),
        "{refused}"
    );
    let mut lacking = table.clone();
    let indexes = lacking["GlobalSecondaryIndexes"].as_array_mut().expect("indexes");
    indexes.retain(|index| index["IndexName"] != "bySubject");
    lacking["DeletionProtectionEnabled"] = false.into();
    describe(&lacking, "ENABLED", "ENABLED");
    let refused = desk.fails(&["deploy", "staging"], &[]);
    assert!(
        refused.contains("its index bySubject is missing") && refused.contains("deletion protection is not"),
        "{refused}"
    );
    assert!(desk.calls_of("sam deploy").is_empty(), "nothing was changed");

    describe(&table, "ENABLED", "ENABLED");
    desk.write("list-tags-of-resource.json", json!({ "Tags": [] }).to_string());
    let refused = desk.fails(&["deploy", "staging"], &[]);
    assert!(refused.contains("it has no tag waypost:environment=staging"), "{refused}");

    desk.write("list-tags-of-resource.json", tags("staging").to_string());
    desk.succeeds(&["deploy", "staging"], &[]);
    let resources = expanded_with(json!({ "template": desk.path("target/template-staging.json") }));
    let rest: Vec<_> = resources.iter().filter(|(id, _)| *id != "Table").collect();
    let written = serde_json::to_string(&rest).expect("JSON");
    assert!(resources.contains_key("Table"), "the stack keeps its own table");
    assert!(written.contains("table/restored-1/index/byDue") && written.contains(r#""TABLE_NAME":"restored-1""#));
    for left in [r#"{"Ref":"Table"}"#, r#""Table","Arn""#, "${Table"] {
        assert!(!written.contains(left), "a part uses the stack's own table by {left}");
    }
}
