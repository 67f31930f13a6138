//! Parts of the documented receivers, tested apart from them: the store that keeps a repeated event once, and the
//! signature check in C#.

use std::{path::Path, sync::Arc};

use contract_test::contract_test;
use tokio::process::Command;

use crate::harness::{
    Suite,
    documented::{Running, at, folder, only_block, python_blocks, with, written},
    free_port, now, project, signature,
};

#[contract_test]
async fn the_documented_store_keeps_a_repeated_event_once(suite: Arc<Suite>) {
    let [program, .., store] = python_blocks();
    let (before, own) = program.split_once("def store(").expect("it has a `store`");
    let (_, after) = own.split_once("\nclass ").expect("a class follows");
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "receiver.py", &at(port, &format!("{before}{store}\n\nclass {after}")));
    let hook = suite.entity().await.hook(&format!("http://127.0.0.1:{port}/events")).await;
    let mut command = with(&project().join(".venv/bin/python"), &[&source]);
    command.current_dir(folder.path());
    let mut receiver = Running::start(command, port, Some(&hook.secret)).await;
    for _ in 0..3 {
        receiver.takes_events(&hook, "the same event").await;
    }
    let lines = |word: &str| receiver.log().matches(&format!("evt_1 booking.created {word}")).count();
    assert_eq!([lines("stored"), lines("repeated")], [1, 2], "{}", receiver.log());
}

/// Mono lacks ASP.NET Core, so the test compiles only the class that checks signatures, with a program that calls it.
#[contract_test(on_demand)]
async fn the_signature_check_in_csharp_accepts_genuine_events_only(_suite: Arc<Suite>) {
    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDM6hHCb0bUrQ=";
    const ASKING: &str = r#"
        static class Asking {
            static void Main(string[] given) {
                var key = Signature.Key(given[0]);
                System.Console.Write(key.Length == 0 ? "no key"
                    : Signature.Verify(key, "evt_1", given[1], given[2], Encoding.UTF8.GetBytes(given[3])).ToString());
            }
        }"#;
    let page = only_block("csharp");
    let class = page.find("static class Signature").expect("the program has the class");
    let usings = page.lines().filter(|line| line.starts_with("using System.") && !line.contains("Json"));
    let usings: String = ["using System;", "using System.Linq;"].into_iter().chain(usings).collect();
    let folder = folder();
    let source = written(&folder, "Signature.cs", &format!("{usings}{}{ASKING}", &page[class..]));
    let program = folder.path().join("signature.exe");
    let mut compile = with(Path::new("mcs"), &[&source]);
    let output = compile.arg(format!("-out:{}", program.display())).output().await.expect("mcs starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let at = now().to_string();
    let old = (now() - 400).to_string();
    let body = r#"{"id":"evt_1"}"#;
    let good = signature(SECRET, "evt_1", &at, body.as_bytes());
    let of_old = signature(SECRET, "evt_1", &old, body.as_bytes());
    let both = format!("v1,AAAA {good}");
    for (secret, time, signatures, expected) in [
        (SECRET, at.as_str(), good.as_str(), "True"),
        (SECRET, &at, &both, "True"),
        (SECRET, &at, &of_old, "False"),
        (SECRET, &at, "", "False"),
        (SECRET, &old, &of_old, "False"),
        (SECRET, "soon", &good, "False"),
        ("whsec_", &at, &good, "no key"),
        ("whsec_not base64", &at, &good, "no key"),
    ] {
        let output = Command::new("mono").arg(&program).args([secret, time, signatures, body]).output().await;
        let output = output.expect("mono starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{secret} {time} {signatures}");
    }
}
