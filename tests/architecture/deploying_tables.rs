//! `make deploy` with a table other than the stack's: it must be alike, and belong to the environment.

use std::fs;

use serde_json::{Value, json};

use crate::{
    desk::{ANSWERS, Desk, root, stack},
    template::expanded_with,
};

const TABLE: &str = "arn:aws:dynamodb:eu-central-1:123456789012:table/restored-1";

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

/// An answer file from before a restore would silently make the service use the old table again.
#[test]
fn a_stack_returns_to_its_own_table_only_if_the_answers_say_so() {
    let desk = Desk::new();
    desk.succeeds(&["ask", "staging"], &ANSWERS);
    desk.write("stack.json", stack("UPDATE_COMPLETE", &[("TableName", "restored-1")]).to_string());
    let refused = desk.fails(&["deploy", "staging"], &[]);
    for part in [
        "waypost-staging uses the table restored-1, but samconfig-staging.yaml has no TableName",
        r#"`- "TableName=restored-1"`"#,
        r#"`- "TableName="`"#,
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(desk.calls_of("sam deploy").is_empty(), "nothing was changed");
    let answers = desk.read("samconfig-staging.yaml");
    desk.write("samconfig-staging.yaml", answers.replace(r##"# - "TableName=""##, r#"- "TableName=""#));
    desk.succeeds(&["deploy", "staging"], &[]);
    assert_eq!(desk.calls_of("sam deploy").len(), 1);
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
