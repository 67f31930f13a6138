//! The versions that `make deploy` stores: each is named by its commit, and can be deployed again.

use std::fs;

use serde_json::Value;

use crate::desk::{ANSWERS, Desk, parameters_of};

/// From the moment when SAM has deployed, describes a different version.
const GIT: &str = r#"#!/bin/sh
if test -e "$(dirname "$0")/../stack.json"; then echo 1.0.0-1-g1a2b3c4; else echo 1.0.0; fi
"#;

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
