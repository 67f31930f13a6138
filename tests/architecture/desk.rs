//! The folder in which the tests of `make deploy` run its script, with fake programs that record the calls to SAM and
//! the AWS CLI.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

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
    "cloudformation update-termination-protection") test "$5" = --enable-termination-protection && touch protected ;;
    "sts get-caller-identity")
        if test -e anonymous; then echo "Unable to locate credentials." >&2; exit 253; fi
        echo '{"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/operator"}' ;;
    "cloudwatch describe-alarms") if test -e looked; then cat alarms.json; else touch looked; echo '{"MetricAlarms": []}'; fi ;;
esac
"#;

/// The answers for the stack, region, BaseUrl, AuthUrl and AlarmTopicArn.
pub const ANSWERS: [&str; 5] = ["", "eu-central-1", "https://api.example.com", "", ""];
const ARM: u16 = 183;

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the project's folder")
}

/// The names of the template's parameters and the folders of its functions.
pub fn template() -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(root().join("template.yaml")).expect("the project has a template.yaml");
    let template = template::yaml_to_json(&text).expect("template.yaml is YAML");
    let parameters = template["Parameters"].as_object().expect("parameters").keys().cloned().collect();
    let resources = template["Resources"].as_object().expect("resources").values();
    let folders =
        resources.filter_map(|resource| resource["Properties"]["CodeUri"].as_str()).map(str::to_owned).collect();
    (parameters, folders)
}

/// The parameters, with their values, in a call of `sam deploy`.
pub fn parameters_of(call: &str) -> Vec<&str> {
    call.split_once("--parameter-overrides ").expect("every parameter is named").1.split(' ').collect()
}

/// An operator's folder for deploying.
pub struct Desk(TempDir);

impl Desk {
    /// A folder with fake programs, functions built for ARM, and a description of the stack that a deployment creates.
    pub fn new() -> Self {
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

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and its folders.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(path, content).expect("a file can be written");
    }

    /// Installs a program in the folder that comes first in the script's PATH.
    pub fn install(&self, name: &str, script: &str) {
        let name = format!("bin/{name}");
        self.write(&name, script);
        fs::set_permissions(self.path(&name), fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// A file's text; empty if there is no such file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Puts a program for this processor where each function's build would be.
    pub fn build(&self, processor: u16) {
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
        header.extend(processor.to_le_bytes());
        for folder in template().1 {
            self.write(&format!("{folder}/bootstrap"), &header);
        }
    }

    /// Runs a step of the script with these answers to its questions.
    pub fn run(&self, step: &[&str], answers: &[&str]) -> Output {
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

    /// The output of a run, which must succeed.
    #[track_caller]
    pub fn succeeds(&self, step: &[&str], answers: &[&str]) -> String {
        let output = self.run(step, answers);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The error output of a run, which must fail.
    #[track_caller]
    pub fn fails(&self, step: &[&str], answers: &[&str]) -> String {
        let output = self.run(step, answers);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).expect("text")
    }

    /// The calls of SAM and the AWS CLI so far.
    pub fn calls(&self) -> Vec<String> {
        self.read("calls").lines().map(str::to_owned).collect()
    }

    /// The calls that begin with this text.
    pub fn calls_of(&self, program: &str) -> Vec<String> {
        self.calls().into_iter().filter(|call| call.starts_with(program)).collect()
    }
}

/// CloudFormation's description of a stack of the environment `staging` with this status and these parameters.
pub fn stack(status: &str, parameters: &[(&str, &str)]) -> Value {
    stack_of("staging", status, parameters)
}

/// CloudFormation's description of a stack of an environment.
pub fn stack_of(environment: &str, status: &str, parameters: &[(&str, &str)]) -> Value {
    let parameter = |(key, value): &(&str, &str)| json!({ "ParameterKey": key, "ParameterValue": value });
    let outputs = [json!({ "OutputKey": "ApiEndpoint", "OutputValue": "https://a1b2.example.com" })];
    let parameters: Vec<_> = [("Environment", environment)].iter().chain(parameters).map(parameter).collect();
    json!({ "Stacks": [{ "StackStatus": status, "Parameters": parameters, "Outputs": outputs }] })
}
