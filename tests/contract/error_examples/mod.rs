//! The error examples in openapi.yaml match their operations: the test provokes each error, and compares the response
//! with the example. Other tests provoke errors that need a fault, a limit or a race.

mod everywhere;
mod provoked;

use std::{collections::BTreeSet, fs, sync::Arc};

use contract_test::contract_test;
use problem::ProblemKind;
use serde_json::Value;

use crate::harness::{ApiResponse, Suite, project};

/// An operation's example of an error.
#[derive(Debug, Clone)]
struct Example {
    operation: String,
    status: u16,
    name: String,
    problem: Value,
}

/// The errors that other tests provoke: the kind, the file and the test.
const ELSEWHERE: [(&str, &str, &str); 11] = [
    ("service-unavailable", "metrics.rs", "only_responses_of_a_failed_service_are_counted"),
    ("internal-error", "idempotency/records.rs", "refused(500, \"internal-error\")"),
    ("too-many-attempts", "guesses.rs", "guesses_at_one_client_end_for_that_client_and_address_alone"),
    ("application-limit", "applications.rs", "an_entity_has_a_hundred_applications_at_most"),
    ("too-many-credentials", "applications.rs", "new_credentials_are_limited_per_hour_and_removals_are_not"),
    ("too-many-events", "publishing_share.rs", "an_entity_above_its_share_is_refused_and_others_are_not"),
    ("webhook-limit", "webhooks.rs", "an_entity_has_at_most_two_hundred_webhooks"),
    ("too-many-requests", "recover_refusals.rs", "requests_for_attempts_are_limited_for_each_entity_and_minute"),
    ("attempt-limit", "resend.rs", "a_delivery_with_a_hundred_attempts_is_not_sent_again"),
    ("too-many-panel-links", "panel_links.rs", "an_entity_may_make_sixty_links_in_an_hour"),
    ("secret-not-repeated", "idempotency/records.rs", "secret-not-repeated"),
];

/// The examples that no test provokes over HTTP, with the reason.
const NOT_PROVOKED: [(&str, &str, &str); 12] = [
    ("removeApplicationKey", "confirmationRequired", "as removeApplicationSecret; its token needs an assertion"),
    ("addApplicationSecret", "applicationChanged", "a race; see of_fifty_concurrent_rotations_one_succeeds"),
    ("removeApplicationSecret", "applicationChanged", "a race; see fifty_rotations_and_removals_at_once_…"),
    ("addApplicationKey", "applicationChanged", "a race; see fifty_rotations_and_removals_at_once_…"),
    ("removeApplicationKey", "applicationChanged", "a race; see fifty_rotations_and_removals_at_once_…"),
    ("recoverDeliveries", "recoveryLimit", "50 jobs; unit tests of the crate webhooks"),
    ("listEventTypes", "conflict", "the specification lists 409, and no read-only operation returns it"),
    ("showDelivery", "conflict", "the specification lists 409, and no read-only operation returns it"),
    ("listEventTypes", "unsupportedMediaType", "the specification lists 415, and GET takes no body"),
    ("showDelivery", "unsupportedMediaType", "the specification lists 415, and GET takes no body"),
    ("providerCallback", "entityNotCovered", "it needs a visit; see payments_callback.rs"),
    ("disconnectProvider", "connectionReplaced", "a race; see payments_replacing.rs"),
];

fn examples(suite: &Suite) -> Vec<Example> {
    let mut found = Vec::new();
    for operation in suite.contract.operations() {
        let declared = &suite.contract.document["paths"][&operation.path][operation.method.to_lowercase()];
        for (status, response) in declared["responses"].as_object().into_iter().flatten() {
            let contents = suite.contract.resolved(response)["content"].as_object().into_iter().flatten();
            let examples = contents.flat_map(|(_, content)| content["examples"].as_object().into_iter().flatten());
            for (name, example) in examples.filter(|_| status.starts_with(['4', '5'])) {
                // JSON-RPC errors and empty objects are not Problems.
                if example["value"].get("kind").is_some() {
                    found.push(Example {
                        operation: operation.id.clone(),
                        status: status.parse().expect("an error has a single status"),
                        name: name.clone(),
                        problem: example["value"].clone(),
                    });
                }
            }
        }
    }
    found
}

/// The text with placeholders for identifiers, times, durations, versions and paths, which differ between calls.
fn masked(text: &str) -> String {
    let mut words = Vec::<String>::new();
    for word in text.split_whitespace() {
        let before = words.last().map(String::as_str);
        let is_identifier = ["whk_", "evt_", "dlv_", "plk_", "sec_"].iter().any(|prefix| word.contains(prefix));
        let is_time = word.contains('T') && word.matches(':').count() == 2;
        let number = word.trim_end_matches([',', '.']);
        let is_number = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
        let is_counter = is_number && matches!(before, Some("in" | "is" | "now"));
        let is_path = before == Some("path") && word.starts_with("`/") || word.starts_with("/api/managing-entity/");
        let varies = is_identifier || is_time || is_counter || is_path;
        words.push(if varies { "…".to_owned() } else { word.to_owned() });
    }
    words.join(" ")
}

/// The examples that this run's responses have matched, and those that they have not.
struct Checked {
    all: Vec<Example>,
    seen: BTreeSet<(String, String)>,
    faults: Vec<String>,
}

impl Checked {
    fn compare(&mut self, operation: &str, name: &str, answer: &ApiResponse) {
        let example = self.all.iter().find(|example| example.operation == operation && example.name == name);
        let Example { status, problem, .. } = example.unwrap_or_else(|| panic!("{operation} has no example {name}"));
        let given: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let texts = |problem: &Value| {
            let members = problem["properties"].as_object().into_iter().flatten();
            let members: Vec<String> = members.map(|(member, _)| member.clone()).collect();
            (
                problem["kind"].clone(),
                problem["title"].clone(),
                masked(problem["detail"].as_str().unwrap_or_default()),
                members,
            )
        };
        if (answer.status, texts(&given)) != (*status, texts(problem)) {
            self.faults.push(format!("{operation}, {name}: {problem:#}\n{}", answer.exchange));
        }
        self.seen.insert((operation.to_owned(), name.to_owned()));
    }
}

#[contract_test]
async fn the_example_of_an_error_has_the_texts_of_its_kind(suite: Arc<Suite>) {
    let examples = examples(&suite);
    assert!(examples.len() > 300, "{}", examples.len());
    for Example { operation, status, name, problem } in examples {
        let slug = problem["kind"].as_str().unwrap_or_default();
        let kind = ProblemKind::of_slug(slug).unwrap_or_else(|| panic!("{operation}, {name}: {slug}"));
        assert_eq!(problem["title"], kind.title(), "{operation}, {name}");
        assert_eq!((problem["status"].as_u64(), status), (Some(status.into()), kind.status().as_u16()), "{operation}");
        assert_eq!(problem["type"], format!("https://api.waypost.example/problems/{slug}"), "{operation}, {name}");
    }
}

#[contract_test]
async fn the_examples_of_errors_are_what_their_operations_answer(suite: Arc<Suite>) {
    // A stack's gateway has a separate limit on request size.
    suite.bundle();
    let mut checked = Checked { all: examples(&suite), seen: BTreeSet::new(), faults: Vec::new() };
    everywhere::provoke(&suite, &mut checked).await;
    provoked::of_applications(&suite, &mut checked).await;
    provoked::of_webhooks(&suite, &mut checked).await;
    provoked::of_payments(&suite, &mut checked).await;
    provoked::of_agents_and_tasks(&suite, &mut checked).await;
    provoked::of_the_panel(&suite, &mut checked).await;
    provoked::of_tokens(&suite, &mut checked).await;
    assert!(checked.faults.is_empty(), "{}", checked.faults.join("\n\n"));
    let missing: Vec<String> = checked
        .all
        .iter()
        .filter(|example| !checked.seen.contains(&(example.operation.clone(), example.name.clone())))
        .filter(|example| !ELSEWHERE.iter().any(|(kind, ..)| example.problem["kind"] == *kind))
        .filter(|example| !NOT_PROVOKED.iter().any(|(id, name, _)| example.operation == *id && example.name == *name))
        .map(|example| format!("{}: {}", example.operation, example.name))
        .collect();
    assert!(missing.is_empty(), "no test provokes {missing:#?}");
}

#[contract_test]
async fn the_tests_that_provoke_the_other_errors_exist(_: Arc<Suite>) {
    for (kind, file, test) in ELSEWHERE {
        let text = fs::read_to_string(project().join("tests/contract").join(file)).expect("the file exists");
        assert!(text.contains(test), "{kind}: {file} has no {test}");
    }
}
