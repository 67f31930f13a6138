//! The operator's program, `waypost-admin`.

use std::{ffi::OsStr, process::Stdio};

use fakes::LONG;
use serde_json::Value;
use tokio::{process::Command, time::timeout};

use super::{Bundle, local};

/// The result of running the operator's program.
#[derive(Debug)]
pub struct Admin {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Admin {
    /// Asserts success, and returns the standard output.
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Asserts that a run with `--json` succeeded, and returns the JSON value that it printed.
    pub fn json(self) -> Value {
        let out = self.done();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("standard output is one JSON value: {error}: {out}"))
    }

    /// Asserts that the run ended with this exit code and no result, and returns the standard error.
    pub fn failed(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        self.err
    }

    /// Runs the program with these arguments and environment variables.
    pub async fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>, env: &[(&str, String)]) -> Self {
        let program = local().expect("the bundle runs it").with_file_name("waypost-admin");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        let output = timeout(LONG, command.output()).await.expect("it ends").expect("it can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Runs the program for a bundle on this machine.
pub async fn admin(bundle: &Bundle, arguments: &[&str]) -> Admin {
    let data = bundle.data().display().to_string();
    Admin::run(["--data", &data].iter().chain(arguments), &[]).await
}
