//! Properties of every tool.

use std::collections::{BTreeSet, HashSet};

use auth::{
    EntityId,
    Scope::{McpRead, McpRemove, McpWrite},
};
use base::Time;
use jsonschema::draft202012;
use outbound::AddressRules;
use problem::Problem;
use serde_json::Value;
use webhooks::{
    deliveries::{jobs::RecoveryScope, requests::replay::ReplayRequest},
    subscriptions::{
        endpoint::rotate::RotationRequest,
        test_event::TestRequest,
        webhook::{change::WebhookChange, pausing::PauseRequest, register::NewWebhook},
    },
};

use super::*;
use crate::{schemas, tool::Hints};

/// The page that lists the tools for human readers.
const PAGE: &str = include_str!("../../../../docs/agents.md");

/// The names in descriptions that are neither tools nor members.
const OTHERS: [&str; 5] = ["***", "{value, label}", "webhook.test", "version-conflict", "detail"];

fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

#[test]
fn names_titles_and_descriptions_of_tools_are_unique() {
    let texts: [fn(&Tool) -> &'static str; 3] = [|tool| tool.name, |tool| tool.title, |tool| tool.description];
    for text in texts {
        assert_eq!(ALL.iter().map(text).collect::<HashSet<_>>().len(), ALL.len());
    }
    for tool in ALL {
        assert!(tool.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", tool.name);
        assert!((100..1_000).contains(&tool.description.len()), "{}: {}", tool.name, tool.description.len());
        assert!(!tool.description.contains("  "), "{}", tool.name);
        assert!(find(tool.name).is_some_and(|found| found.title == tool.title));
    }
}

#[test]
fn a_description_names_only_tools_and_members_that_exist() {
    let members: HashSet<_> =
        ALL.iter().flat_map(|tool| [(tool.input)(), (tool.output)()]).flat_map(|schema| words(&schema)).collect();
    for tool in ALL {
        for name in tool.description.split('`').skip(1).step_by(2) {
            let known = find(name).is_some() || members.contains(name);
            assert!(known || OTHERS.contains(&name), "{}: {name}", tool.name);
        }
    }
}

/// The members and the values in a schema.
fn words(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(keywords) => {
            let named = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
            let values = ["enum", "examples"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten();
            let values = values.filter_map(|value| value.as_str().map(str::to_owned));
            named.chain(values).chain(keywords.values().flat_map(words)).collect()
        }
        Value::Array(items) => items.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn arguments_are_described_bounded_and_shown_by_examples() {
    for tool in ALL {
        let input = (tool.input)();
        let validator = draft202012::new(&input).expect(tool.name);
        assert_eq!(
            (&input["type"], &input["additionalProperties"]),
            (&"object".into(), &false.into()),
            "{}",
            tool.name
        );
        for (name, member) in members(&input) {
            assert!(member["description"].as_str().is_some_and(|text| !text.is_empty()), "{}: {name}", tool.name);
            for example in member["examples"].as_array().into_iter().flatten() {
                assert!(draft202012::is_valid(member, example), "{}: {name}: {example}", tool.name);
            }
        }
        let examples = input["examples"].as_array().cloned().unwrap_or_default();
        let needs_several = input["required"].as_array().is_some_and(|required| required.len() > 1);
        assert!(!examples.is_empty() || !needs_several, "{} has no example", tool.name);
        for example in examples {
            assert!(validator.is_valid(&example), "{}: {example}", tool.name);
        }
    }
}

/// The members that a use case reads, as listed when it refuses an unknown one.
fn read_by(problem: Option<Problem>) -> BTreeSet<String> {
    let problem = problem.expect("an unknown member is refused");
    let mut found = problem.violations().into_iter().filter(|violation| violation.name() == UNKNOWN);
    let unknown = found.next().expect("the unknown member is a violation");
    let (_, names) = unknown.detail.split_once("it accepts ").expect("the message lists the members");
    names.split(", ").map(str::to_owned).collect()
}

const UNKNOWN: &str = "?";

#[test]
fn a_tool_has_the_arguments_that_its_use_case_reads() {
    let entity = EntityId::parse("demo-hotel").expect("an entity");
    let rules = AddressRules::default();
    let pushed = br#"{"?":1}"#;
    let pulled = br#"{"?":1,"delivery":"pull"}"#;
    let new = |body: &[u8]| read_by(NewWebhook::read(body, &entity, &rules).err());
    // Only a pull webhook can be temporary, and only a push webhook has an address.
    let created = new(pushed).union(&new(pulled)).cloned().collect();
    for (tool, read) in [
        ("create_webhook", created),
        ("change_webhook", read_by(WebhookChange::read(pushed, &entity, &rules).err())),
        ("recover_deliveries", read_by(RecoveryScope::read(pushed, Time::from_millis(0)).err())),
        ("replay_events", read_by(ReplayRequest::read(pushed, &entity, Time::from_millis(0)).err())),
        ("pause_webhook", read_by(PauseRequest::read(pushed, Time::from_millis(0)).err())),
        ("rotate_webhook_secret", read_by(RotationRequest::read(pushed).err())),
        ("publish_test_event", read_by(TestRequest::read(pushed, &entity).err())),
    ] {
        let input = (find(tool).expect("a tool").input)();
        let names = members(&input).map(|(name, _)| name.clone());
        let arguments: BTreeSet<_> =
            names.filter(|name| !["webhookIdentifier", "idempotencyKey"].contains(&&**name)).collect();
        let read: BTreeSet<_> = read.into_iter().filter(|name| !schemas::is_left_out(name)).collect();
        assert_eq!(arguments, read, "{tool}");
    }
}

#[test]
fn results_have_schemas_of_objects() {
    for tool in ALL {
        let output = (tool.output)();
        assert!(draft202012::meta::is_valid(&output) && output["type"] == "object", "{}", tool.name);
        assert!(members(&output).next().is_some(), "{}", tool.name);
    }
}

#[test]
fn a_changing_tool_needs_a_scope_to_write_and_says_so() {
    for tool in ALL {
        let may_change = tool.scopes.iter().any(|scope| [McpWrite, McpRemove].contains(scope));
        assert_eq!(may_change, !tool.hints.read_only, "{}", tool.name);
        assert!(!tool.scopes.contains(&McpRead), "{}: every call needs it", tool.name);
        assert!(!tool.hints.read_only || tool.hints == Hints::READS, "{}", tool.name);
    }
    let first_change = ALL.iter().position(|tool| !tool.hints.read_only).expect("there are some");
    assert!(ALL[first_change..].iter().all(|tool| !tool.hints.read_only), "reading tools come first");
}

#[test]
fn the_page_lists_each_tool_with_its_scopes_in_the_order_of_the_list() {
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let listed: Vec<_> =
        rows.iter().filter(|row| row.len() == 3).map(|row| (row[0].to_owned(), row[2].to_owned())).collect();
    let scopes = |tool: &Tool| {
        let all: Vec<_> = [McpRead].iter().chain(tool.scopes).map(|scope| format!("`{scope}`")).collect();
        all.join(", ")
    };
    let expected: Vec<_> = ALL.iter().map(|tool| (format!("`{}`", tool.name), scopes(tool))).collect();
    assert_eq!(listed, expected);
}
