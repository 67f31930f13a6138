//! `make sam-local` without a container engine: a network namespace replaces the container, and `tests/python/sam`
//! replaces SAM. `make sam-events` tests with the real ones.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Stdio, sync::Arc};

use contract_test::contract_test;
use serde_json::Value;
use tokio::process::Command;

use crate::harness::{Suite, project};

/// A Python program of `local/sam`.
fn sam(program: &str) -> Command {
    let mut command = Command::new(project().join(".venv/bin/python"));
    command.arg(project().join("local/sam").join(program)).current_dir(project()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// The function's response to its sample event, in a namespace, and the rest of the output; `None` if the kernel allows
/// no namespaces.
async fn answer(suite: &Suite, function: &str) -> Option<(Value, String)> {
    let mut unshare = Command::new("unshare");
    if !unshare.args(["--map-root-user", "--net", "true"]).status().await.expect("unshare is installed").success() {
        println!("skipped: this machine allows no namespaces");
        return None;
    }
    let path =
        format!("{}:{}", project().join("tests/python").display(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    let data = suite.bundle().data();
    let output = sam("")
        .args(["invoke", function, "--data"])
        .arg(&data)
        .env("PATH", path)
        // A person's AWS credentials must not reach a container; the fake of SAM checks that.
        .env("AWS_SESSION_TOKEN", "of a person")
        .output()
        .await
        .expect("`make python-tools` has installed it");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {log}"));
    Some((answer, log))
}

/// The private folders of runs, which are removed at their end.
fn runs() -> BTreeSet<PathBuf> {
    fs::read_dir(project().join("target/sam")).into_iter().flatten().flatten().map(|run| run.path()).collect()
}

#[contract_test]
async fn a_function_in_a_container_reaches_the_stand_ins(suite: Arc<Suite>) {
    let before = runs();
    // Table and secret; table alone; table and queue.
    for (function, status) in [("token", 200), ("list-webhooks", 200), ("publish-event", 202)] {
        let Some((answer, log)) = answer(&suite, function).await else { return };
        assert_eq!(answer["statusCode"], status, "{function}: {answer:#} {log}");
    }
    let left: Vec<_> = runs().difference(&before).cloned().collect();
    assert!(left.is_empty(), "credentials are left in {left:?}");
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
