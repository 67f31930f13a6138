//! `make sam-local` without a container engine: a network namespace replaces the container, and `tests/python/sam`
//! replaces SAM. `make sam-events` tests with the real programs.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Stdio, sync::Arc};

use contract_test::contract_test;
use serde_json::Value;
use tokio::{process::Command, sync::Mutex};

use crate::harness::{LONG, Suite, project, until};

/// Held while SAM is running, so that a test that looks for leftover folders does not see another test's folder.
static RUNNING: Mutex<()> = Mutex::const_new(());

fn sam(program: &str) -> Command {
    let mut command = Command::new(project().join(".venv/bin/python"));
    command.arg(project().join("local/sam").join(program)).current_dir(project()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// `local/sam` with `tests/python/sam` instead of SAM; `None` if the kernel does not allow namespaces.
async fn sam_in_namespace() -> Option<Command> {
    let mut unshare = Command::new("unshare");
    if !unshare.args(["--map-root-user", "--net", "true"]).status().await.expect("unshare is installed").success() {
        println!("skipped: this machine allows no namespaces");
        return None;
    }
    let path =
        format!("{}:{}", project().join("tests/python").display(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    let mut command = sam("");
    // A person's AWS credentials must not reach a container, which the fake SAM checks.
    command.env("PATH", path).env("AWS_SESSION_TOKEN", "of a person");
    Some(command)
}

/// The function's response to its sample event, and the rest of the output; `None` if the kernel does not allow
/// namespaces.
async fn answer(suite: &Suite, function: &str) -> Option<(Value, String)> {
    let mut command = sam_in_namespace().await?;
    command.args(["invoke", function, "--data"]).arg(suite.bundle().data());
    let answer = until(&format!("a response of {function}"), LONG, async || {
        let output = command.output().await.expect("`make python-tools` has installed it");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{log}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {log}"));
        // A 503, as a machine that stalls causes, asks the client to try again.
        Some((answer, log)).filter(|(answer, _)| answer["statusCode"] != 503)
    })
    .await;
    Some(answer)
}

/// The private folders of runs; each run removes its own when it ends.
fn runs() -> BTreeSet<PathBuf> {
    fs::read_dir(project().join("target/sam")).into_iter().flatten().flatten().map(|run| run.path()).collect()
}

#[contract_test]
async fn a_function_in_a_container_reaches_the_stand_ins(suite: Arc<Suite>) {
    let _running = RUNNING.lock().await;
    let before = runs();
    // The functions use, in this order, the table and a secret, the table alone, and the table and a queue.
    for (function, status) in [("token", 200), ("list-webhooks", 200), ("publish-event", 202)] {
        let Some((answer, log)) = answer(&suite, function).await else { return };
        assert_eq!(answer["statusCode"], status, "{function}: {answer:#} {log}");
    }
    let left: Vec<_> = runs().difference(&before).cloned().collect();
    assert!(left.is_empty(), "credentials are left in {left:?}");
}

#[contract_test]
async fn a_comparison_shows_neither_side_an_effect_of_the_other(_: Arc<Suite>) {
    let _running = RUNNING.lock().await;
    let Some(mut command) = sam_in_namespace().await else { return };
    // If the data were shared, the idempotency key for publish-event would make the second response a repetition.
    command.args(["events", "publish-event", "list-webhooks", "token"]);
    let output = command.output().await.expect("`make python-tools` has installed it");
    let said = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("3 answered alike, 0 not"), "{said}{error}");
}

#[contract_test]
async fn missing_tools_are_reported_before_anything_is_installed_or_built(_: Arc<Suite>) {
    let cases = [
        ("--function=", "make sam-local FUNCTION=token"),
        ("--function=tokens", "There is no function `tokens`. The functions are: acknowledge-feed, "),
        ("--function=token", "No container engine answers at unix:///nonexistent"),
    ];
    for (function, said) in cases {
        let output =
            sam("check.py").arg(function).env("DOCKER_HOST", "unix:///nonexistent").output().await.expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(said), "{function}: {error}");
        assert!(!error.contains("Traceback"), "{error}");
    }
}
