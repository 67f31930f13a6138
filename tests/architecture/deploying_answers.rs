//! The questions of `make deploy`, and the answers that it stores.

use std::fs;

use crate::desk::{ANSWERS, Desk, root};

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
